// SPDX-License-Identifier: Apache-2.0
#include <map>
#include <random>

#include "api/api_util.h"
#include "moka/compute_plan.h"

namespace moka::test {
namespace {

struct Numbers {
  std::vector<int64_t> shape;
  std::vector<float> values;
};
using AllNumbers = std::map<std::string, Numbers>;

/// Multiples of 1/64 around `centre`, which texts hold exactly.
Numbers draw(std::vector<int64_t> shape, std::mt19937& random, float centre = 0) {
  int64_t n = 1;
  for (int64_t d : shape) n *= d;
  Numbers w{std::move(shape), {}};
  std::uniform_int_distribution<int> step(-32, 32);
  for (int64_t i = 0; i < n; i++) w.values.push_back(centre + static_cast<float>(step(random)) / 64);
  return w;
}

std::string nested(const Numbers& w, size_t axis, size_t& at) {
  if (axis == w.shape.size()) return std::to_string(w.values[at++]);
  std::string out = "[";
  for (int64_t i = 0; i < w.shape[axis]; i++) out += (i == 0 ? "" : ", ") + nested(w, axis + 1, at);
  return out + "]";
}

std::string const_op(const std::string& name, const Numbers& w) {
  std::string type = "tensor<fp32, [";
  for (size_t i = 0; i < w.shape.size(); i++) type += (i == 0 ? "" : ", ") + std::to_string(w.shape[i]);
  type += "]>";
  size_t at = 0;
  return type + " " + name + " = const()[name = string(\"" + name + "\"), val = " + type + "(" + nested(w, 0, at) +
         ")];\n";
}

/// Convolutions before and after norms and scales, a layer norm in parts, a linear layer, and a product with a row.
std::string model_text(const AllNumbers& all) {
  std::string body;
  for (const auto& [name, w] : all) body += const_op(name, w);
  return program("tensor<fp32, [1, 8, 12, 12]> x", body + R"(
tensor<fp32, [1, 8, 12, 12]> a0 = mul(x = x, y = before)[name = string("a0")];
tensor<fp32, [1, 8, 12, 12]> a1 = add(x = a0, y = shift)[name = string("a1")];
tensor<fp32, [1, 64, 10, 10]> c1 = conv(x = a1, weight = w1, pad_type = string("valid"))[name = string("c1")];
tensor<fp32, [1, 64, 10, 10]> n1 = batch_norm(x = c1, mean = mean, variance = variance, gamma = gamma, beta = beta)[name = string("n1")];
tensor<fp32, [1, 64, 10, 10]> r1 = relu(x = n1)[name = string("r1")];
tensor<fp32, [1, 64, 10, 10]> c2 = conv(x = r1, weight = w2, bias = b2, groups = int32(64), pad_type = string("same"))[name = string("c2")];
tensor<fp32, [1, 64, 10, 10]> n2 = mul(x = c2, y = after)[name = string("n2")];
tensor<fp32, [1, 64, 10, 10]> c3 = conv(x = n2, weight = w3, pad_type = string("same"))[name = string("c3")];
tensor<fp32, [1, 64, 10, 10]> n3 = batch_norm(x = c3, mean = mean, variance = variance, gamma = gamma, beta = beta)[name = string("n3")];
tensor<fp32, [1, 64, 100]> f = reshape(x = n3, shape = tensor<int32, [3]>([1, 64, 100]))[name = string("f")];
tensor<fp32, [1, 64, 100]> l = layer_norm(x = f, axes = tensor<int32, [1]>([2]))[name = string("l")];
tensor<fp32, [1, 64, 100]> lg = mul(x = l, y = lgamma)[name = string("lg")];
tensor<fp32, [1, 64, 100]> lb = add(x = lg, y = lbeta)[name = string("lb")];
tensor<fp32, [1, 64, 20]> d = linear(x = lb, weight = w4, bias = b4)[name = string("d")];
tensor<fp32, [1, 64, 20]> ds = mul(x = d, y = column)[name = string("ds")];
tensor<fp32, [1, 64, 30]> p = matmul(x = ds, y = w5)[name = string("p")];
tensor<fp32, [1, 64, 30]> y = add(x = p, y = row)[name = string("y")];)",
                 "y");
}

AllNumbers draw_all(uint32_t seed) {
  std::mt19937 random(seed);
  return {{"before", draw({1, 8, 1, 1}, random, 1)},
          {"shift", draw({1, 8, 1, 1}, random)},
          {"w1", draw({64, 8, 3, 3}, random)},
          {"mean", draw({64}, random)},
          {"variance", draw({64}, random, 2)},
          {"gamma", draw({64}, random, 1)},
          {"beta", draw({64}, random)},
          {"w2", draw({64, 1, 3, 3}, random)},
          {"b2", draw({64}, random)},
          {"after", draw({64, 1, 1}, random, 1)},
          {"w3", draw({64, 64, 3, 3}, random)},
          {"lgamma", draw({100}, random, 1)},
          {"lbeta", draw({1, 1, 100}, random)},
          {"w4", draw({20, 100}, random)},
          {"b4", draw({20}, random)},
          {"column", draw({20}, random, 1)},
          {"w5", draw({20, 30}, random)},
          {"row", draw({30}, random)}};
}

MultiArray array_of(const Numbers& w) {
  MultiArray out(DataType::float32, w.shape);
  std::copy(w.values.begin(), w.values.end(), out.as<float>().begin());
  return out;
}

ModelConfiguration with_parameters(std::vector<std::string> names = {"*"}) {
  ModelConfiguration c;
  c.threads = 1;
  c.parameters = std::move(names);
  return c;
}

std::vector<std::string> kernels_of(const Model& model) {
  std::vector<std::string> out;
  for (const PlannedOperation& op : model.compute_plan().operations) out.push_back(op.type + " " + op.kernel);
  return out;
}

/// Parameters give the bits and the kernels of constants, and so do other values of them.
TEST(Parameters, AreAsConstants) {
  const AllNumbers first = draw_all(1), second = draw_all(2);
  const Model plain = Model::from_mil(model_text(first)), other = Model::from_mil(model_text(second));
  const Model model = Model::from_mil(model_text(first), with_parameters());
  EXPECT_EQ(model.parameters().size(), first.size());
  EXPECT_EQ(kernels_of(model), kernels_of(plain));
  expect_same_bits(model, plain);
  std::map<std::string, MultiArray> values;
  for (const auto& [name, w] : second) values.emplace(name, array_of(w));
  const Model replaced = model.with_parameters(values);
  EXPECT_EQ(kernels_of(replaced), kernels_of(plain));
  expect_same_bits(replaced, other);
  expect_same_bits(model, plain);
}

/// Each of the weights alone.
TEST(Parameters, ChangeOneByOne) {
  AllNumbers weights = draw_all(1);
  const AllNumbers second = draw_all(2);
  Model model = Model::from_mil(model_text(weights), with_parameters());
  for (const auto& [name, w] : second) {
    SCOPED_TRACE(name);
    weights[name] = w;
    model = model.with_parameters({{name, array_of(w)}});
    EXPECT_EQ(test::values(model.parameter(name)), test::values(array_of(w)));
    expect_same_bits(model, Model::from_mil(model_text(weights)));
  }
}

/// Only what is made from new weights is made again.
TEST(Parameters, PackOnlyWhatChanged) {
  const AllNumbers first = draw_all(1), second = draw_all(2);
  const Model model = Model::from_mil(model_text(first), with_parameters());
  const Features in = random_inputs(model.function(), 3);
  const auto memory = [&](const Model& m) {
    m.predict(in);
    return m.compute_plan(in).memory;
  };
  const MemoryUse whole = memory(model);
  const MemoryUse same = memory(model.with_parameters({}));
  EXPECT_EQ(same.packed, 0u);
  EXPECT_GE(same.shared, whole.packed);
  const MemoryUse one = memory(model.with_parameters({{"w4", array_of(second.at("w4"))}}));
  EXPECT_GT(one.packed, 0u);
  EXPECT_LE(one.packed, size_t{4 * 32 * 100 + 4 * 64});
  EXPECT_EQ(one.shared + one.packed, same.shared);
}

/// Versions that are gone do not count for the budget of later ones.
TEST(Parameters, EachVersionHasItsBudget) {
  AllNumbers weights = draw_all(1);
  ModelConfiguration c = with_parameters();
  c.memory_budget = size_t{2} << 20;
  const Model model = Model::from_mil(model_text(weights), c);
  const Features in = random_inputs(model.function(), 3);
  MultiArray w3 = array_of(weights.at("w3"));
  for (int i = 0; i < 40; i++) {
    w3.as<float>()[0] = static_cast<float>(i);
    ASSERT_NO_THROW(model.with_parameters({{"w3", w3}}).predict(in)) << i;
  }
}

TEST(Parameters, RoundToTheirType) {
  const std::string text = program(
      "tensor<fp16, [2, 4]> x",
      R"(tensor<fp16, [3, 4]> w = const()[name = string("w"), val = tensor<fp16, [3, 4]>([[1, 2, 3, 4], [5, 6, 7, 8], [9, 10, 11, 12]])];
tensor<fp16, [2, 3]> y = linear(x = x, weight = w)[name = string("y")];)",
      "y");
  const Model model = Model::from_mil(text, with_parameters({"w"}));
  ASSERT_EQ(model.parameters().size(), 1u);
  EXPECT_EQ(model.parameters()[0].name, "w");
  EXPECT_EQ(model.parameters()[0].type, DataType::float16);
  EXPECT_EQ(model.parameters()[0].shape, (std::vector<int64_t>{3, 4}));
  EXPECT_EQ(model.parameter("w").at(11), 12);
  MultiArray w(DataType::float32, {3, 4});
  for (float& v : w.as<float>()) v = 0.1f;
  EXPECT_EQ(model.with_parameters({{"w", w}}).parameter("w").at(0), 0.0999755859375);
  w.as<float>()[5] = 1e6f;
  expect_error(ErrorKind::invalid_argument, {"parameter 'w'", "fp16", "1e+06", "element 5"}, [&] {
    model.with_parameters({{"w", w}});
  });
  expect_error(ErrorKind::invalid_argument, {"parameter 'w'", "expected shape", "[3, 4]", "[4, 3]"}, [&] {
    model.with_parameters({{"w", MultiArray(DataType::float32, {4, 3})}});
  });
  expect_error(ErrorKind::not_found, {"parameter 'v'", "'w'"}, [&] { model.with_parameters({{"v", w}}); });
  expect_error(ErrorKind::not_found, {"parameter 'w'", "without parameters"},
               [&] { Model::from_mil(text).parameter("w"); });
  expect_error(ErrorKind::not_found, {"no weights", "'encoder*'"}, [&] {
    Model::from_mil(text, with_parameters({"w", "encoder*"}));
  });
}

