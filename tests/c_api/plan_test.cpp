// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "c_api/owned.h"
#include "moka/moka.h"
#include "temporary_folder.h"

/// Compute plans and compiling in C.
namespace {

using moka::test::Owner;

const std::string kPlanned = R"(program(1.0)
{
    func main<ios15>(tensor<fp32, [64, 64]> x) {
            tensor<fp32, [64, 64]> product = matmul(x = x, y = x)[name = tensor<string, []>("product")];
            tensor<fp32, [64, 64]> y = softmax(x = product, axis = tensor<int32, []>(1))[name = tensor<string, []>("y")];
        } -> (y);
})";

Owner<moka_model> planned_model(const char* pins = nullptr) {
  moka_configuration c = moka_default_configuration();
  c.compute_units = MOKA_CPU_ONLY;
  c.pins = pins;
  moka_model* m = nullptr;
  EXPECT_EQ(moka_model_load_mil(kPlanned.c_str(), &c, &m), MOKA_OK) << moka_last_error();
  return Owner<moka_model>(m);
}

Owner<moka_compute_plan> plan_of(const moka_model* model, int predictions, const moka_features* inputs = nullptr) {
  moka_compute_plan* p = nullptr;
  EXPECT_EQ(moka_model_compute_plan(model, inputs, predictions, &p), MOKA_OK) << moka_last_error();
  return Owner<moka_compute_plan>(p);
}

TEST(CPlan, GivesOperationsAndTotals) {
  auto model = planned_model();
  const auto plan = plan_of(model.get(), 0);
  model.reset();  // the plan outlives it
  ASSERT_EQ(moka_compute_plan_operation_count(plan.get()), 2u);
  double cost = 0, seconds = 0;
  for (size_t i = 0; i < 2; i++) {
    moka_planned_operation o = MOKA_PLANNED_OPERATION_INIT;
    ASSERT_EQ(moka_compute_plan_operation(plan.get(), i, &o), MOKA_OK) << moka_last_error();
    EXPECT_STREQ(o.name, i == 0 ? "product" : "y");
    EXPECT_STREQ(o.type, i == 0 ? "matmul" : "softmax");
    EXPECT_STREQ(o.device, "cpu");
    EXPECT_EQ(std::string(o.kernel).substr(0, 4), "cpu.");
    EXPECT_GT(o.estimated_seconds, 0);
    EXPECT_EQ(o.measured_seconds, -1);
    EXPECT_EQ(o.region, -1);
    ASSERT_EQ(o.output_count, 1u);
    EXPECT_STREQ(o.outputs[0], "tensor<fp32, [64, 64]>");
    cost += o.cost;
    seconds += o.estimated_seconds;
  }
  EXPECT_NEAR(cost, 1, 1e-12);
  moka_plan_totals totals = MOKA_PLAN_TOTALS_INIT;
  ASSERT_EQ(moka_compute_plan_totals(plan.get(), &totals), MOKA_OK);
  EXPECT_DOUBLE_EQ(totals.estimated_seconds, seconds);
  EXPECT_EQ(totals.measured_seconds, -1);
  EXPECT_EQ(totals.operations_in_source, 2u);
  EXPECT_EQ(totals.complete, 1);
  EXPECT_GE(totals.unshared_bytes, totals.arena_bytes);
  EXPECT_NE(totals.rates, nullptr);
}

TEST(CPlan, Measures) {
  const auto model = planned_model();
  moka_features* in = nullptr;
  ASSERT_EQ(moka_features_new(&in), MOKA_OK);
  const Owner<moka_features> inputs(in);
  ASSERT_EQ(moka_features_set_random(in, model.get(), 3), MOKA_OK);
  const auto plan = plan_of(model.get(), 3, in);
  moka_planned_operation o = MOKA_PLANNED_OPERATION_INIT;
  ASSERT_EQ(moka_compute_plan_operation(plan.get(), 0, &o), MOKA_OK);
  EXPECT_GT(o.measured_seconds, 0);
  EXPECT_EQ(o.runs, 1);
  moka_plan_totals totals = MOKA_PLAN_TOTALS_INIT;
  ASSERT_EQ(moka_compute_plan_totals(plan.get(), &totals), MOKA_OK);
  EXPECT_GT(totals.measured_seconds, 0);
  EXPECT_EQ(totals.predictions, 3);
  EXPECT_GE(totals.memory_bytes, totals.arena_bytes);
  EXPECT_GT(totals.memory_bytes, 0u);
}

