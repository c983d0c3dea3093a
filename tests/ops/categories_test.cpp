// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <limits>

#include "ops/operation_util.h"

namespace moka::ops {
namespace {

using namespace ir;

Tensor whole(std::vector<int64_t> values) {
  Tensor t = Tensor::zeros(DType::int64, {static_cast<int64_t>(values.size())}).value();
  std::copy(values.begin(), values.end(), t.mut<int64_t>().begin());
  return t;
}

std::vector<double> one_hot(double x) {
  const Tensor y = test::call("ml_one_hot", {{"x", Tensor::scalar(DType::fp64, x)},
                                             {"categories", whole({0, 1, 2})},
                                             {"positions", whole({0, 1, 2})},
                                             {"handle_unknown", std::string("ignore")},
                                             {"dense", true}});
  std::vector<double> out;
  for (int64_t i = 0; i < y.view().count(); ++i) out.push_back(load_f64(y.view(), i));
  return out;
}

TEST(Categories, AFractionIsNoWholeCategory) {
  EXPECT_EQ(one_hot(1), (std::vector<double>{0, 1, 0}));
  for (const double x : {1.5, -0.9, std::numeric_limits<double>::quiet_NaN(), 1e300})
    EXPECT_EQ(one_hot(x), (std::vector<double>{0, 0, 0})) << x;
  EXPECT_TRUE(test::refuses("ml_one_hot",
                            {{"x", Tensor::scalar(DType::fp64, 1.5)},
                             {"categories", whole({0, 1, 2})},
                             {"positions", whole({0, 1, 2})},
                             {"handle_unknown", std::string("error")},
                             {"dense", true}},
                            "got 1.5"));
}

}  // namespace
}  // namespace moka::ops