/// An operation that must know a weight before it runs keeps it.
TEST(Parameters, LeaveWhatMustBeKnown) {
  const std::string text = program(
      "tensor<fp32, [1, 1, 4, 4]> x",
      R"(tensor<fp32, [1, 1, 8, 8]> u = upsample_nearest_neighbor(x = x, scale_factor_height = fp32(2), scale_factor_width = fp32(2))[name = string("u")];
tensor<fp32, [1, 1, 8, 8]> y = prelu(x = u, alpha = tensor<fp32, [1]>([0.5]))[name = string("y")];)",
      "y");
  const Model model = Model::from_mil(text, with_parameters());
  ASSERT_EQ(model.parameters().size(), 1u);
  EXPECT_EQ(model.parameters()[0].name, "y_alpha");
  MultiArray alpha(DataType::float32, {1});
  alpha.as<float>()[0] = 0.25f;
  const Features in{{"x", counted({1, 1, 4, 4})}};
  EXPECT_FLOAT_EQ(static_cast<float>(model.with_parameters({{"y_alpha", alpha}}).predict(in).array("y").at(0)),
                  -0.075f);
}

/// A constant may have the name that another operation's weights would get.
TEST(Parameters, HaveNamesOfTheirOwn) {
  const std::string text =
      program("tensor<fp32, [2]> x",
              R"(tensor<fp32, [3, 1]> w_y = const()[name = string("w_y"), val = tensor<fp32, [3, 1]>([[1], [2], [3]])];
tensor<fp32, [2]> w = mul(x = x, y = tensor<fp32, [2]>([4, 5]))[name = string("w")];
tensor<fp32, [3, 2]> y = mul(x = w, y = w_y)[name = string("y")];)",
              "y");
  const Model model = Model::from_mil(text, with_parameters());
  const auto all = model.parameters();
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].name, "w_y");
  EXPECT_EQ(all[0].shape, (std::vector<int64_t>{3, 1}));
  EXPECT_EQ(all[1].name, "w_y_1");
  EXPECT_EQ(all[1].shape, (std::vector<int64_t>{2}));
  const Model other = model.with_parameters({{"w_y", counted({3, 1}, 10)}, {"w_y_1", counted({2}, 6)}});
  EXPECT_EQ(test::values(other.predict({{"x", counted({2}, 1)}}).array("y")),
            (std::vector<double>{-1620, -720, -1080, -480, -540, -240}));
}

