// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <limits>

#include "import/onnx_model.h"

/// Classifiers of ONNX: labels, dictionaries of probabilities, trees and encoders.
namespace moka::import::onnx {
namespace {

format::Attribute strings(const std::string& name, std::vector<std::string> v) {
  format::Attribute a;
  a.name = name, a.kind = format::Attribute::Kind::strings, a.strings = std::move(v);
  return a;
}

format::Attribute numbers(const std::string& name, std::vector<float> v) {
  format::Attribute a;
  a.name = name, a.kind = format::Attribute::Kind::numbers, a.numbers = std::move(v);
  return a;
}

format::Node ml(const std::string& type, std::vector<std::string> in, std::vector<std::string> out,
                std::vector<format::Attribute> attributes) {
  format::Node n = node(type, std::move(in), std::move(out), std::move(attributes));
  n.domain = "ai.onnx.ml";
  return n;
}

format::Tensor texts(const std::string& name, std::vector<std::string> v) {
  format::Tensor t;
  t.name = name, t.type = format::DataType::string, t.dims = {static_cast<int64_t>(v.size())}, t.strings = std::move(v);
  return t;
}

constexpr auto kString = format::DataType::string;

format::ValueInfo dictionary(const std::string& name) {
  format::ValueInfo v;
  v.name = name, v.type.kind = format::Type::Kind::sequence;
  return v;
}

/// The label that the model gives.
std::string label_of(const Imported& m, const Tensor& x) {
  const Tensor t = answers(m, {x}).at(m.label.value());
  return t.dtype() == DType::string ? t.text() : std::to_string(ir::load_i64(t.view(), 0));
}

/// The model's dictionary, "a 0.5 b 0.25 ".
std::string probabilities_of(const Imported& m, const Tensor& x) {
  const std::vector<ir::RuntimeValue> given{x};
  const auto out = ir::evaluate(*m.program.functions[0], given);
  EXPECT_TRUE(out.ok()) << out.error().to_string();
  const ir::Dict& d = *out->at(m.probabilities.value()).dict;
  std::string all;
  for (size_t i = 0; i < d.values.size(); ++i)
    all += cat(d.string_keys ? d.text_keys[i] : cat(d.int_keys[i]), " ", d.values[i], " ");
  return all;
}

const std::vector<format::ValueInfo> kThree = {tensor("x", kFloat, {3})};
const Tensor kScores = Tensor::f32({3}, std::vector<float>{0.25f, 0.5f, 0.125f});

TEST(OnnxClassifiers, ALabelThatTheLargestNumberChooses) {
  const auto nodes = {node("Identity", {"x"}, {"p"}),
                      node("ArgMax", {"x"}, {"i"}, {integer("axis", 0), integer("keepdims", 0)}),
                      node("Gather", {"names", "i"}, {"label"})};
  const std::vector<format::ValueInfo> outputs = {tensor("label", kString, {}), tensor("p", kFloat, {3})};
  const Imported named = imported(model(nodes, kThree, outputs, {texts("names", {"a", "b", "c"})}));
  EXPECT_EQ(named.label, 0u);
  EXPECT_EQ(named.probabilities, 1u);
  EXPECT_EQ(named.outputs.at(0).value->name, "label");
  EXPECT_EQ(named.outputs.at(1).value->name, "p");
  EXPECT_EQ(label_of(named, kScores), "b");
  EXPECT_EQ(probabilities_of(named, kScores), "a 0.25 b 0.5 c 0.125 ");
  const Imported numbered =
      imported(model(nodes, kThree, outputs, {weight<int64_t>("names", kInt64, {3}, {7, int64_t{1} << 40, 9})}));
  EXPECT_EQ(label_of(numbered, kScores), "1099511627776");
  EXPECT_EQ(probabilities_of(numbered, kScores), "7 0.25 1099511627776 0.5 9 0.125 ");
  // Without the probabilities, a string is a label, and an integer is a number.
  const Imported alone = imported(model(nodes, kThree, {outputs[0]}, {texts("names", {"a", "b", "c"})}));
  EXPECT_EQ(label_of(alone, kScores), "b");
  EXPECT_FALSE(alone.probabilities.has_value());
  const Imported number =
      imported(model(nodes, kThree, {outputs[0]}, {weight<int64_t>("names", kInt64, {3}, {7, 8, 9})}));
  EXPECT_FALSE(number.label.has_value());
  EXPECT_EQ(elements<int32_t>(answers(number, {kScores})[0]), std::vector<int32_t>{8});
}

TEST(OnnxClassifiers, StringsAreOnlyLabels) {
  const std::vector<format::Node> nodes = {node("ArgMax", {"x"}, {"i"}, {integer("axis", 1), integer("keepdims", 0)}),
                                           node("Gather", {"names", "i"}, {"label"}), node("Relu", {"label"}, {"y"})};
  const auto of = [&](const std::vector<int64_t>& shape, const std::string& output) {
    return refusal(
        model(nodes, {tensor("x", kFloat, shape)}, {tensor(output, kString, {})}, {texts("names", {"a", "b"})}));
  };
  EXPECT_EQ(of({1, 2}, "y"),
            "node 'y' (Relu, opset 17): value 'label': Core ML's programs compute with no strings; it can only be an "
            "output of "
            "a classifier");
  const std::vector<format::Node> rows(nodes.begin(), nodes.end() - 1);
  EXPECT_NE(
      refusal(model(rows, {tensor("x", kFloat, {2, 2})}, {tensor("label", kString, {2})}, {texts("names", {"a", "b"})}))
          .find("output 'label': a classifier of Core ML gives one label"),
      std::string::npos);
}

/// One split of feature 0 with leaves of weight 1 (true) and 2.
std::vector<format::Attribute> split(const std::string& mode, double at, const std::string& leaves) {
  format::Tensor values = weight<double>("", format::DataType::float64, {3}, {at, 0, 0});
  format::Tensor weights = weight<double>("", format::DataType::float64, {2}, {1, 2});
  return {integers("nodes_treeids", {0, 0, 0}),
          integers("nodes_nodeids", {0, 1, 2}),
          integers("nodes_featureids", {0, 0, 0}),
          strings("nodes_modes", {mode, "LEAF", "LEAF"}),
          integers("nodes_truenodeids", {1, 0, 0}),
          integers("nodes_falsenodeids", {2, 0, 0}),
          attribute("nodes_values_as_tensor", values),
          integers(leaves + "_treeids", {0, 0}),
          integers(leaves + "_nodeids", {1, 2}),
          integers(leaves + "_ids", {0, 0}),
          attribute(leaves + "_weights_as_tensor", weights)};
}

/// The float nearest to 0.1 is larger than the double 0.1, and the one nearest to 0.3 is larger, too; that of 0.7 is
/// smaller.
TEST(OnnxClassifiers, TreesCompareFloatsWithDoubles) {
  const auto answer = [](const std::string& mode, double at, float x) {
    const auto made = imported(model({ml("TreeEnsembleRegressor", {"x"}, {"y"}, split(mode, at, "target"))},
                                     {tensor("x", kFloat, {1, 1})}, {tensor("y", kFloat, {1, 1})}));
    return run(made, Tensor::f32({1, 1}, std::vector<float>{x}))[0] == 1;
  };
  for (const double at : {0.1, 0.3, 0.7, 0.5})
    for (const float x : {static_cast<float>(at), std::nextafter(static_cast<float>(at), 0.0f),
                          std::nextafter(static_cast<float>(at), 1.0f)}) {
      const double v = x;
      EXPECT_EQ(answer("BRANCH_LEQ", at, x), v <= at) << at << " " << v;
      EXPECT_EQ(answer("BRANCH_LT", at, x), v < at) << at << " " << v;
      EXPECT_EQ(answer("BRANCH_GTE", at, x), v >= at) << at << " " << v;
      EXPECT_EQ(answer("BRANCH_GT", at, x), v > at) << at << " " << v;
      EXPECT_EQ(answer("BRANCH_EQ", at, x), v == at) << at << " " << v;
      EXPECT_EQ(answer("BRANCH_NEQ", at, x), v != at) << at << " " << v;
    }
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_FALSE(answer("BRANCH_LEQ", 0.5, nan));
  EXPECT_FALSE(answer("BRANCH_GTE", 0.5, nan));
}

/// The sum of leaves that all weigh class 0 of two is the score of class 1. onnxruntime gives the same.
TEST(OnnxClassifiers, TreesThatWeighOneOfTwoClasses) {
  auto attributes = split("BRANCH_LEQ", 0.5, "class");
  attributes[10] =
      attribute("class_weights_as_tensor", weight<double>("", format::DataType::float64, {2}, {0.25, 0.75}));
  attributes.push_back(strings("classlabels_strings", {"no", "yes"}));
  const Imported m =
      imported(model({ml("TreeEnsembleClassifier", {"x"}, {"label", "p"}, attributes),
                      ml("ZipMap", {"p"}, {"named"}, {strings("classlabels_strings", {"no", "yes"})})},
                     {tensor("x", kFloat, {1, 1})}, {tensor("label", kString, {1}), dictionary("named")}));
  EXPECT_EQ(label_of(m, Tensor::f32({1, 1}, std::vector<float>{0})), "no");
  EXPECT_EQ(label_of(m, Tensor::f32({1, 1}, std::vector<float>{1})), "yes");
  EXPECT_EQ(probabilities_of(m, Tensor::f32({1, 1}, std::vector<float>{0})), "no 0.75 yes 0.25 ");
  attributes[10] = attribute("class_weights_as_tensor", weight<double>("", format::DataType::float64, {2}, {-0.5, 1}));
  const Imported signs =
      imported(model({ml("TreeEnsembleClassifier", {"x"}, {"label", "p"}, attributes)}, {tensor("x", kFloat, {1, 1})},
                     {tensor("label", kString, {1}), tensor("p", kFloat, {1, 2})}));
  EXPECT_EQ(probabilities_of(signs, Tensor::f32({1, 1}, std::vector<float>{0})), "no 0.5 yes -0.5 ");
  attributes[9] = integers("class_ids", {1, 1});
  const Imported plain =
      imported(model({ml("TreeEnsembleClassifier", {"x"}, {"label", "p"}, attributes)}, {tensor("x", kFloat, {1, 1})},
                     {tensor("label", kString, {1}), tensor("p", kFloat, {1, 2})}));
  EXPECT_EQ(probabilities_of(plain, Tensor::f32({1, 1}, std::vector<float>{1})), "no 0 yes 1 ");
}

TEST(OnnxClassifiers, RefusesTreesThatAreNone) {
  const auto of = [](size_t i, format::Attribute a) {
    auto attributes = split("BRANCH_LEQ", 0.5, "target");
    attributes[i] = std::move(a);
    return refusal(model({ml("TreeEnsembleRegressor", {"x"}, {"y"}, attributes)}, {tensor("x", kFloat, {1, 1})},
                         {tensor("y", kFloat, {1, 1})}));
  };
  EXPECT_NE(of(1, integers("nodes_nodeids", {0, 1, 1})).find("tree 0 has two nodes 1"), std::string::npos);
  EXPECT_NE(of(4, integers("nodes_truenodeids", {5, 0, 0})).find("tree 0 has no node 5"), std::string::npos);
  EXPECT_NE(of(4, integers("nodes_truenodeids", {0, 0, 0})).find("form a circle"), std::string::npos);
  EXPECT_NE(of(2, integers("nodes_featureids", {1, 0, 0})).find("feature 1 of 1"), std::string::npos);
  EXPECT_NE(of(3, strings("nodes_modes", {"BRANCH", "LEAF", "LEAF"})).find("mode 'BRANCH'"), std::string::npos);
  EXPECT_NE(of(9, integers("target_ids", {0, 1})).find("a leaf of target 1 of 1"), std::string::npos);
  EXPECT_NE(of(0, integers("nodes_treeids", {0, 0})).find("an attribute of 2 nodes, nodes_featureids of 3"),
            std::string::npos);
}

TEST(OnnxClassifiers, EncodersMapIntegersAndLabels) {
  const auto encoder = ml("LabelEncoder", {"x"}, {"s"},
                          {integers("keys_int64s", {0, 2, 3}), strings("values_strings", {"zero", "two", "three"}),
                           text("default_string", "other")});
  const std::vector<format::ValueInfo> in = {tensor("x", kInt64, {1})};
  const auto number = [](int64_t v) { return Tensor::i32({v}); };
  const Imported names = imported(model({encoder}, in, {tensor("s", kString, {1})}));
  EXPECT_EQ(label_of(names, number(2)), "two");
  EXPECT_EQ(label_of(names, number(1)), "other");
  const Imported hot =
      imported(model({encoder, ml("OneHotEncoder", {"s"}, {"y"}, {strings("cats_strings", {"three", "zero"})})}, in,
                     {tensor("y", kFloat, {1, 2})}));
  EXPECT_EQ(run(hot, number(3)), (std::vector<float>{1, 0}));
  EXPECT_EQ(run(hot, number(0)), (std::vector<float>{0, 1}));
  EXPECT_EQ(run(hot, number(2)), (std::vector<float>{0, 0}));
  const Imported integers_hot = imported(model({ml("OneHotEncoder", {"x"}, {"y"}, {integers("cats_int64s", {5, -2})})},
                                               in, {tensor("y", kFloat, {1, 2})}));
  EXPECT_EQ(run(integers_hot, number(-2)), (std::vector<float>{0, 1}));
  const Imported back =
      imported(model({encoder, ml("LabelEncoder", {"s"}, {"y"},
                                  {strings("keys_strings", {"two", "other"}), numbers("values_floats", {2.5f, -1}),
                                   onnx::number("default_float", 9)})},
                     in, {tensor("y", kFloat, {1})}));
  EXPECT_EQ(run(back, number(2)), std::vector<float>{2.5f});
  EXPECT_EQ(run(back, number(7)), std::vector<float>{-1});
  EXPECT_EQ(run(back, number(3)), std::vector<float>{9});
}

TEST(OnnxClassifiers, RefusesEncodersThatAreNone) {
  const auto of = [](std::vector<format::Attribute> attributes) {
    return refusal(model({ml("LabelEncoder", {"x"}, {"y"}, std::move(attributes))}, {tensor("x", kInt64, {1})},
                         {tensor("y", kInt64, {1})}));
  };
  const auto keys = integers("keys_int64s", {1, 2}), values = integers("values_int64s", {3, 4});
  EXPECT_NE(of({keys}).find("it has no values"), std::string::npos);
  EXPECT_NE(of({keys, integers("values_int64s", {3})}).find("2 keys and 1 values"), std::string::npos);
  EXPECT_NE(
      of({keys, values, attribute("default_tensor", texts("", {"a"}))}).find("default_tensor: expected one element"),
      std::string::npos);
  EXPECT_NE(
      of({keys, values, attribute("default_tensor", weight<int64_t>("", kInt64, {0}, {}))}).find("default_tensor"),
      std::string::npos);
}

/// k is the size of an axis that values decide.
TEST(OnnxClassifiers, SortsAllOfUnknownMany) {
  const Imported m = imported(model(
      {node("NonZero", {"x"}, {"at"}), node("Squeeze", {"at", "axes"}, {"some"}), node("Gather", {"x", "some"}, {"v"}),
       node("Shape", {"v"}, {"k"}), node("TopK", {"v", "k"}, {"y", "i"}, {integer("axis", 0)})},
      {tensor("x", kFloat, {5})}, {tensor("y", kFloat, {-1}), tensor("i", kInt64, {-1})},
      {weight<int64_t>("axes", kInt64, {1}, {0})}));
  const auto out = answers(m, {Tensor::f32({5}, std::vector<float>{0, 3, 0, -1, 7})});
  EXPECT_EQ(elements<float>(out[0]), (std::vector<float>{7, 3, -1}));
  EXPECT_EQ(elements<int32_t>(out[1]), (std::vector<int32_t>{2, 0, 1}));
}

}  // namespace
}  // namespace moka::import::onnx
