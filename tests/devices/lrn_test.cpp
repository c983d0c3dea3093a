// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <limits>

#include "devices/graph_util.h"

namespace moka::devices_test {
namespace {

using namespace ir;

TEST(CpuLocalResponseNorm, Layouts) {
  for (int64_t ch : {7, 32}) {
    Graph g;
    Value* x =
        g.op("conv", {{"x", g.input({2, 3, 9, 9}, -3, 3)}, {"weight", g.random({ch, 3, 3, 3})}, {"pad_type", "same"}});
    expect_same(g,
                {g.op("local_response_norm", {{"x", x}, {"size", 5}, {"alpha", 0.3f}, {"beta", 0.75f}, {"k", 2.0f}})});
  }
}

/// Windows that do not hold a large number, an infinity or a NaN are as without it.
TEST(CpuLocalResponseNorm, OddChannels) {
  const float inf = std::numeric_limits<float>::infinity();
  for (const float odd : {1e12f, inf, -inf, std::nanf("")})
    for (const int size : {1, 2, 3, 5, 9})
      for (const float beta : {0.75f, 0.6f})
        for (const Shape& shape : {Shape{2, 16, 5, 7}, Shape{1, 20, 17, 31}, Shape{11, 4, 5}, Shape{2, 1, 6, 1, 3}}) {
          SCOPED_TRACE(cat(odd, ", ", size, ", ", beta, ", ", shape));
          Graph g;
          Tensor x = g.random(shape, -3, 3);
          const int axis = shape.rank() - 3;
          const int64_t inner = shape.count(axis + 1, shape.rank());
          for (int64_t i = 0; i < x.count(); i++)
            if (i / inner % shape[axis] == 2 && i % 3 != 0) x.mut<float>()[static_cast<size_t>(i)] = odd;
          const devices_test::Run got = expect_same(
              g, {g.op("local_response_norm",
                       {{"x", g.input_of(x)}, {"size", size}, {"alpha", 0.3f}, {"beta", beta}, {"k", 2.0f}})});
          EXPECT_TRUE(got.has("cpu.local_response_norm")) << got.kernels;
        }
}

TEST(CpuLocalResponseNorm, OddChannelsOfBlocks) {
  for (const float odd : {1e12f, std::numeric_limits<float>::infinity(), std::nanf("")}) {
    SCOPED_TRACE(odd);
    Graph g;
    Tensor x = g.random({2, 32, 7, 7}, -3, 3);
    for (int64_t i = 0; i < x.count(); i++)
      if (i / 49 % 15 == 2 && i % 3 != 0) x.mut<float>()[static_cast<size_t>(i)] = odd;
    Value* blocked = g.op("conv", {{"x", g.input({2, 32, 7, 7})}, {"weight", g.random({32, 32, 1, 1}, -0.1f, 0.1f)}});
    Value* sum = g.op("add", {{"x", blocked}, {"y", g.input_of(x)}});
    expect_same(
        g, {g.op("local_response_norm", {{"x", sum}, {"size", 5}, {"alpha", 0.3f}, {"beta", 0.75f}, {"k", 2.0f}})});
  }
}

}  // namespace
}  // namespace moka::devices_test
