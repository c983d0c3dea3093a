// SPDX-License-Identifier: Apache-2.0
#include "moka/custom.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <cmath>
#include <cstring>
#include <functional>
#include <optional>
#include <random>
#include <thread>

#include "api/api_util.h"
#include "moka/compute_plan.h"

namespace moka::test {

namespace {

/// A layer from functions.
struct Parts {
  std::function<void(const LayerCall&)> evaluate;
  std::function<std::vector<std::vector<int64_t>>(const std::vector<std::vector<int64_t>>&)> shapes;
  LayerPlan plan;
  bool elementwise = false;
  LayerOrder order = LayerOrder::row_major;
  std::function<void(const std::vector<MultiArray>&)> weights;
};

class FromParts final : public CustomLayer {
 public:
  explicit FromParts(Parts parts) : parts_(std::move(parts)) {}
  void set_weights(const std::vector<MultiArray>& weights) override {
    if (parts_.weights) parts_.weights(weights);
  }
  std::vector<std::vector<int64_t>> output_shapes(const std::vector<std::vector<int64_t>>& in) const override {
    return parts_.shapes ? parts_.shapes(in) : CustomLayer::output_shapes(in);
  }
  void evaluate(const LayerCall& call) const override { parts_.evaluate(call); }
  bool elementwise() const override { return parts_.elementwise; }
  LayerOrder order() const override { return parts_.order; }
  LayerPlan plan(const std::vector<std::vector<int64_t>>&, int) const override { return parts_.plan; }

 private:
  Parts parts_;
};

/// Registered while it lives.
class Operation {
 public:
  Operation(std::string name, Parts parts, OperationSignature signature = {}) : name_(std::move(name)) {
    register_operation(
        name_, [parts](const LayerInfo&) { return std::make_unique<FromParts>(parts); }, std::move(signature));
  }
  Operation(std::string name, LayerFactory factory, OperationSignature signature = {}) : name_(std::move(name)) {
    register_operation(name_, std::move(factory), std::move(signature));
  }
  ~Operation() { unregister_operation(name_); }