/// The preview of the Neural Engine bids for every operation and refuses what its rules forbid.
TEST(CPlan, GivesBidsAndRefusals) {
  moka_configuration c = MOKA_CONFIGURATION_INIT;
  c.compute_units = MOKA_CPU_AND_NEURAL_ENGINE;
  moka_model* m = nullptr;
  ASSERT_EQ(moka_model_load_mil(kPlanned.c_str(), &c, &m), MOKA_OK) << moka_last_error();
  const Owner<moka_model> model(m);
  const auto plan = plan_of(m, 0);
  moka_planned_operation o = MOKA_PLANNED_OPERATION_INIT;
  ASSERT_EQ(moka_compute_plan_operation(plan.get(), 0, &o), MOKA_OK);
  ASSERT_GE(o.bid_count, 2u);
  moka_unit_bid bid = MOKA_UNIT_BID_INIT;
  ASSERT_EQ(moka_compute_plan_bid(plan.get(), 0, 0, &bid), MOKA_OK);
  EXPECT_STREQ(bid.unit, "cpu");
  EXPECT_STREQ(bid.refusal, "");
  bool has_engine = false;
  for (size_t i = 1; i < o.bid_count; i++) {
    ASSERT_EQ(moka_compute_plan_bid(plan.get(), 0, i, &bid), MOKA_OK);
    has_engine |= std::string(bid.unit) == "neuralEngine";
  }
  EXPECT_TRUE(has_engine);
  EXPECT_EQ(moka_compute_plan_bid(plan.get(), 0, o.bid_count, &bid), MOKA_INVALID_ARGUMENT);
  EXPECT_EQ(moka_compute_plan_bid(plan.get(), 2, 0, &bid), MOKA_INVALID_ARGUMENT);
}

TEST(CPlan, GivesRegions) {
  moka_configuration c = MOKA_CONFIGURATION_INIT;
  c.device = "simulator";
  moka_model* m = nullptr;
  ASSERT_EQ(moka_model_load_mil(kPlanned.c_str(), &c, &m), MOKA_OK) << moka_last_error();
  const Owner<moka_model> model(m);
  const auto plan = plan_of(m, 0);
  ASSERT_EQ(moka_compute_plan_region_count(plan.get()), 1u);
  moka_planned_region region = MOKA_PLANNED_REGION_INIT;
  ASSERT_EQ(moka_compute_plan_region(plan.get(), 0, &region), MOKA_OK);
  EXPECT_STREQ(region.device, "simulator");
  size_t operations = 0;
  for (size_t i = 0; i < moka_compute_plan_operation_count(plan.get()); i++) {
    moka_planned_operation o = MOKA_PLANNED_OPERATION_INIT;
    ASSERT_EQ(moka_compute_plan_operation(plan.get(), i, &o), MOKA_OK);
    const std::string type = o.type;  // transfers and conversions are steps of the region, too
    operations += o.region == 0 && (type == "matmul" || type == "softmax");
  }
  EXPECT_EQ(region.operation_count, operations);
  EXPECT_EQ(region.operation_count, 2u);
  EXPECT_GT(region.upload_bytes, 0u);
  EXPECT_GT(region.download_bytes, 0u);
  EXPECT_EQ(moka_compute_plan_region(plan.get(), 1, &region), MOKA_INVALID_ARGUMENT);
  EXPECT_EQ(moka_compute_plan_region(nullptr, 0, &region), MOKA_INVALID_ARGUMENT);
  EXPECT_EQ(moka_compute_plan_region_count(nullptr), 0u);
  const auto host = plan_of(planned_model().get(), 0);
  EXPECT_EQ(moka_compute_plan_region_count(host.get()), 0u);
}

TEST(CPlan, GivesTextsOfStages) {
  const auto model = planned_model();
  const char* text = nullptr;
  for (int stage = MOKA_PLAN_RESOLVE; stage <= MOKA_PLAN_MEMORY; stage++) {
    ASSERT_EQ(moka_model_plan_text(model.get(), nullptr, static_cast<moka_plan_stage>(stage), &text), MOKA_OK)
        << moka_last_error();
    EXPECT_NE(std::string(text), "") << stage;
  }
  EXPECT_EQ(moka_model_plan_text(model.get(), nullptr, static_cast<moka_plan_stage>(4), &text), MOKA_INVALID_ARGUMENT);
  EXPECT_EQ(moka_model_plan_text(model.get(), nullptr, MOKA_PLAN_CLAIM, nullptr), MOKA_INVALID_ARGUMENT);
}

TEST(CPlan, ChecksArguments) {
  const auto model = planned_model();
  moka_compute_plan* p = nullptr;
  EXPECT_EQ(moka_model_compute_plan(nullptr, nullptr, 0, &p), MOKA_INVALID_ARGUMENT);
  EXPECT_EQ(moka_model_compute_plan(model.get(), nullptr, 0, nullptr), MOKA_INVALID_ARGUMENT);
  EXPECT_EQ(moka_model_compute_plan(model.get(), nullptr, -1, &p), MOKA_INVALID_ARGUMENT);
  EXPECT_STREQ(moka_last_error(), "predictions: expected 0 or more, got -1");
  EXPECT_EQ(p, nullptr);
  const auto plan = plan_of(model.get(), 0);
  moka_planned_operation o = MOKA_PLANNED_OPERATION_INIT;
  EXPECT_EQ(moka_compute_plan_operation(plan.get(), 2, &o), MOKA_INVALID_ARGUMENT);
  EXPECT_EQ(moka_compute_plan_operation(plan.get(), 0, nullptr), MOKA_INVALID_ARGUMENT);
  o.struct_size = 4096;
  EXPECT_EQ(moka_compute_plan_operation(plan.get(), 0, &o), MOKA_INVALID_ARGUMENT);
  moka_plan_totals totals{};
  EXPECT_EQ(moka_compute_plan_totals(plan.get(), &totals), MOKA_INVALID_ARGUMENT);
  EXPECT_EQ(moka_compute_plan_totals(nullptr, &totals), MOKA_INVALID_ARGUMENT);
  const char *pass = nullptr, *text = nullptr;
  const size_t remarks = moka_compute_plan_remark_count(plan.get());
  EXPECT_EQ(moka_compute_plan_remark(plan.get(), remarks, &pass, &text), MOKA_INVALID_ARGUMENT);
  EXPECT_EQ(moka_compute_plan_operation_count(nullptr), 0u);
  moka_compute_plan_free(nullptr);
}

