// SPDX-License-Identifier: Apache-2.0
#include <cstring>

#include "devices/graph_util.h"
#include "ir/text_reader.h"

namespace moka::devices_test {
namespace {

using namespace ir;

struct Outcome {
  std::vector<float> outputs, state;
  int copies = 0;  ///< steps that read or write the whole state
  int in_state = 0;
};

/// Predicts three times. Without memory reuse nothing is a view and nothing is updated in place.
Outcome predict(const std::string& body, const std::string& outputs, bool share) {
  Outcome out;
  auto program =
      read_text(cat("program(1.3)\n{\n func main<ios18>(tensor<fp32, [1, 3]> row, state<tensor<fp32, [4, 3]>> s) {\n",
                    body, "\n} -> (", outputs, ");\n}\n"),
                ops::table());
  EXPECT_TRUE(program.ok()) << program.error().to_string();
  if (!program.ok()) return out;
  const Function& f = *program->functions[0];
  plan::PlanOptions o = options(true, 1);
  o.reuse_buffers = share;
  runtime::ExecContext context;
  context.options = &o;
  std::vector<Type> types;
  for (const auto& v : f.body().inputs()) types.push_back(v->type);
  auto plan = plan::plan_block(f.body(), types, nullptr, o);
  EXPECT_TRUE(plan.ok()) << plan.error().to_string();
  if (!plan.ok()) return out;
  plan::for_each_step((*plan)->sequence, [&]<class One>(int, const One& step, int) {
    if constexpr (std::is_base_of_v<plan::Call, One>)
      out.copies += step.op->type_name() == "read_state" || step.op->type_name() == "write_state";
    for (int i : plan::writes_of((*plan)->sequence, step))
      out.in_state += (*plan)->sequence.place(i).is<plan::External>();
  });
  auto frame = runtime::Frame::make(*plan, nullptr, context);
  EXPECT_TRUE(frame.ok());
  std::vector<float> row{1, 2, 3};
  out.state = {-1, -2, -3, -4, -5, -6, -7, -8, -9, -10, -11, -12};
  (*frame)->set_input(0, row.data());
  (*frame)->set_state(1, out.state.data());
  for (int n = 0; n < 3; n++) {
    for (float& v : row) v += 10;
    EXPECT_TRUE((*frame)->run().ok());
    for (size_t i = 0; i < f.body().outputs().size(); i++) {
      const TensorView& v = (*frame)->output(i);
      out.outputs.insert(out.outputs.end(), v.as<float>(), v.as<float>() + v.count());
    }
  }
  return out;
}

void expect_plan(const std::string& body, const std::string& outputs, int copies, int in_state) {
  SCOPED_TRACE(body);
  const Outcome got = predict(body, outputs, true), expected = predict(body, outputs, false);
  EXPECT_EQ(got.outputs, expected.outputs);
  EXPECT_EQ(got.state, expected.state);
  EXPECT_EQ(got.copies, copies);
  EXPECT_EQ(got.in_state, in_state);
}

std::string read(const char* to) { return cat("tensor<fp32, [4, 3]> ", to, " = read_state(input = s);\n"); }
std::string write(const char* what) { return cat("write_state(data = ", what, ", input = s);\n"); }
std::string update(const char* to, const char* x, const char* with, int at) {
  return cat("tensor<fp32, [4, 3]> ", to, " = slice_update(begin = tensor<int32, [2]>([", at,
             ", 0]), end = tensor<int32, [2]>([", at + 1, ", 3]), update = ", with, ", x = ", x, ");\n");
}
std::string sum(const char* to, const char* x) {
  return cat("tensor<fp32, [4, 3]> ", to, " = add(x = ", x, ", y = fp32(1.5));\n");
}

TEST(State, UpdatesInPlace) {
  expect_plan(read("a") + update("b", "a", "row", 1) + write("b") + read("c") + sum("y", "c"), "y", 0, 1);
  // One after another.
  expect_plan(read("a") + update("b", "a", "row", 1) + write("b") + read("c") + sum("y", "c") +
                  update("d", "c", "row", 2) + write("d") + read("e") + sum("z", "e"),
              "y, z", 0, 2);
  // The update itself is read.
  expect_plan(read("a") + update("b", "a", "row", 1) + write("b") + sum("y", "b"), "y", 0, 1);
}

/// A velocity, which is the second result of its operation.
TEST(State, OptimizersUpdateInPlace) {
  const std::string step = "tensor<fp32, [4, 3]> g = tile(reps = tensor<int32, [2]>([4, 1]), x = row);\n" + read("a") +
                           "tensor<fp32, [4, 3]> w, tensor<fp32, [4, 3]> v = moka_sgd_step(gradient = g, learning_rate "
                           "= fp32(0.5), momentum "
                           "= fp32(0.25), velocity = a, weight = g);\n" +
                           write("v");
  expect_plan(step, "w", 0, 1);
  expect_plan(step + sum("y", "a"), "w, y", 2, 0);
}

TEST(State, CopiesWhereTheOldValueIsNeeded) {
  // It is read after the write.
  expect_plan(read("a") + update("b", "a", "row", 1) + write("b") + sum("y", "a"), "y", 2, 0);
  // It is read between update and write.
  expect_plan(read("a") + update("b", "a", "row", 1) + sum("y", "a") + write("b"), "y", 1, 0);
  expect_plan(read("a") + update("b", "a", "row", 1) + read("c") + write("b") + sum("y", "c"), "y", 2, 0);
  // It is read through a value that shares its memory.
  expect_plan(read("a") + "tensor<fp32, [12]> r = reshape(x = a, shape = tensor<int32, [1]>([12]));\n" +
                  update("b", "a", "row", 1) + write("b") + "tensor<fp32, [12]> y = add(x = r, y = fp32(1.5));\n",
              "y", 2, 0);
  // It is returned.
  expect_plan(read("a"), "a", 1, 0);
  expect_plan(read("a") + update("b", "a", "row", 1) + write("b"), "b", 1, 0);
  // The update comes from the state.
  expect_plan(read("a") +
                  "tensor<fp32, [1, 3]> last = slice_by_index(begin = tensor<int32, [2]>([3, 0]), end = "
                  "tensor<int32, [2]>([4, 3]), x = a);\n" +
                  update("b", "a", "last", 0) + write("b") + sum("y", "b"),
              "y", 0, 1);
  // The update is read after the state has changed again.
  expect_plan(read("a") + update("b", "a", "row", 1) + write("b") + read("c") + update("d", "c", "row", 2) +
                  write("d") + sum("y", "b"),
              "y", 1, 1);
}

}  // namespace
}  // namespace moka::devices_test