 private:
  std::string name_;
};

double swish(double x) { return x / (1 + std::exp(-x)); }

void evaluate_swish(const LayerCall& call) {
  const auto x = call.inputs[0].as<const float>();
  const auto y = call.outputs[0].as<float>();
  for (size_t i = 0; i < x.size(); i++) y[i] = x[i] / (1 + std::exp(-x[i]));
}

MultiArray noise(std::vector<int64_t> shape, uint32_t seed = 1) {
  MultiArray a(DataType::float32, std::move(shape));
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> draw(-3, 3);
  for (float& v : a.as<float>()) v = draw(random);
  return a;
}

const std::string kSwish =
    program("tensor<fp32, [2, 3]> x", R"( tensor<fp32, [2, 3]> y = my_swish(x = x)[name = string("s")];)", "y");

}  // namespace

TEST(Custom, OperationOfAProgramThatNobodyKnows) {
  expect_error(ErrorKind::unsupported, {"my_swish"}, [] { Model::from_mil(kSwish); });
  const Operation swish_operation("my_swish", {.evaluate = evaluate_swish, .elementwise = true});
  const Model model = Model::from_mil(kSwish);
  const MultiArray x = noise({2, 3});
  const auto y = values(model.predict({{"x", x}}).array("y"));
  for (size_t i = 0; i < y.size(); i++) EXPECT_NEAR(y[i], swish(x.at(static_cast<int64_t>(i))), 1e-6);
  const ComputePlan plan = model.compute_plan();
  ASSERT_EQ(plan.operations.size(), 1u);
  EXPECT_EQ(plan.operations[0].kernel, "cpu.registered");
}

TEST(Custom, ElementwiseLayersKeepBlockedLayouts) {
  const Operation operation("plus_one", {.evaluate =
                                             [](const LayerCall& call) {
                                               const auto x = call.inputs[0].as<const float>();
                                               const auto y = call.outputs[0].as<float>();
                                               for (size_t i = 0; i < x.size(); i++) y[i] = x[i] + 1;
                                             },
                                         .elementwise = true});
  // 20 channels do not fill their blocks, and 0 + 1 is not 0.
  const auto net = [](const std::string& middle) {
    std::mt19937 random(3);
    const std::function<std::string(std::vector<int>)> nested = [&](std::vector<int> sizes) -> std::string {
      if (sizes.empty()) return std::to_string((static_cast<int>(random() % 200) - 100) / 400.0);
      std::string out = "[";
      for (int i = 0; i < sizes[0]; i++) out += (i == 0 ? "" : ", ") + nested({sizes.begin() + 1, sizes.end()});
      return out + "]";
    };
    const std::string weights = nested({20, 20, 3, 3});
    const std::string type = "tensor<fp32, [1, 20, 24, 24]>";
    const auto conv = [&](const std::string& to, const std::string& from) {
      return " " + type + " " + to + " = conv(x = " + from +
             ", weight = w, strides = tensor<int32, [2]>([1, 1]), dilations = tensor<int32, [2]>([1, 1]), groups = "
             "int32(1), "
             "pad = tensor<int32, [4]>([0, 0, 0, 0]), pad_type = string(\"same\"))[name = string(\"" +
             to + "\")];\n";
    };
    return program(
        type + " x",
        " tensor<fp32, [20, 20, 3, 3]> w = const()[name = string(\"w\"), val = tensor<fp32, [20, 20, 3, 3]>(" +
            weights + ")];\n" + conv("a", "x") + " " + type + " b = " + middle + "[name = string(\"b\")];\n" +
            conv("c", "b"),
        "c");
  };
  const MultiArray x = noise({1, 20, 24, 24});
  const Model ours = Model::from_mil(net("plus_one(x = a)"));
  const Model built_in = Model::from_mil(net("add(x = a, y = fp32(1))"));
  const auto got = values(ours.predict({{"x", x}}).array("c")),
             expected = values(built_in.predict({{"x", x}}).array("c"));
  for (size_t i = 0; i < got.size(); i++) ASSERT_NEAR(got[i], expected[i], 2e-4) << i;
  ModelConfiguration reference;
  reference.device = "reference";
  const auto plain = values(ours.configured(reference).predict({{"x", x}}).array("c"));
  for (size_t i = 0; i < got.size(); i++) ASSERT_NEAR(got[i], plain[i], 2e-4) << i;
}

TEST(Custom, InputsParametersAndWeightsByTheirNames) {
  LayerInfo said;
  std::vector<double> weight;
  const Operation operation(
      "scaled_pair",
      [&](const LayerInfo& info) {
        said = info;
        return std::make_unique<FromParts>(Parts{.evaluate =
                                                     [](const LayerCall& call) {
                                                       for (size_t k = 0; k < 2; k++) {
                                                         const auto x = call.inputs[k].as<const float>();
                                                         const auto y = call.outputs[k].as<float>();
                                                         std::copy(x.begin(), x.end(), y.begin());
                                                       }
                                                     },
                                                 .shapes = [](const auto& in) { return in; },
                                                 .weights = [&](const auto& w) { weight = values(w.at(0)); }});
      },
      {.inputs = {"second", "first"}, .weights = {"table"}});
  const Model model = Model::from_mil(program(
      "tensor<fp32, [2]> x, tensor<fp32, [3]> z",
      R"( tensor<fp32, [3]> p, tensor<fp32, [2]> q = scaled_pair(first = x, second = z, table = tensor<fp32, [2]>([5, 7]), factor = fp32(0.5), mode = string("odd"), many = tensor<int32, [2]>([3, 4]), on = bool(true))[name = string("pair")];)",
      "p, q"));
  const Features out = model.predict(
      {{"x", MultiArray::of(std::vector<float>{1, 2}, {2})}, {"z", MultiArray::of(std::vector<float>{3, 4, 5}, {3})}});
  EXPECT_EQ(values(out.array("p")), (std::vector<double>{3, 4, 5}));
  EXPECT_EQ(values(out.array("q")), (std::vector<double>{1, 2}));
  EXPECT_EQ(weight, (std::vector<double>{5, 7}));
  EXPECT_EQ(said.name, "pair");
  EXPECT_EQ(said.input_names, (std::vector<std::string>{"second", "first"}));
  EXPECT_EQ(std::get<double>(said.parameters.at("factor")), 0.5);
  EXPECT_EQ(std::get<std::string>(said.parameters.at("mode")), "odd");
  EXPECT_EQ(std::get<bool>(said.parameters.at("on")), true);
  EXPECT_EQ(values(std::get<MultiArray>(said.parameters.at("many"))), (std::vector<double>{3, 4}));
  EXPECT_FALSE(said.parameters.contains("table"));
}

TEST(Custom, TilesShareScratchAndEachThreadHasItsOwn) {
  constexpr int64_t kRows = 64;
  const Operation operation("row_sums",
                            {.evaluate =
                                 [](const LayerCall& call) {
                                   const int64_t n = call.inputs[0].shape[1];
                                   if (call.thread_scratch.size() != 16 || call.scratch.size() != 8 ||
                                       reinterpret_cast<uintptr_t>(call.scratch.data()) % 64 != 0)
                                     throw std::runtime_error("scratch");
                                   double* sum = reinterpret_cast<double*>(call.thread_scratch.data());
                                   for (int64_t r = call.begin; r < call.end; r++) {
                                     *sum = 0;
                                     for (int64_t i = 0; i < n; i++)
                                       *sum += call.inputs[0].as<const float>()[static_cast<size_t>(r * n + i)];
                                     call.outputs[0].as<float>()[static_cast<size_t>(r)] = static_cast<float>(*sum);
                                   }
                                 },
                             .shapes = [](const auto& in) { return std::vector<std::vector<int64_t>>{{in[0][0]}}; },
                             .plan = {.tiles = kRows, .scratch = 8, .thread_scratch = 16}});
  const Model model = Model::from_mil(
      program("tensor<fp32, [64, 1000]> x", R"( tensor<fp32, [64]> y = row_sums(x = x)[name = string("s")];)", "y"));
  const MultiArray x = noise({kRows, 1000});
  for (const char* device : {"", "reference"}) {
    ModelConfiguration c;
    c.device = device;
    c.threads = 4;
    const auto y = values(model.configured(c).predict({{"x", x}}).array("y"));
    for (int64_t r = 0; r < kRows; r++) {
      double sum = 0;
      for (int64_t i = 0; i < 1000; i++) sum += x.at(r * 1000 + i);
      EXPECT_NEAR(y[static_cast<size_t>(r)], sum, 1e-3);
    }
  }
}

TEST(Custom, ChannelsLastArrivesAsPixels) {
  const Operation operation("first_channel_of_pixel", {.evaluate =
                                                           [](const LayerCall& call) {
                                                             const auto x = call.inputs[0].as<const float>();
                                                             const auto y = call.outputs[0].as<float>();
                                                             std::copy(x.begin(), x.end(), y.begin());
                                                             for (size_t pixel = 0; pixel < x.size() / 3; pixel++)
                                                               y[pixel * 3] = -1;
                                                           },
                                                       .order = LayerOrder::channels_last});
  const Model model = Model::from_mil(
      program("tensor<fp32, [1, 3, 4, 5]> x",
              R"( tensor<fp32, [1, 3, 4, 5]> y = first_channel_of_pixel(x = x)[name = string("s")];)", "y"));
  const MultiArray x = noise({1, 3, 4, 5});
  const auto y = values(model.predict({{"x", x}}).array("y"));
  for (int64_t i = 0; i < 60; i++) EXPECT_EQ(y[static_cast<size_t>(i)], i < 20 ? -1 : x.at(i));
}

TEST(Custom, Float16ArrivesAsFloat32) {
  std::atomic<int> types{0};
  const Operation operation("half_swish", {.evaluate = [&](const LayerCall& call) {
                              types =
                                  static_cast<int>(call.inputs[0].type) * 100 + static_cast<int>(call.outputs[0].type);
                              evaluate_swish(call);
                            }});
  const std::string text =
      program("tensor<fp16, [4]> x", R"( tensor<fp16, [4]> y = half_swish(x = x)[name = string("s")];)", "y");
  for (const Precision precision : {Precision::at_least, Precision::exact}) {
    ModelConfiguration c;
    c.precision = precision;
    const auto y =
        values(Model::from_mil(text, c)
                   .predict({{"x", MultiArray::of(std::vector<float>{-1, 0, 1, 2}, {4}).converted(DataType::float16)}})
                   .array("y"));
    for (int i = 0; i < 4; i++) EXPECT_NEAR(y[static_cast<size_t>(i)], swish(i - 1), 1e-3);
    EXPECT_EQ(types, 101);
  }
}

TEST(Custom, InputsComeInTheOrderOfTheirNames) {
  const Operation operation("difference", {.evaluate = [](const LayerCall& call) {
                              const auto y = call.outputs[0].as<float>();
                              for (size_t i = 0; i < y.size(); i++)
                                y[i] = call.inputs[0].as<const float>()[i] - call.inputs[1].as<const float>()[i];
                            }});
  for (const std::string arguments : {"first = p, second = q", "second = q, first = p"}) {
    const Model model =
        Model::from_mil(program("tensor<fp32, [2]> p, tensor<fp32, [2]> q",
                                " tensor<fp32, [2]> y = difference(" + arguments + R"()[name = string("s")];)", "y"));
    const auto y = model.predict(
        {{"p", MultiArray::of(std::vector<float>{5, 7}, {2})}, {"q", MultiArray::of(std::vector<float>{1, 2}, {2})}});
    EXPECT_EQ(values(y.array("y")), (std::vector<double>{4, 5})) << arguments;
  }
  expect_error(ErrorKind::malformed, {"operation 's' (difference)", "parameter 'first' is given twice"}, [] {
    Model::from_mil(program("tensor<fp32, [2]> p",
                            R"( tensor<fp32, [2]> y = difference(first = p, first = p)[name = string("s")];)", "y"));
  });
}

TEST(Custom, ShapesThatAreUnknownWhileLoading) {
  const Operation operation(
      "halve", {.evaluate =
                    [](const LayerCall& call) {
                      const auto y = call.outputs[0].as<float>();
                      for (size_t i = 0; i < y.size(); i++) y[i] = call.inputs[0].as<const float>()[2 * i];
                    },
                .shapes = [](const auto& in) { return std::vector<std::vector<int64_t>>{{in[0][0] / 2}}; }});
  const Model model = Model::from_mil(
      program("tensor<fp32, [?]> x", R"( tensor<fp32, [?]> y = halve(x = x)[name = string("s")];)", "y"));
  EXPECT_EQ(values(model.predict({{"x", MultiArray::of(std::vector<float>{1, 2, 3, 4}, {4})}}).array("y")),
            (std::vector<double>{1, 3}));
  EXPECT_EQ(values(model.predict({{"x", MultiArray::of(std::vector<float>{1, 2, 3, 4, 5, 6}, {6})}}).array("y")),
            (std::vector<double>{1, 3, 5}));
}

TEST(Custom, MistakesOfLayersAreErrorsThatNameThem) {
  const auto predict = [] { Model::from_mil(kSwish).predict({{"x", noise({2, 3})}}); };
  {
    const Operation o("my_swish", {.evaluate = [](const LayerCall&) { throw std::runtime_error("no luck"); }});
    expect_error(ErrorKind::data, {"operation 's'", "my_swish", "evaluate", "no luck"}, predict);
  }
  {
    const Operation o("my_swish", {.evaluate = [](const LayerCall&) { throw 7; }});
    expect_error(ErrorKind::data, {"my_swish", "other than a std::exception"}, predict);
  }
  {
    const Operation o("my_swish", {.evaluate = evaluate_swish, .shapes = [](const auto&) {
                                     return std::vector<std::vector<int64_t>>{{2, 3}, {1}};
                                   }});
    expect_error(ErrorKind::data, {"my_swish", "expected 1 shapes, got 2"}, predict);
  }
  {
    const Operation o("my_swish", {.evaluate = evaluate_swish, .shapes = [](const auto&) {
                                     return std::vector<std::vector<int64_t>>{{2, -3}};
                                   }});
    expect_error(ErrorKind::data, {"my_swish", "sizes of 0 or more"}, predict);
  }
  {
    const Operation o("my_swish", {.evaluate = evaluate_swish, .shapes = [](const auto&) {
                                     return std::vector<std::vector<int64_t>>{{2, 4}};
                                   }});
    expect_error(ErrorKind::data, {"my_swish", "expected [2, 3], got [2, 4]"}, predict);
  }
  {
    const Operation o("my_swish", {.evaluate = evaluate_swish, .plan = {.tiles = 0}});
    expect_error(ErrorKind::data, {"my_swish", "at least 1 tile"}, predict);
  }
  {
    const Operation o("my_swish", [](const LayerInfo&) -> std::unique_ptr<CustomLayer> { return nullptr; });
    expect_error(ErrorKind::data, {"my_swish", "made no layer"}, predict);
  }
  expect_error(ErrorKind::invalid_argument, {"'relu'", "Moka's own"},
               [] { register_operation("relu", [](const LayerInfo&) { return nullptr; }); });
  expect_error(ErrorKind::invalid_argument, {"factory"}, [] { register_layer("x", nullptr); });
}

TEST(Custom, NumbersThatNameNoInstanceAreRefused) {
  expect_error(ErrorKind::not_found, {"registered instance 123456"}, [] {
    Model::from_mil(program(
        "tensor<fp32, [2]> x",
        R"( tensor<fp32, [2]> y = moka_registered(inputs = (x), instance = int64(123456), name = string("n"))[name = string("s")];)",
        "y"));
  });
}

TEST(Custom, WritesOutsideOfOutputsAreFound) {
  int64_t at = 0;
  const Operation o("my_swish", {.evaluate = [&at](const LayerCall& call) {
                      evaluate_swish(call);
                      static_cast<float*>(call.outputs[0].data)[at] = 1;
                    }});
  const auto predict = [] { Model::from_mil(kSwish).predict({{"x", noise({2, 3})}}); };
  struct Checking {
    Checking() { set_check_layers(true); }
    ~Checking() { set_check_layers(false); }
  } checking;
  EXPECT_NO_THROW(predict());
  at = 6;
  expect_error(ErrorKind::data, {"my_swish", "behind the end of output 0"}, predict);
  at = -1;
  expect_error(ErrorKind::data, {"my_swish", "before the beginning of output 0"}, predict);
  // The first page that cannot be touched follows the output's own page and a page of marks.
  at = 2 * ::sysconf(_SC_PAGESIZE) / static_cast<int64_t>(sizeof(float));
  EXPECT_DEATH(predict(), "");
  const Operation changes("my_swish", {.evaluate = [](const LayerCall& call) {
                            evaluate_swish(call);
                            static_cast<float*>(call.inputs[0].data)[0] = 99;
                          }});
  expect_error(ErrorKind::data, {"my_swish", "changed input 0"}, predict);
}

TEST(Custom, LayersMayPredictThemselves) {
  std::atomic<int> depth{0};
  std::optional<Model> model;
  const Operation o("my_swish", {.evaluate = [&](const LayerCall& call) {
                      MultiArray x(DataType::float32, {2, 3});
                      std::memcpy(x.data(), call.inputs[0].data, 6 * sizeof(float));
                      if (depth++ < 3) {
                        const Features inner = model->predict({{"x", x}});
                        std::memcpy(call.outputs[0].data, inner.array("y").data(), 6 * sizeof(float));
                      } else {
                        evaluate_swish(call);
                      }
                    }});
  model = Model::from_mil(kSwish);
  const MultiArray x = noise({2, 3});
  const auto y = values(model->predict({{"x", x}}).array("y"));
  for (size_t i = 0; i < y.size(); i++) EXPECT_NEAR(y[i], swish(x.at(static_cast<int64_t>(i))), 1e-6);
  EXPECT_EQ(depth, 4);
}

TEST(Custom, UnregisteringWhilePredictingIsSafe) {
  auto alive = std::make_shared<int>(1);
  std::weak_ptr<int> watch = alive;
  std::optional<Model> model;
  {
    const Operation o("my_swish", [alive](const LayerInfo&) {
      return std::make_unique<FromParts>(Parts{.evaluate = [alive](const LayerCall& c) { evaluate_swish(c); }});
    });
    alive.reset();
    model = Model::from_mil(kSwish);
    std::atomic<bool> stop{false};
    std::vector<std::thread> threads;
    for (int t = 0; t < 3; t++)
      threads.emplace_back([&] {
        while (!stop) model->predict({{"x", noise({2, 3})}});
      });
    for (int i = 0; i < 200; i++) {
      unregister_operation("my_swish");
      register_operation(
          "my_swish", [](const LayerInfo&) { return std::make_unique<FromParts>(Parts{.evaluate = evaluate_swish}); });
    }
    stop = true;
    for (auto& t : threads) t.join();
  }
  EXPECT_FALSE(watch.expired());
  EXPECT_NO_THROW(model->predict({{"x", noise({2, 3})}}));
  model.reset();
  EXPECT_TRUE(watch.expired());
}

TEST(Registrations, EndWithTheirScope) {
  const auto times = [](float factor) {
    return [factor](const LayerInfo&) {
      return std::make_unique<FromParts>(Parts{.evaluate = [factor](const LayerCall& call) {
        call.outputs[0].as<float>()[1] = factor * call.inputs[0].as<const float>()[1];
      }});
    };
  };
  const Operation scaled("scaled_in_scope", times(2));
  const std::string text =
      program("tensor<fp32, [2]> x", R"( tensor<fp32, [2]> y = scaled_in_scope(x = x)[name = string("s")];)", "y");
  const auto factor = [](const Model& m) {
    return m.predict({{"x", MultiArray::of(std::vector<float>{1, 4}, {2})}}).array("y").at(1) / 4;
  };
  const auto has = [](const std::vector<std::string>& names, const char* name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  std::optional<Model> kept;
  {
    const RegistrationScope scope;
    register_operation("scaled_in_scope", times(3));
    register_layer("LayerInScope", times(1));
    register_model_file("ModelInScope", "absent.mlmodel");
    EXPECT_TRUE(has(registered_layers(), "LayerInScope"));
    kept = Model::from_mil(text);
    EXPECT_EQ(factor(*kept), 3);
  }
  EXPECT_EQ(factor(*kept), 3);
  EXPECT_EQ(factor(Model::from_mil(text)), 2);
  EXPECT_FALSE(has(registered_layers(), "LayerInScope"));
  EXPECT_FALSE(has(registered_models(), "ModelInScope"));
  {
    const RegistrationScope scope;
    unregister_operation("scaled_in_scope");
  }
  EXPECT_TRUE(has(registered_operations(), "scaled_in_scope"));
}

}  // namespace moka::test
