// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "devices/reference/device.h"
#include "ir/text_reader.h"
#include "plan/constants.h"
#include "plan/plan.h"
#include "runtime/frame.h"

/// How often the operations of a loop are planned: each planning of an operation asks the device once.
namespace moka::runtime {
namespace {

using namespace ir;

class CountingDevice final : public kernel::Device {
 public:
  std::string_view name() const override { return "counting"; }
  std::string description() const override { return "the reference, counted"; }
  kernel::ComputeUnit unit() const override { return kernel::ComputeUnit::cpu; }
  int rank() const override { return 0; }
  std::span<const kernel::KernelDef> kernels() const override { return devices::reference::device().kernels(); }
  kernel::Match claim(const kernel::MatchCall& call) const override {
    ++planned[call.call.version().def->name];
    return devices::reference::device().claim(call);
  }
  mutable std::map<std::string, int> planned;
};

/// The lists that list operations and loops created or changed.
class SeenLists final : public TraceSink {
 public:
  void step(const plan::Plan&, const plan::Step& step, double, std::span<const TensorView> out) override {
    if (std::holds_alternative<plan::Convert>(step) && out[0].dtype == DType::none) copies++;
    if (const plan::Call* call = plan::call_of(step))
      for (const TensorView& v : out)
        if (v.dtype == DType::none) of[std::string(call->op->type_name())].insert(v.data);
  }
  std::set<const void*> all() const {
    std::set<const void*> lists;
    for (const auto& [op, some] : of) lists.insert(some.begin(), some.end());
    return lists;
  }
  std::map<std::string, std::set<const void*>> of;
  int copies = 0;
};

/// A planned program and its memory.
class Runner {
 public:
  Runner(const std::string& inputs, const std::string& body, const std::string& outputs)
      : program_(read_text("program(1.0)\n{\n func main<ios18>(" + inputs + ") {\n" + body + "\n } -> (" + outputs +
                               ");\n}\n",
                           ops::table(), {})
                     .value()) {
    options_.devices = {&device};
    options_.constants = std::make_shared<plan::ConstantPool>(nullptr);
    context_.options = &options_;
  }

  /// The outputs for one int32 and the other inputs of the function.
  std::vector<std::vector<double>> run(int n, std::vector<Tensor> more = {}) {
    const Block& block = program_.functions[0]->body();
    more.insert(more.begin(), Tensor::scalar_i64(DType::int32, n));
    std::vector<Type> types;
    for (const Tensor& t : more) types.push_back(Type::tensor(t.dtype(), t.shape()));
    if (frame_ == nullptr || types != types_) {
      frame_ = Frame::make(plan::plan_block(block, types, nullptr, options_).value(), nullptr, context_).value();
      types_ = types;
    }
    for (size_t i = 0; i < more.size(); i++) frame_->set_input(i, more[i].data());
    const Status done = frame_->run();
    EXPECT_TRUE(done.ok()) << (done.ok() ? "" : done.error().to_string());
    std::vector<std::vector<double>> out(block.outputs().size());
    for (size_t k = 0; k < out.size() && done.ok(); k++)
      for (int64_t i = 0; i < frame_->output(k).count(); i++) out[k].push_back(load_f64(frame_->output(k), i));
    return out;
  }

  void trace(TraceSink* sink) { context_.trace = sink; }
  CountingDevice device;

