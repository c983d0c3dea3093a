// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "devices/reference/device.h"
#include "ir/text_reader.h"
#include "plan/constants.h"
#include "plan/plan.h"

/// Plans are kept until they exceed the bytes that the model may keep, whatever their number.
namespace moka::runtime {
namespace {

using namespace ir;

constexpr const char* kSum = R"(program(1.0)
{
 func main<ios18>(tensor<fp32, [?]> x) {
  tensor<fp32, [?]> y = add(x = x, y = fp32(1.0));
 } -> (y);
}
)";

class KeptPlans : public ::testing::Test {
 protected:
  void SetUp() override {
    options_.devices = {&devices::reference::device()};
    options_.constants = std::make_shared<plan::ConstantPool>(nullptr);
    options_.kept = std::make_shared<plan::KeptPlans>();
  }
  std::shared_ptr<const plan::Plan> plan_for(plan::PlanCache& cache, int64_t n) {
    const std::vector<Type> types{Type::tensor(DType::fp32, {n})};
    return cache
        .get(types, options_, [&] { return plan::plan_block(program_.functions[0]->body(), types, nullptr, options_); })
        .value();
  }
  static std::vector<int64_t> sizes(const plan::PlanCache& cache) {
    std::vector<int64_t> out;
    for (const auto& p : cache.snapshot()) out.push_back(p->sequence.places[0].type.shape()[0]);
    return out;
  }

  Program program_ = read_text(kSum, ops::table(), {}).value();
  plan::PlanOptions options_;
};

TEST_F(KeptPlans, CountTheConstantsThatTheirTypesMake) {
  const Value& x = *program_.functions[0]->body().inputs()[0];
  const auto with = [&](Tensor constant) {
    auto resolved = std::make_shared<plan::Resolved>();
    resolved->index[&x] = 0;
    resolved->values.push_back({&x, x.type, plan::ResolvedValue::Source::constant, std::move(constant)});
    return resolved;
  };
  plan::Plan plan;
  plan.resolved = with({});
  const size_t before = plan.bytes();
  plan.resolved = with(Tensor::zeros(DType::fp32, {4096}).value());
  EXPECT_EQ(plan.bytes() - before, size_t{4096} * 4);
  plan::Plan inner;
  inner.resolved = plan.resolved;
  inner.parent = &plan;
  EXPECT_EQ(inner.bytes(), before) << "those of the plan around it are not its own";
  // A plan without blocks keeps no Resolved: its places hold the constants.
  plan::Plan alone;
  alone.sequence.places.resize(1);
  const size_t without = alone.bytes();
  alone.sequence.places[0].value = &x;
  alone.sequence.places[0].storage = plan::Constant{Tensor::zeros(DType::fp32, {4096}).value(), nullptr};
  EXPECT_EQ(alone.bytes() - without, size_t{4096} * 4);
}

TEST_F(KeptPlans, TakeTheBytesThatAreAllowed) {
  plan::PlanCache cache;
  const size_t one = plan_for(cache, 8000)->bytes();
  options_.kept->limit = 3 * one + one / 2;
  for (int64_t n = 8001; n < 8008; ++n) plan_for(cache, n);
  EXPECT_EQ(sizes(cache), (std::vector<int64_t>{8007, 8006, 8005}));
  EXPECT_LE(options_.kept->bytes, options_.kept->limit);
  options_.kept->limit = SIZE_MAX;
  for (int64_t n = 8; n < 20; ++n) plan_for(cache, n);
  EXPECT_EQ(sizes(cache).size(), options_.cached_shapes) << "and no more than their number";
}

TEST_F(KeptPlans, OneIsKeptOfEachBlock) {
  options_.kept->limit = 1;
  plan::PlanCache one, other;
  for (int64_t n : {9, 8, 7}) plan_for(one, n);
  plan_for(other, 6);
  EXPECT_EQ(sizes(one), std::vector<int64_t>{7});
  EXPECT_EQ(sizes(other), std::vector<int64_t>{6});
}

TEST_F(KeptPlans, AreGivenBackWithTheirCache) {
  {
    plan::PlanCache cache;
    for (int64_t n : {9, 8, 7}) plan_for(cache, n);
    EXPECT_GT(options_.kept->bytes, 0U);
  }
  EXPECT_EQ(options_.kept->bytes, 0U);
}

}  // namespace
}  // namespace moka::runtime