TEST(Parameters, StayInAnotherConfiguration) {
  const std::string text =
      program("tensor<fp32, [2]> x",
              R"(tensor<fp32, [2]> w = const()[name = string("w"), val = tensor<fp32, [2]>([1, 2])];
tensor<fp32, [2]> y = mul(x = x, y = w)[name = string("y")];)",
              "y");
  MultiArray five(DataType::float32, {2});
  for (float& v : five.as<float>()) v = 5;
  const Model model = Model::from_mil(text, with_parameters({"w"})).with_parameters({{"w", five}});
  for (const char* function : {"", "main"}) {
    ModelConfiguration c;
    c.function_name = function;
    const Model other = model.configured(c).configured(c);
    EXPECT_EQ(test::values(other.parameter("w")), (std::vector<double>{5, 5})) << function;
    EXPECT_EQ(other.configuration().parameters, std::vector<std::string>{"w"}) << function;
  }
}

/// Values that operations read twice, in a chain: each is visited once.
TEST(Parameters, AndConstantsMayDouble) {
  for (const char* start : {"fill(shape = tensor<int32, [1]>([40000]), value = fp32(1))",
                            "tile(x = w, reps = tensor<int32, [1]>([40000]))"}) {
    std::string body = "tensor<fp32, [1]> w = const()[name = string(\"w\"), val = tensor<fp32, [1]>([1])];\n";
    body += std::string("tensor<fp32, [40000]> c0 = ") + start + "[name = string(\"c0\")];\n";
    for (int i = 0; i < 40; i++) {
      const std::string from = "c" + std::to_string(i), to = "c" + std::to_string(i + 1);
      body += "tensor<fp32, [40000]> " + to + " = add(x = " + from + ", y = " + from + ")[name = string(\"" + to +
              "\")];\n";
    }
    body += "tensor<fp32, [40000]> z = mul(x = c40, y = w)[name = string(\"z\")];\n";
    body += "tensor<fp32, [40000]> y = mul(x = x, y = z)[name = string(\"y\")];";
    const Model m = Model::from_mil(program("tensor<fp32, [1]> x", body, "y"), with_parameters());
    EXPECT_EQ(m.predict({{"x", random_array({1}, 1, 0)}}).array("y").at(0), 0);
    MultiArray one(DataType::float32, {1});
    one.as<float>()[0] = 1;
    EXPECT_EQ(m.predict({{"x", one}}).array("y").at(39999), 0x1p40);
  }
}

