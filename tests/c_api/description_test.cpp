// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "c_api/owned.h"
#include "moka/build.h"
#include "moka/moka.h"
#include "moka/program.h"
#include "temporary_folder.h"

/// Descriptions in C: constraints of features, functions, metadata, models that are not loaded.
namespace {

using moka::test::Owner;
using moka::test::TemporaryFolder;

Owner<moka_description> described_file(const std::string& path) {
  moka_description* d = nullptr;
  EXPECT_EQ(moka_describe(path.c_str(), &d), MOKA_OK) << moka_last_error();
  return Owner<moka_description>(d);
}

Owner<moka_model> model_of_file(const std::string& path, const moka_configuration* configuration = nullptr) {
  moka_model* m = nullptr;
  EXPECT_EQ(moka_model_load(path.c_str(), configuration, &m), MOKA_OK) << moka_last_error();
  return Owner<moka_model>(m);
}

moka_feature_constraints constraints(const moka_description* d, const char* function, moka_role role, size_t index) {
  moka_feature_constraints c = MOKA_FEATURE_CONSTRAINTS_INIT;
  EXPECT_EQ(moka_description_constraints(d, function, role, index, &c), MOKA_OK) << moka_last_error();
  return c;
}

moka::FeatureDescription feature(const std::string& name, moka::FeatureType type) {
  moka::FeatureDescription f;
  f.name = name;
  f.type = type;
  return f;
}

/// Writes a model without content, which can be described only.
void write_description(const std::string& path) {
  moka::ModelDescription d;
  d.type = "identity";
  d.specification_version = 5;
  moka::FunctionDescription f;
  auto list = feature("list", moka::FeatureType::multi_array);
  list.array.shape = {1, 4};
  list.array.enumerated = {{1, 4}, {2, 8}};
  auto picture = feature("picture", moka::FeatureType::image);
  picture.image.width = 32;
  picture.image.height = 24;
  picture.image.color = moka::ColorSpace::bgr;
  picture.image.enumerated = {{32, 24}, {64, 48}};
  auto flexible = feature("flexible", moka::FeatureType::image);
  flexible.image.width = 8;
  flexible.image.height = 9;
  flexible.image.color = moka::ColorSpace::grayscale;
  flexible.image.width_range = moka::SizeRange{4, 16};
  flexible.image.height_range = moka::SizeRange{2, -1};
  auto words = feature("words", moka::FeatureType::sequence);
  words.sequence_length = {1, 12};
  f.inputs = {list, picture, flexible, words};
  f.outputs = {feature("y", moka::FeatureType::int64)};
  d.functions = {f};
  d.author = "somebody";
  d.user_defined = {{"b", "two"}, {"a", "one"}};
  moka::Message specification = moka::describe_model(d);
  specification.add("identity");
  moka::ModelSource(specification).save(path);
}

TEST(CDescription, GivesConstraintsWithoutLoading) {
  const TemporaryFolder folder;
  const std::string path = folder / "described.mlmodel";
  write_description(path);
  const auto d = described_file(path);
  ASSERT_EQ(moka_description_feature_count(d.get(), nullptr, MOKA_INPUT), 4u);
  const auto list = constraints(d.get(), nullptr, MOKA_INPUT, 0);
  ASSERT_EQ(list.shape_count, 2u);
  ASSERT_EQ(list.shapes[1].rank, 2u);
  EXPECT_EQ(list.shapes[1].sizes[0], 2);
  EXPECT_EQ(list.shapes[1].sizes[1], 8);
  EXPECT_FALSE(list.has_default_value);
  const auto picture = constraints(d.get(), nullptr, MOKA_INPUT, 1);
  EXPECT_EQ(picture.color_space, MOKA_COLOR_BGR);
  ASSERT_EQ(picture.image_size_count, 2u);
  EXPECT_EQ(picture.image_sizes[1].width, 64);
  EXPECT_EQ(picture.image_sizes[1].height, 48);
  const auto flexible = constraints(d.get(), nullptr, MOKA_INPUT, 2);
  EXPECT_EQ(flexible.color_space, MOKA_COLOR_GRAYSCALE);
  EXPECT_EQ(flexible.image_size_count, 0u);
  EXPECT_EQ(flexible.width_range.lower, 4);
  EXPECT_EQ(flexible.width_range.upper, 16);
  EXPECT_EQ(flexible.height_range.lower, 2);
  EXPECT_EQ(flexible.height_range.upper, -1);
  const auto words = constraints(d.get(), nullptr, MOKA_INPUT, 3);
  EXPECT_EQ(words.sequence_length.lower, 1);
  EXPECT_EQ(words.sequence_length.upper, 12);
  moka_feature_info info;
  ASSERT_EQ(moka_description_feature(d.get(), nullptr, MOKA_INPUT, 2, &info), MOKA_OK);
  EXPECT_STREQ(info.name, "flexible");
  EXPECT_STREQ(info.type_text, "Image (Grayscale 4..16 x 2..∞)");
  EXPECT_EQ(info.is_gray, 1);
  EXPECT_EQ(info.width, 8);
}

TEST(CDescription, GivesTextsAndMetadataByIndex) {
  const TemporaryFolder folder;
  const std::string path = folder / "described.mlmodel";
  write_description(path);
  const auto d = described_file(path);
  EXPECT_STREQ(moka_description_text(d.get(), MOKA_MODEL_TYPE), "identity");
  EXPECT_STREQ(moka_description_text(d.get(), MOKA_AUTHOR), "somebody");
  EXPECT_EQ(moka_description_specification_version(d.get()), 5);
  EXPECT_EQ(moka_description_is_updatable(d.get()), 0);
  ASSERT_EQ(moka_description_metadata_count(d.get()), 2u);
  EXPECT_STREQ(moka_description_metadata_key(d.get(), 0), "a");
  EXPECT_STREQ(moka_description_metadata_key(d.get(), 1), "b");
  EXPECT_EQ(moka_description_metadata_key(d.get(), 2), nullptr);
  EXPECT_STREQ(moka_description_metadata(d.get(), "b"), "two");
  EXPECT_EQ(moka_description_metadata(d.get(), "c"), nullptr);
  EXPECT_EQ(moka_description_class_label_type(d.get()), MOKA_TYPE_NONE);
  EXPECT_EQ(moka_description_remark(d.get(), moka_description_remark_count(d.get())), nullptr);
}

TEST(CDescription, KnowsTheKindOfLabels) {
  const std::string classic = std::string(MOKA_TEST_GOLDEN) + "/classic/";
  const auto strings = described_file(classic + "decision_tree_classifier.mlmodel");
  EXPECT_EQ(moka_description_class_label_type(strings.get()), MOKA_TYPE_STRING);
  EXPECT_EQ(moka_description_class_label_count(strings.get()), 3u);
  const auto integers = described_file(classic + "random_forest_binary.mlmodel");
  EXPECT_EQ(moka_description_class_label_type(integers.get()), MOKA_TYPE_INT64);
  EXPECT_EQ(moka_description_class_label(integers.get(), 2), nullptr);
}

TEST(CDescription, GivesWhatLoadingFindsOut) {
  const auto encoder = model_of_file(std::string(MOKA_TEST_GOLDEN) + "/classic/one_hot_int.mlmodel");
  const moka_description* d = moka_model_description(encoder.get());
  const auto input = constraints(d, nullptr, MOKA_INPUT, 0);
  ASSERT_EQ(input.category_count, 3u);
  EXPECT_STREQ(input.categories[0], "-2");
  const auto named = constraints(d, moka_description_text(d, MOKA_FUNCTION_NAME), MOKA_INPUT, 0);
  EXPECT_EQ(named.category_count, 3u);

  const TemporaryFolder folder;
  const std::string path = folder / "table.mlpackage";
  moka::ProgramBuilder b("ios17");
  const auto tokens = b.input("tokens", moka::DataType::int32, {2});
  const std::vector<float> table(12);
  b.output(b.op("gather", {{"x", moka::MultiArray::of(table, {6, 2})}, {"indices", tokens}, {"axis", 0}}), "rows");
  b.save(path);
  const auto gather = model_of_file(path);
  const auto indices = constraints(moka_model_description(gather.get()), nullptr, MOKA_INPUT, 0);
  ASSERT_TRUE(indices.has_index_range);
  EXPECT_EQ(indices.index_range.upper, 5);
  EXPECT_FALSE(constraints(described_file(path).get(), nullptr, MOKA_INPUT, 0).has_index_range);
}

TEST(CDescription, ListsFunctionsAndLoadsAnother) {
  const TemporaryFolder folder;
  const std::string path = folder / "two.mlpackage";
  moka::ProgramBuilder b("ios18");
  b.function("twice");
  const auto x = b.input("x", moka::DataType::float32, {2});
  b.output(b.op("add", {{"x", x}, {"y", x}}), "doubled");
  b.function("squared");
  const auto v = b.input("v", moka::DataType::float32, {3});
  b.output(b.op("mul", {{"x", v}, {"y", v}}), "square");
  b.save(path);

  const auto d = described_file(path);
  ASSERT_EQ(moka_description_function_count(d.get()), 2u);
  EXPECT_STREQ(moka_description_function_name(d.get(), 1), "squared");
  EXPECT_EQ(moka_description_function_name(d.get(), 2), nullptr);
  EXPECT_STREQ(moka_description_text(d.get(), MOKA_DEFAULT_FUNCTION_NAME), "twice");
  EXPECT_STREQ(moka_description_text(d.get(), MOKA_FUNCTION_NAME), "twice");
  moka_feature_info info;
  ASSERT_EQ(moka_description_feature(d.get(), "squared", MOKA_INPUT, 0, &info), MOKA_OK);
  EXPECT_STREQ(info.name, "v");
  EXPECT_EQ(moka_description_feature_count(d.get(), "cubed", MOKA_INPUT), 0u);
  EXPECT_EQ(moka_description_feature(d.get(), "cubed", MOKA_INPUT, 0, &info), MOKA_NOT_FOUND);
  EXPECT_STREQ(moka_last_error(), "function 'cubed': not a function of the model");

  const auto first = model_of_file(path);
  std::filesystem::remove_all(path);  // what follows uses the file as it was opened
  moka_configuration c = MOKA_CONFIGURATION_INIT;
  c.function_name = "squared";
  moka_model* m = nullptr;
  ASSERT_EQ(moka_model_configured(first.get(), &c, &m), MOKA_OK) << moka_last_error();
  const Owner<moka_model> second(m);
  EXPECT_STREQ(moka_model_text(m, MOKA_FUNCTION_NAME), "squared");
  EXPECT_STREQ(moka_description_text(moka_model_description(m), MOKA_DEFAULT_FUNCTION_NAME), "twice");
  float data[] = {1, 2, 3};
  const int64_t shape[] = {3};
  const moka_array array{data, MOKA_FLOAT32, 1, shape, nullptr};
  moka_features *in = nullptr, *out = nullptr;
  ASSERT_EQ(moka_features_new(&in), MOKA_OK);
  ASSERT_EQ(moka_features_new(&out), MOKA_OK);
  const Owner<moka_features> inputs(in), outputs(out);
  ASSERT_EQ(moka_features_set_array(in, "v", &array), MOKA_OK);
  ASSERT_EQ(moka_model_predict(m, in, out, nullptr), MOKA_OK) << moka_last_error();
  moka_array square;
  ASSERT_EQ(moka_features_get_array(out, "square", &square), MOKA_OK);
  EXPECT_EQ(static_cast<const float*>(square.data)[2], 9.0f);
  c.function_name = "cubed";
  EXPECT_EQ(moka_model_configured(first.get(), &c, &m), MOKA_NOT_FOUND);
  EXPECT_EQ(moka_model_configured(nullptr, nullptr, &m), MOKA_INVALID_ARGUMENT);
  EXPECT_EQ(moka_model_configured(first.get(), nullptr, nullptr), MOKA_INVALID_ARGUMENT);
}

TEST(CDescription, GivesDefaultsAndTrainingInputs) {
  const TemporaryFolder folder;
  const std::string path = folder / "optional.mlpackage";
  moka::ProgramBuilder b("ios17");
  auto scale = feature("scale", moka::FeatureType::multi_array);
  scale.array.shape = {1};
  scale.optional = true;
  scale.default_value = 2.5;
  const auto x = b.input("x", moka::DataType::float32, {2});
  b.output(b.op("mul", {{"x", x}, {"y", b.input(scale)}}), "y");
  b.save(path);
  const auto d = described_file(path);
  EXPECT_FALSE(constraints(d.get(), nullptr, MOKA_INPUT, 0).has_default_value);
  const auto c = constraints(d.get(), nullptr, MOKA_INPUT, 1);
  ASSERT_TRUE(c.has_default_value);
  EXPECT_EQ(c.default_value, 2.5);

  const auto updatable = described_file(std::string(MOKA_TEST_GOLDEN) + "/update/plain.mlmodel");
  EXPECT_EQ(moka_description_is_updatable(updatable.get()), 1);
  EXPECT_GE(moka_description_feature_count(updatable.get(), nullptr, MOKA_TRAINING_INPUT), 2u);
}

TEST(CDescription, ChecksArguments) {
  moka_description* d = nullptr;
  EXPECT_EQ(moka_describe(nullptr, &d), MOKA_INVALID_ARGUMENT);
  EXPECT_EQ(moka_describe("/nowhere/model.mlmodel", nullptr), MOKA_INVALID_ARGUMENT);
  EXPECT_EQ(moka_describe("/nowhere/model.mlmodel", &d), MOKA_NOT_FOUND);
  EXPECT_EQ(d, nullptr);
  const auto tree = described_file(std::string(MOKA_TEST_GOLDEN) + "/classic/decision_tree_classifier.mlmodel");
  moka_feature_info info;
  EXPECT_EQ(moka_description_feature(tree.get(), nullptr, MOKA_INPUT, 1, &info), MOKA_INVALID_ARGUMENT);
  EXPECT_EQ(moka_description_feature(tree.get(), nullptr, static_cast<moka_role>(4), 0, &info), MOKA_INVALID_ARGUMENT);
  EXPECT_EQ(moka_description_feature(tree.get(), nullptr, MOKA_INPUT, 0, nullptr), MOKA_INVALID_ARGUMENT);
  EXPECT_EQ(moka_description_feature(nullptr, nullptr, MOKA_INPUT, 0, &info), MOKA_INVALID_ARGUMENT);
  EXPECT_EQ(moka_description_feature_count(tree.get(), nullptr, static_cast<moka_role>(-1)), 0u);
  moka_feature_constraints c = MOKA_FEATURE_CONSTRAINTS_INIT;
  EXPECT_EQ(moka_description_constraints(tree.get(), nullptr, MOKA_INPUT, 0, nullptr), MOKA_INVALID_ARGUMENT);
  c.struct_size = 3;
  EXPECT_EQ(moka_description_constraints(tree.get(), nullptr, MOKA_INPUT, 0, &c), MOKA_INVALID_ARGUMENT);
  EXPECT_EQ(std::string(moka_last_error()),
            "constraints: expected struct_size " + std::to_string(sizeof c) + ", got 3");
  EXPECT_EQ(moka_description_text(nullptr, MOKA_AUTHOR), nullptr);
  EXPECT_EQ(moka_description_specification_version(nullptr), 0);
  EXPECT_EQ(moka_description_function_count(nullptr), 0u);
  EXPECT_EQ(moka_model_description(nullptr), nullptr);
  moka_description_free(nullptr);
}

/// A program that was compiled with a header without the last members gets what it knows.
TEST(CDescription, FillsTheMembersThatTheCallerHas) {
  const auto tree = described_file(std::string(MOKA_TEST_GOLDEN) + "/classic/decision_tree_classifier.mlmodel");
  moka_feature_constraints c = MOKA_FEATURE_CONSTRAINTS_INIT;
  c.struct_size = offsetof(moka_feature_constraints, has_index_range);
  c.has_index_range = -7;
  c.sequence_length.upper = -9;
  ASSERT_EQ(moka_description_constraints(tree.get(), nullptr, MOKA_INPUT, 0, &c), MOKA_OK) << moka_last_error();
  EXPECT_EQ(c.has_index_range, -7);
  EXPECT_EQ(c.sequence_length.upper, -1);
  EXPECT_EQ(c.struct_size, offsetof(moka_feature_constraints, has_index_range));
}

}  // namespace