TEST(CPlan, GivesRemarks) {
  const auto model = planned_model("type:nowhere_in_c=cpu");
  const auto plan = plan_of(model.get(), 0);
  bool is_remarked = false;
  for (size_t i = 0; i < moka_compute_plan_remark_count(plan.get()); i++) {
    const char *pass = nullptr, *text = nullptr;
    ASSERT_EQ(moka_compute_plan_remark(plan.get(), i, &pass, &text), MOKA_OK);
    is_remarked |= std::string(pass) == "pins" && std::string(text).find("nowhere_in_c") != std::string::npos;
  }
  EXPECT_TRUE(is_remarked);
}

TEST(CCompile, WritesAModelThatLoads) {
  const moka::test::TemporaryFolder folder;
  const std::string source = std::string(MOKA_TEST_GOLDEN) + "/classic/decision_tree_classifier.mlmodel";
  const std::string compiled = folder / "tree.mlmodelc";
  ASSERT_EQ(moka_compile_model(source.c_str(), compiled.c_str(), nullptr), MOKA_OK) << moka_last_error();
  moka_model* m = nullptr;
  ASSERT_EQ(moka_model_load(compiled.c_str(), nullptr, &m), MOKA_OK) << moka_last_error();
  const Owner<moka_model> model(m);
  EXPECT_EQ(moka_model_class_label_count(m), 3u);
  EXPECT_EQ(moka_compile_model(source.c_str(), compiled.c_str(), nullptr), MOKA_OK) << "a model is replaced";
  const std::string other = folder / "other";
  std::filesystem::create_directories(other + "/inside");
  EXPECT_EQ(moka_compile_model(source.c_str(), other.c_str(), nullptr), MOKA_INVALID_ARGUMENT);
  EXPECT_EQ(moka_compile_model(nullptr, compiled.c_str(), nullptr), MOKA_INVALID_ARGUMENT);
  EXPECT_EQ(moka_compile_model(source.c_str(), nullptr, nullptr), MOKA_INVALID_ARGUMENT);
  EXPECT_EQ(moka_compile_model("/nowhere/model.mlmodel", compiled.c_str(), nullptr), MOKA_NOT_FOUND);
  moka_compilation_options options = moka_default_compilation_options();
  options.struct_size = 1;
  EXPECT_EQ(moka_compile_model(source.c_str(), compiled.c_str(), &options), MOKA_INVALID_ARGUMENT);
}

TEST(CCompile, ReportsNetworksThatKeepTheirSpecification) {
  const moka::test::TemporaryFolder folder;
  const std::string source = std::string(MOKA_TEST_GOLDEN) + "/flexible/lowest.mlmodel";
  const std::string compiled = folder / "lowest.mlmodelc";
  std::vector<std::string> reported;
  moka_compilation_options options = MOKA_COMPILATION_OPTIONS_INIT;
  options.context = &reported;
  options.embedded = [](void* context, const moka_embedded_network* n) {
    *static_cast<std::vector<std::string>*>(context) = {n->model, n->layer, n->type, n->reason, n->text};
  };
  options.strict = 1;
  EXPECT_EQ(moka_compile_model(source.c_str(), compiled.c_str(), &options), MOKA_UNSUPPORTED);
  EXPECT_FALSE(std::filesystem::exists(compiled));
  EXPECT_TRUE(reported.empty());
  options.strict = 0;
  ASSERT_EQ(moka_compile_model(source.c_str(), compiled.c_str(), &options), MOKA_OK) << moka_last_error();
  ASSERT_EQ(reported.size(), 5u);
  EXPECT_EQ(reported[0], "");
  EXPECT_EQ(reported[1], "pile");
  EXPECT_EQ(reported[2], "stack");
  EXPECT_EQ(reported[3], "layers of this type");
  reported.clear();
  options.embed_specification = 1;
  ASSERT_EQ(moka_compile_model(source.c_str(), compiled.c_str(), &options), MOKA_OK) << moka_last_error();
  EXPECT_TRUE(reported.empty());
}

}  // namespace
