#include <gtest/gtest.h>

#include "devices/graph_util.h"

/// Every function of kernel/epilogues.inc, by the vector loops and by oneDNN's post-ops, compared with the executor's.
namespace moka::devices_test {
namespace {

using namespace ir;

constexpr const char* kNames[] = {
#define MOKA_EPILOGUE(name, ...) #name,
#include "kernel/epilogues.inc"
#undef MOKA_EPILOGUE
};

void expect_epilogue(const char* name, const char* kernel) {
  SCOPED_TRACE(cat(name, " in ", kernel));
  Graph g;
  Value* y = g.op("conv", {{"x", g.input({1, 32, 6, 7})}, {"weight", g.random({32, 32, 1, 1}, -0.3f, 0.3f)}});
  y->producer()->epilogue = {{name, 0.3f, 0.7f, ""}};
  expect_same_by(kernel, g, y);
}

TEST(Epilogue, EveryFunctionInVectorLoops) {
  for (const char* name : kNames) expect_epilogue(name, "cpu.conv.pointwise");
}

TEST(Epilogue, EveryFunctionWithOneDnn) {
  for (const char* name : kNames) expect_epilogue(name, "cpu.conv.onednn");
}

}  // namespace
}  // namespace moka::devices_test
