// SPDX-License-Identifier: Apache-2.0
#include "edit_util.h"

#include <algorithm>

namespace moka::edit_test {
namespace {

const std::vector<float> kWeight = {1, -2, 0.5f, 3, 0.25f, 1, -1, 2, -3, 1, 4, -0.5f};
const std::vector<float> kBias = {0.5f, -1, 2};

FeatureDescription array_feature(const std::string& name, std::vector<int64_t> shape) {
  FeatureDescription f;
  f.name = name;
  f.array.type = DataType::float32;
  f.array.shape = std::move(shape);
  return f;
}

}  // namespace

MultiArray array(const std::vector<float>& numbers, std::vector<int64_t> shape) {
  MultiArray out(DataType::float32, std::move(shape));
  std::copy(numbers.begin(), numbers.end(), out.as<float>().begin());
  return out;
}

std::vector<float> numbers(const FeatureValue& value) {
  const MultiArray dense = std::get<MultiArray>(value).converted(DataType::float32);
  return {dense.as<float>().begin(), dense.as<float>().end()};
}

std::vector<float> predict(const ModelSource& source, const Features& inputs, const std::string& output) {
  return numbers(source.load().predict(inputs).at(output));
}

ModelSource program(const std::string& opset) {
  ProgramBuilder b(opset);
  const auto x = b.input("x", DataType::float32, {1, 4});
  const auto middle =
      b.op("linear", {{"x", x}, {"weight", array(kWeight, {3, 4})}, {"bias", array(kBias, {3})}}, "middle");
  b.output(b.op("relu", {{"x", middle}}, "y"));
  return b.source();
}

std::vector<float> middle_of(const std::vector<float>& x) {
  std::vector<float> out = kBias;
  for (size_t i = 0; i < out.size(); ++i)
    for (size_t k = 0; k < x.size(); ++k) out[i] += kWeight[i * x.size() + k] * x[k];
  return out;
}

std::vector<float> relu(std::vector<float> x) {
  for (float& v : x) v = std::max(v, 0.0f);
  return x;
}

ModelSource network() {
  ModelDescription d;
  d.specification_version = 4;
  d.functions.resize(1);
  d.functions[0].inputs = {array_feature("x", {4})};
  d.functions[0].outputs = {array_feature("y", {3})};
  Message model = describe_model(d);
  Message content = model.add("neuralNetwork");
  Message dense = content.add("layers");
  dense.set("name", "dense").set("input", "x").set("output", "middle");
  Message product = dense.add("innerProduct");
  product.set("inputChannels", 4).set("outputChannels", 3).set("hasBias", Message::Scalar(true));
  product.add("weights").set("floatValue", array(kWeight, {12}));
  product.add("bias").set("floatValue", array(kBias, {3}));
  Message last = content.add("layers");
  last.set("name", "last").set("input", "middle").set("output", "y");
  last.add("activation").add("ReLU");
  return ModelSource(model);
}

}  // namespace moka::edit_test