 private:
  Program program_;
  plan::PlanOptions options_;
  ExecContext context_;
  std::vector<Type> types_;
  std::unique_ptr<Frame> frame_;
};

/// A loop that counts i from 0 to `limit` and carries `var`; `body` computes `next`.
std::string counting(const std::string& type, const std::string& var, const std::string& body,
                     const std::string& limit = "n") {
  return "int32 i, " + type + " y = while_loop(loop_vars = (int32(0), " + var + "))[name = string(\"loop\")] {\n" +
         "block test(int32 k, " + type + " v) { bool more = less(x = k, y = " + limit + "); } -> (more);\n" +
         "block step(int32 k, " + type + " v) { int32 after = add(x = k, y = int32(1));\n" + body +
         "} -> (after, next);\n};\n";
}

TEST(Loops, CountingIsPlannedOnce) {
  Runner r("int32 n, tensor<fp32, [2]> x",
           counting("tensor<fp32, [2]>", "x", "tensor<fp32, [2]> next = sub(x = v, y = fp32(1.5));"), "y");
  const Tensor x = Tensor::f32({2}, std::vector<float>{10, 20});
  for (int n : {1000, 0, 1, 7}) {
    EXPECT_EQ(r.run(n, {x})[0], (std::vector<double>{10 - 1.5 * n, 20 - 1.5 * n})) << n;
    EXPECT_EQ(r.device.planned["sub"], 1) << n;
    EXPECT_EQ(r.device.planned["less"], 1) << n;
  }
}

TEST(Loops, InsideOfLoopsArePlannedOnce) {
  const std::string inner =
      "int32 j, tensor<fp32, [1]> next = while_loop(loop_vars = (int32(0), v))[name = string(\"inner\")] {\n"
      "block test(int32 m, tensor<fp32, [1]> w) { bool more = less(x = m, y = k); } -> (more);\n"
      "block step(int32 m, tensor<fp32, [1]> w) { int32 then = add(x = m, y = int32(1));\n"
      "tensor<fp32, [1]> u = sub(x = w, y = fp32(-1)); } -> (then, u);\n};\n";
  Runner r("int32 n, tensor<fp32, [1]> x", counting("tensor<fp32, [1]>", "x", inner), "y");
  const Tensor x = Tensor::f32({1}, std::vector<float>{0});
  for (int n : {30, 0, 1, 4}) EXPECT_EQ(r.run(n, {x})[0], std::vector<double>{n * (n - 1) / 2.0}) << n;
  EXPECT_EQ(r.device.planned["sub"], 1);
}

/// The pattern of converted recurrent layers: a slice of each step, selected by the counter.
TEST(Loops, WithSlicesByTheCounterArePlannedOnce) {
  for (const std::string slice :
       {"tensor<fp32, [3]> row = gather(x = x, indices = k, axis = int32(0));",
        "tensor<int32, [2]> begin = stack(values = (k, int32(0)), axis = int32(0));\n"
        "tensor<fp32, [1, 3]> part = slice_by_size(x = x, begin = begin, size = tensor<int32, [2]>([1, 3]));\n"
        "tensor<fp32, [3]> row = squeeze(x = part, axes = tensor<int32, [1]>([0]));",
        "tensor<int32, [2]> begin = stack(values = (k, int32(0)), axis = int32(0));\n"
        "tensor<int32, [2]> end = stack(values = (after, int32(0)), axis = int32(0));\n"
        "tensor<fp32, [?, 3]> part = slice_by_index(x = x, begin = begin, end = end, end_mask = "
        "tensor<bool, [2]>([false, true]));\n"
        "tensor<fp32, [3]> row = reshape(x = part, shape = tensor<int32, [1]>([3]));"}) {
    SCOPED_TRACE(slice);
    Runner r("int32 n, tensor<fp32, [50, 3]> x",
             counting("tensor<fp32, [3]>", "tensor<fp32, [3]>([0, 0, 0])",
                      slice + "\ntensor<fp32, [3]> half = mul(x = v, y = fp32(0.5));\n"
                              "tensor<fp32, [3]> next = sub(x = row, y = half);"),
             "y");
    const Tensor x = Tensor::zeros(DType::fp32, {50, 3}).value();
    for (int64_t i = 0; i < 150; i++) store_f64(x.view(), i, static_cast<double>(i % 8));
    for (int n : {50, 0, 3, 20}) {
      double expected[3] = {};
      for (int t = 0; t < n; t++)
        for (int i = 0; i < 3; i++) expected[i] = static_cast<float>((t * 3 + i) % 8 - expected[i] / 2);
      EXPECT_EQ(r.run(n, {x})[0], std::vector<double>(expected, expected + 3)) << n;
    }
    EXPECT_EQ(r.device.planned["sub"], 1);
  }
}

/// A new shape is planned on first use.
TEST(Loops, ThatGrowArePlannedForEachShape) {
  Runner r("int32 n, tensor<fp32, [?]> x",
           counting("tensor<fp32, [?]>", "x",
                    "tensor<fp32, [1]> last = fill(shape = tensor<int32, [1]>([1]), value = fp32(2));\n"
                    "tensor<fp32, [?]> all = concat(values = (v, last), axis = int32(0));\n"
                    "tensor<fp32, [?]> next = sub(x = all, y = fp32(1));"),
           "y");
  const Tensor x = Tensor::f32({1}, std::vector<float>{100});
  for (int n : {3, 0, 2, 3}) {
    std::vector<double> expected{100.0 - n};
    for (int i = 0; i < n; i++) expected.push_back(2.0 - n + i);
    EXPECT_EQ(r.run(n, {x})[0], expected) << n;
  }
  EXPECT_EQ(r.device.planned["sub"], 3);  // of 1 to 3 elements
}

/// The shape changes once and then stays the same.
TEST(Loops, ThatSettleAreNotPlannedAgain) {
  Runner r("int32 n, tensor<fp32, [?]> x",
           counting("tensor<fp32, [?]>", "x",
                    "tensor<fp32, [2]> two = fill(shape = tensor<int32, [1]>([2]), value = fp32(1));\n"
                    "tensor<fp32, [?]> sum = sub(x = v, y = two);\n"
                    "tensor<fp32, [?]> next = mul(x = sum, y = fp32(0.5));"),
           "y");
  const Tensor x = Tensor::f32({1}, std::vector<float>{3});
  for (int n : {40, 0, 1, 2}) {
    std::vector<double> expected(n == 0 ? 1 : 2, 3.0);
    for (int t = 0; t < n; t++)
      for (double& v : expected) v = static_cast<float>((v - 1) / 2);
    EXPECT_EQ(r.run(n, {x})[0], expected) << n;
  }
  EXPECT_EQ(r.device.planned["sub"], 2);
}

/// Rows are written one by one to a list without a length and gathered after the loop.
TEST(Loops, FillListsOfDynamicLength) {
  const std::string list = "list<tensor<fp32, [2]>, ?>";
  Runner r("int32 n, tensor<fp32, [2]> x",
           list +
               " start = make_list(init_length = int32(0), dynamic_length = bool(true), elem_shape = (int32(2)), "
               "dtype = string(\"fp32\"));\n" +
               counting(list, "start",
                        "fp32 f = cast(x = k, dtype = string(\"fp32\"));\n"
                        "tensor<fp32, [2]> row = sub(x = x, y = f);\n" +
                            list + " next = list_write(ls = v, index = k, value = row);") +
               "int32 length = list_length(ls = y);\n"
               "tensor<int32, [?]> all = range_1d(start = int32(0), end = length, step = int32(1));\n"
               "tensor<fp32, [?, 2]> rows = list_gather(ls = y, indices = all);\n",
           "length, rows");
  const Tensor x = Tensor::f32({2}, std::vector<float>{1, 2});
  for (int n : {5, 0, 1, 300}) {
    std::vector<double> expected;
    for (int t = 0; t < n; t++) expected.insert(expected.end(), {1.0 - t, 2.0 - t});
    const auto out = r.run(n, {x});
    EXPECT_EQ(out[0], std::vector<double>{static_cast<double>(n)});
    EXPECT_EQ(out[1], expected) << n;
  }
  EXPECT_EQ(r.device.planned["sub"], 1);
}

/// Lists change places, appear twice, and one stays. None may be overwritten before it is read.
TEST(Loops, HandListsOnInAnyOrder) {
  const std::string list = "list<tensor<fp32, [1]>, ?>";
  std::string start;
  for (const char* name : {"a", "b", "c", "d"}) {
    const std::string n = name;
    start += list + " " + n +
             "0 = make_list(init_length = int32(0), dynamic_length = bool(true), elem_shape = (int32(1)), dtype = "
             "string(\"fp32\"));\ntensor<fp32, [1]> " +
             n + "x = add(x = x, y = fp32(" + std::to_string(name[0] - 'a') + "));\n" + list + " " + n +
             "1 = list_write(ls = " + n + "0, index = int32(0), value = " + n + "x);\n";
  }
  std::string read;
  for (const char* name : {"a", "b", "c", "d"})
    read += "tensor<fp32, [1]> y" + std::string(name) + " = list_read(ls = " + name + ", index = int32(0));\n";
  const std::string vars = list + " p, " + list + " q, " + list + " r, " + list + " s";
  Runner r("int32 n, tensor<fp32, [1]> x",
           start + "int32 i, " + list + " a, " + list + " b, " + list + " c, " + list +
               " d = while_loop(loop_vars = (int32(0), a1, b1, c1, d1)) {\n" + "block test(int32 k, " + vars +
               ") { bool more = less(x = k, y = n); } -> (more);\n" + "block step(int32 k, " + vars +
               ") { int32 after = add(x = k, y = int32(1));\n"
               "tensor<fp32, [1]> old = list_read(ls = s, index = int32(0));\n"
               "tensor<fp32, [1]> ten = add(x = old, y = fp32(10));\n" +
               list + " t = list_write(ls = s, index = int32(0), value = ten); } -> (after, q, p, r, t);\n};\n" + read,
           "ya, yb, yc, yd");
  const Tensor x = Tensor::f32({1}, std::vector<float>{100});
  for (int n : {1, 0, 2, 5}) {
    const auto out = r.run(n, {x});
    EXPECT_EQ(out[0], std::vector<double>{n % 2 == 0 ? 100.0 : 101.0}) << n;
    EXPECT_EQ(out[1], std::vector<double>{n % 2 == 0 ? 101.0 : 100.0}) << n;
    EXPECT_EQ(out[2], std::vector<double>{102}) << n;
    EXPECT_EQ(out[3], std::vector<double>{103.0 + 10 * n}) << n;
  }
  Runner twice("int32 n, tensor<fp32, [1]> x",
               start + "int32 i, " + list + " a, " + list + " b = while_loop(loop_vars = (int32(0), a1, b1)) {\n" +
                   "block test(int32 k, " + list + " p, " + list +
                   " q) { bool more = less(x = k, y = n); } -> (more);\n" + "block step(int32 k, " + list + " p, " +
                   list +
                   " q) { int32 after = add(x = k, y = int32(1));\n"
                   "tensor<fp32, [1]> first = list_read(ls = p, index = int32(0));\n"
                   "tensor<fp32, [1]> next = add(x = first, y = x);\n" +
                   list +
                   " both = list_write(ls = q, index = k, value = next); } -> (after, both, both);\n};\n"
                   "tensor<fp32, [1]> y = list_read(ls = a, index = int32(0));\n"
                   "tensor<fp32, [1]> z = list_read(ls = b, index = int32(0));\nint32 size = list_length(ls = b);\n",
               "y, z, size");
  for (int n : {3, 1, 2}) {
    const auto out = twice.run(n, {x});
    EXPECT_EQ(out[0], std::vector<double>{200}) << n;
    EXPECT_EQ(out[1], out[0]) << n;
    EXPECT_EQ(out[2], std::vector<double>{static_cast<double>(n)}) << n;
  }
}

/// A list that grows is a single object from make_list to its last reader. No step copies its elements.
TEST(Loops, FillListsInPlace) {
  const std::string list = "list<tensor<fp32, [1]>, ?>";
  const std::string make =
      list +
      " start = make_list(init_length = int32(0), dynamic_length = bool(true), elem_shape = (int32(1)), dtype = "
      "string(\"fp32\"));\n";
  const std::string body = "int32 double = mul(x = k, y = int32(2));\nint32 odd = add(x = double, y = int32(1));\n" +
                           list +
                           " first = list_write(ls = v, index = double, value = x);\n"
                           "tensor<int32, [1]> at = expand_dims(x = odd, axes = tensor<int32, [1]>([0]));\n"
                           "tensor<fp32, [1, 1]> rows = expand_dims(x = x, axes = tensor<int32, [1]>([0]));\n" +
                           list + " next = list_scatter(ls = first, indices = at, value = rows);";
  const Tensor x = Tensor::f32({1}, std::vector<float>{2});
  Runner r("int32 n, tensor<fp32, [1]> x", make + counting(list, "start", body) + "int32 size = list_length(ls = y);\n",
           "size");
  for (int n : {500, 0, 3}) {
    SeenLists lists;
    r.trace(&lists);
    EXPECT_EQ(r.run(n, {x})[0], std::vector<double>{2.0 * n});
    EXPECT_EQ(lists.all().size(), 1) << n;
    EXPECT_EQ(lists.of.count("list_write"), n > 0 ? 1 : 0);
    EXPECT_EQ(lists.copies, 0) << n;
    r.trace(nullptr);
  }

  // The same in a loop of loops.
  const std::string inner =
      "int32 j, " + list + " next = while_loop(loop_vars = (int32(0), v))[name = string(\"inner\")] {\n" +
      "block test(int32 m, " + list + " w) { bool more = less(x = m, y = int32(3)); } -> (more);\n" +
      "block step(int32 m, " + list + " w) { int32 then = add(x = m, y = int32(1)); int32 at = list_length(ls = w);\n" +
      list + " longer = list_write(ls = w, index = at, value = x); } -> (then, longer);\n};\n";
  Runner nested("int32 n, tensor<fp32, [1]> x",
                make + counting(list, "start", inner) + "int32 size = list_length(ls = y);\n", "size");
  SeenLists lists;
  nested.trace(&lists);
  EXPECT_EQ(nested.run(100, {x})[0], std::vector<double>{300});
  EXPECT_EQ(lists.all().size(), 1);
  EXPECT_EQ(lists.copies, 0);
}

/// A list that is read later is not changed.
TEST(Loops, KeepListsThatAreReadLater) {
  const std::string list = "list<tensor<fp32, [1]>, ?>";
  Runner r("int32 n, tensor<fp32, [1]> x",
           list +
               " start = make_list(init_length = int32(1), dynamic_length = bool(true), elem_shape = (int32(1)), dtype "
               "= string(\"fp32\"));\n" +
               counting(list, "start",
                        list + " next = list_write(ls = v, index = after, value = x);\n"
                               "int32 before = list_length(ls = v);\n"
                               "int32 then = list_length(ls = next);\n") +
               "int32 old = list_length(ls = start);\nint32 size = list_length(ls = y);\n",
           "old, size");
  const Tensor x = Tensor::f32({1}, std::vector<float>{2});
  for (int n : {5, 0, 2})
    EXPECT_EQ(r.run(n, {x}), (std::vector<std::vector<double>>{{1}, {static_cast<double>(n + 1)}})) << n;
}

/// Elements of a list may have different shapes.
TEST(Loops, ReadElementsOfDifferentShapes) {
  const std::string list = "list<tensor<fp32, [?]>, ?>";
  Runner r("int32 n, tensor<fp32, [1]> x",
           list +
               " start = make_list(init_length = int32(0), dynamic_length = bool(true), elem_shape = (int32(-1)), "
               "dtype = string(\"fp32\"));\n" +
               counting(list, "start",
                        "tensor<int32, [1]> size = expand_dims(x = after, axes = tensor<int32, [1]>([0]));\n"
                        "tensor<fp32, [?]> row = tile(x = x, reps = size);\n" +
                            list + " next = list_write(ls = v, index = k, value = row);") +
               "int32 last = sub(x = n, y = int32(1));\n"
               "tensor<fp32, [?]> row = list_read(ls = y, index = last);\n",
           "row");
  const Tensor x = Tensor::f32({1}, std::vector<float>{7});
  for (int n : {1, 4, 2}) EXPECT_EQ(r.run(n, {x})[0], std::vector<double>(static_cast<size_t>(n), 7)) << n;
}

/// A loop ends early when the body sets the value that its condition tests.
TEST(Loops, AreLeftEarly) {
  Runner r("int32 n, tensor<fp32, [1]> x",
           "int32 i, tensor<fp32, [1]> y, bool go = while_loop(loop_vars = (int32(0), x, bool(true))) {\n"
           "block test(int32 k, tensor<fp32, [1]> v, bool on) { bool few = less(x = k, y = n);\n"
           "bool more = logical_and(x = few, y = on); } -> (more);\n"
           "block step(int32 k, tensor<fp32, [1]> v, bool on) { int32 after = add(x = k, y = int32(1));\n"
           "tensor<fp32, [1]> next = sub(x = v, y = fp32(2));\n"
           "tensor<bool, [1]> above = greater(x = next, y = fp32(0));\n"
           "bool still = squeeze(x = above, axes = tensor<int32, [1]>([0])); } -> (after, next, still);\n};\n",
           "i, y");
  for (const auto& [n, x, steps] : {std::tuple{100, 9.0f, 5}, {3, 9.0f, 3}, {100, 1.0f, 1}, {0, 1.0f, 0}}) {
    const auto out = r.run(n, {Tensor::f32({1}, std::vector<float>{x})});
    EXPECT_EQ(out[0], std::vector<double>{static_cast<double>(steps)});
    EXPECT_EQ(out[1], std::vector<double>{static_cast<double>(x) - 2.0 * steps});
  }
}

}  // namespace
}  // namespace moka::runtime
