// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>

#include "import_nn/nn_util.h"

namespace moka::test {

namespace {

struct Case {
  std::string group;
  Json data;
};

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const auto& [group, file] : golden("nn_layers"))
    for (const auto& c : file.at("cases")) all.push_back({group, c});
  return all;
}

class NnLayers : public testing::TestWithParam<Case> {};

void expect_tensor(const ir::RuntimeValue& actual, const Json& expected, double tolerance, const std::string& name) {
  ASSERT_EQ(actual.tensor.shape().to_vector(), expected.at("shape").get<std::vector<int64_t>>()) << name;
  const auto& data = expected.at("data");
  ASSERT_EQ(static_cast<size_t>(actual.tensor.count()), data.size()) << name;
  for (size_t i = 0; i < data.size(); i++) {
    double want = data[i], got = ir::load_f64(actual.tensor.view(), static_cast<int64_t>(i));
    ASSERT_LE(std::abs(got - want), tolerance * std::max(1.0, std::abs(want)))
        << name << "[" << i << "]: " << got << ", expected " << want;
  }
}

TEST_P(NnLayers, MatchesNumPy) {
  const Json& c = GetParam().data;
  auto file = format::open_model_bytes(Bytes::from(base64(c.at("model"))), {});
  ASSERT_TRUE(file.ok()) << file.error().to_string();
  std::map<std::string, ir::Type> types;
  std::map<std::string, ir::Tensor> inputs;
  for (const auto& [name, v] : c.at("inputs").items()) {
    inputs[name] = ir::Tensor::f32(shape_of(v.at("shape")), v.at("data").get<std::vector<float>>());
    types[name] = ir::Type::tensor(ir::DType::fp32, inputs[name].shape());
  }
  if (c.contains("declared"))
    for (const auto& [name, shape] : c.at("declared").items())
      types[name] =
          shape.is_null() ? ir::Type::unranked(ir::DType::fp32) : ir::Type::tensor(ir::DType::fp32, shape_of(shape));
  auto network = import_network(*file, types);
  ASSERT_TRUE(network.ok()) << network.error().to_string();
  auto results = run(*network, inputs);
  ASSERT_TRUE(results.ok()) << results.error().to_string();
  for (const auto& [name, want] : c.at("outputs").items()) {
    ASSERT_TRUE(results->contains(name)) << name;
    const auto& got = results->at(name);
    if (want.is_string()) {
      EXPECT_EQ(got.tensor.text(), want.get<std::string>());
    } else if (!want.contains("shape")) {
      ASSERT_NE(got.dict, nullptr);
      ASSERT_EQ(got.dict->size(), want.size());
      for (size_t i = 0; i < got.dict->size(); i++)
        EXPECT_NEAR(got.dict->values[i], want.at(got.dict->text_keys[i]).get<double>(), 1e-5);
    } else {
      expect_tensor(got, want, c.at("tolerance"), name);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Golden, NnLayers, testing::ValuesIn(cases()), [](const auto& info) {
  return info.param.group + "_" + info.param.data.at("name").template get<std::string>();
});

}  // namespace

}  // namespace moka::test