/// Each operation behind a convolution makes a scale and a shift of those before it.
TEST(Parameters, MayScaleOftenBehindAConvolution) {
  std::string body =
      "tensor<fp32, [8]> w = const()[name = string(\"w\"), val = tensor<fp32, [8]>([1, 2, 3, 4, 5, 6, 7, 8])];\n";
  body +=
      "tensor<fp32, [1, 8, 2, 2]> c0 = conv(x = x, weight = tensor<fp32, [8, 1, 1, 1]>([[[[1]]], [[[1]]], [[[1]]], "
      "[[[1]]], [[[1]]], [[[1]]], [[[1]]], [[[1]]]]))[name = string(\"c0\")];\n";
  for (int i = 0; i < 30; i++) {
    const std::string from = "c" + std::to_string(i), to = "c" + std::to_string(i + 1);
    body += "tensor<fp32, [1, 8, 2, 2]> " + to + " = batch_norm(x = " + from +
            ", mean = w, variance = w, gamma = w, beta = w)[name = string(\"" + to + "\")];\n";
  }
  const std::string text = program("tensor<fp32, [1, 1, 2, 2]> x", body, "c30");
  expect_same_bits(Model::from_mil(text, with_parameters()), Model::from_mil(text));
}

/// Models for other outputs and batches have the same parameters.
TEST(Parameters, HoldForSelectedOutputs) {
  const std::string text =
      program("tensor<fp32, [2]> x",
              R"(tensor<fp32, [2]> a = const()[name = string("a"), val = tensor<fp32, [2]>([1, 2])];
tensor<fp32, [2]> b = const()[name = string("b"), val = tensor<fp32, [2]>([3, 4])];
tensor<fp32, [2]> y = mul(x = x, y = a)[name = string("y")];
tensor<fp32, [2]> z = mul(x = x, y = b)[name = string("z")];)",
              "y, z");
  MultiArray five(DataType::float32, {2});
  for (float& v : five.as<float>()) v = 5;
  const Model model = Model::from_mil(text, with_parameters({"a", "b"})).with_parameters({{"b", five}});
  PredictionOptions options;
  options.outputs = {"z"};
  EXPECT_EQ(test::values(model.predict({{"x", counted({2}, -1)}}, options).array("z")), (std::vector<double>{15, 10}));
}

}  // namespace
}  // namespace moka::test
