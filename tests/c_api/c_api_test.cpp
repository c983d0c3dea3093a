// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "c_api/predict_from_c.h"
#include "moka/error.h"
#include "moka/feature.h"
#include "moka/moka.h"

namespace {

struct Free {
  void operator()(moka_model* m) const { moka_model_free(m); }
  void operator()(moka_features* f) const { moka_features_free(f); }
  void operator()(moka_state* s) const { moka_state_free(s); }
};
template <class T>
using Handle = std::unique_ptr<T, Free>;

Handle<moka_model> model_of(const std::string& mil) {
  moka_model* m = nullptr;
  EXPECT_EQ(moka_model_load_mil(mil.c_str(), nullptr, &m), MOKA_OK) << moka_last_error();
  return Handle<moka_model>(m);
}

Handle<moka_features> features() {
  moka_features* f = nullptr;
  EXPECT_EQ(moka_features_new(&f), MOKA_OK);
  return Handle<moka_features>(f);
}

moka_array array_of(std::vector<float>& data, const std::vector<int64_t>& shape, const int64_t* strides = nullptr) {
  return {data.data(), MOKA_FLOAT32, shape.size(), shape.data(), strides};
}

const std::string kTwice = R"(program(1.0)
{
    func main<ios15>(tensor<fp32, [2, 3]> x) {
            tensor<fp32, [2, 3]> y = add(x = x, y = x)[name = tensor<string, []>("y")];
        } -> (y);
})";

const std::string kCounter = R"(program(1.3)
{
    func main<ios18>(state<tensor<fp32, [2]>> total, tensor<fp32, [2]> x) {
            tensor<fp32, [2]> before = read_state(input = total)[name = string("before")];
            tensor<fp32, [2]> sum = add(x = before, y = x)[name = string("sum")];
            write_state(data = sum, input = total)[name = string("keep")];
        } -> (sum);
})";

/// Model files of the classic model tests, made by tests/golden/classic_truth.py.
std::string classic(const std::string& name) { return std::string(MOKA_TEST_GOLDEN) + "/classic/" + name + ".mlmodel"; }

TEST(CApi, PredictsFromAFileCompiledAsC) {
  const float x[2] = {1, 2};
  float result[2] = {};
  ASSERT_EQ(add_from_c(x, 0.5f, result), MOKA_OK) << moka_last_error();
  EXPECT_EQ(result[0], 1.5f);
  EXPECT_EQ(result[1], 2.5f);
}

TEST(CApi, StatusesAreTheNumbersOfErrorKind) {
  EXPECT_EQ(MOKA_INVALID_ARGUMENT, static_cast<int>(moka::ErrorKind::invalid_argument));
  EXPECT_EQ(MOKA_MALFORMED, static_cast<int>(moka::ErrorKind::malformed));
  EXPECT_EQ(MOKA_UNSUPPORTED, static_cast<int>(moka::ErrorKind::unsupported));
  EXPECT_EQ(MOKA_NOT_FOUND, static_cast<int>(moka::ErrorKind::not_found));
  EXPECT_EQ(MOKA_IO, static_cast<int>(moka::ErrorKind::io));
  EXPECT_EQ(MOKA_OUT_OF_BUDGET, static_cast<int>(moka::ErrorKind::out_of_budget));
  EXPECT_EQ(MOKA_DATA, static_cast<int>(moka::ErrorKind::data));
  EXPECT_EQ(MOKA_INTERNAL, static_cast<int>(moka::ErrorKind::internal));
  EXPECT_EQ(MOKA_BOOLEAN, static_cast<int>(moka::DataType::boolean));
  EXPECT_EQ(MOKA_GRAY_FLOAT32, static_cast<int>(moka::PixelFormat::gray_float32));
  EXPECT_EQ(MOKA_GRAY_FLOAT16, static_cast<int>(moka::PixelFormat::gray_float16));
  EXPECT_STREQ(moka_status_name(MOKA_NOT_FOUND), "not found");
  EXPECT_STREQ(moka_status_name(static_cast<moka_status>(99)), "unknown");
}

TEST(CApi, ReadsStridedInputsAndWritesIntoBackings) {
  auto model = model_of(kTwice);
  auto in = features(), out = features();
  std::vector<float> columns{1, 4, 2, 5, 3, 6};  // [2, 3] column-major
  const std::vector<int64_t> shape{2, 3};
  const int64_t strides[] = {1, 2}, wide[] = {4, 1};
  moka_array x = array_of(columns, shape, strides);
  ASSERT_EQ(moka_features_set_array(in.get(), "x", &x), MOKA_OK);
  std::vector<float> rows(8, -1);  // rows of four, the fourth is not ours
  moka_array y = array_of(rows, shape, wide);
  ASSERT_EQ(moka_features_set_array(out.get(), "y", &y), MOKA_OK);
  ASSERT_EQ(moka_model_predict(model.get(), in.get(), out.get(), nullptr), MOKA_OK) << moka_last_error();
  EXPECT_EQ(rows, (std::vector<float>{2, 4, 6, -1, 8, 10, 12, -1}));
  moka_array result;
  ASSERT_EQ(moka_features_get_array(out.get(), "y", &result), MOKA_OK);
  EXPECT_EQ(result.data, rows.data());
}

TEST(CApi, IntegersTakeWholeNumbersOnly) {
  auto model = model_of(R"(program(1.0)
{
    func main<ios15>(tensor<int32, [2]> n) {
            tensor<int32, [2]> y = add(x = n, y = n)[name = tensor<string, []>("y")];
        } -> (y);
})");
  auto in = features(), out = features();
  const std::vector<int64_t> shape{2};
  std::vector<float> data{1, 3};
  moka_array n = array_of(data, shape);
  ASSERT_EQ(moka_features_set_array(in.get(), "n", &n), MOKA_OK);
  ASSERT_EQ(moka_model_predict(model.get(), in.get(), out.get(), nullptr), MOKA_OK) << moka_last_error();
  data[1] = 3.5f;
  EXPECT_EQ(moka_model_predict(model.get(), in.get(), out.get(), nullptr), MOKA_INVALID_ARGUMENT);
  EXPECT_STREQ(moka_last_error(), "input 'n': expected whole numbers of type int32, got 3.5 at [1]");
}

TEST(CApi, GivesOutputsWithoutBackings) {
  auto model = model_of(kTwice);
  auto in = features(), out = features();
  std::vector<float> data{1, 2, 3, 4, 5, 6};
  const std::vector<int64_t> shape{2, 3};
  moka_array x = array_of(data, shape);
  ASSERT_EQ(moka_features_set_array(in.get(), "x", &x), MOKA_OK);
  for (int round = 1; round <= 2; round++) {
    ASSERT_EQ(moka_model_predict(model.get(), in.get(), out.get(), nullptr), MOKA_OK) << moka_last_error();
    ASSERT_EQ(moka_features_count(out.get()), 1u);
    EXPECT_STREQ(moka_features_name(out.get(), 0), "y");
    EXPECT_EQ(moka_features_name(out.get(), 1), nullptr);
    moka_array y;
    ASSERT_EQ(moka_features_get_array(out.get(), "y", &y), MOKA_OK);
    ASSERT_EQ(y.rank, 2u);
    EXPECT_EQ(y.shape[1], 3);
    EXPECT_EQ(y.strides[0], 3);
    EXPECT_EQ(static_cast<float*>(y.data)[5], 12.0f * static_cast<float>(round));
    data[5] *= 2;
  }
}

TEST(CApi, KeepsStates) {
  auto model = model_of(kCounter);
  ASSERT_EQ(moka_model_feature_count(model.get(), MOKA_STATE), 1u);
  moka_state* s = nullptr;
  ASSERT_EQ(moka_state_new(model.get(), &s), MOKA_OK);
  Handle<moka_state> state(s);
  auto in = features(), out = features();
  std::vector<float> data{1, 10};
  const std::vector<int64_t> shape{2};
  moka_array x = array_of(data, shape);
  ASSERT_EQ(moka_features_set_array(in.get(), "x", &x), MOKA_OK);
  EXPECT_EQ(moka_model_predict(model.get(), in.get(), out.get(), nullptr), MOKA_INVALID_ARGUMENT);
  for (int i = 0; i < 2; i++)
    ASSERT_EQ(moka_model_predict(model.get(), in.get(), out.get(), s), MOKA_OK) << moka_last_error();
  moka_array total;
  ASSERT_EQ(moka_state_read(s, "total", &total), MOKA_OK);
  EXPECT_EQ(static_cast<float*>(total.data)[1], 20.0f);
  std::vector<float> five{5, 5};
  moka_array value = array_of(five, shape);
  ASSERT_EQ(moka_state_write(s, "total", &value), MOKA_OK);
  ASSERT_EQ(moka_model_predict(model.get(), in.get(), out.get(), s), MOKA_OK);
  moka_array sum;
  ASSERT_EQ(moka_features_get_array(out.get(), "sum", &sum), MOKA_OK);
  EXPECT_EQ(static_cast<float*>(sum.data)[0], 6.0f);
  EXPECT_EQ(moka_state_read(s, "other", &total), MOKA_NOT_FOUND);
}

TEST(CApi, DescribesAndRunsAClassifierWithDictionary) {
  moka_model* m = nullptr;
  ASSERT_EQ(moka_model_load(classic("decision_tree_classifier").c_str(), nullptr, &m), MOKA_OK) << moka_last_error();
  Handle<moka_model> model(m);
  EXPECT_STREQ(moka_model_text(m, MOKA_MODEL_TYPE), "treeEnsembleClassifier");
  ASSERT_EQ(moka_model_feature_count(m, MOKA_INPUT), 1u);
  moka_feature_info info;
  ASSERT_EQ(moka_model_feature(m, MOKA_INPUT, 0, &info), MOKA_OK);
  EXPECT_EQ(info.type, MOKA_TYPE_MULTI_ARRAY);
  EXPECT_NE(std::string(info.type_text).find("MultiArray"), std::string::npos);
  auto in = features(), out = features();
  ASSERT_EQ(moka_features_set_random(in.get(), m, 7), MOKA_OK);
  ASSERT_EQ(moka_model_predict(m, in.get(), out.get(), nullptr), MOKA_OK) << moka_last_error();
  moka_dictionary probabilities;
  const char* name = moka_model_text(m, MOKA_PREDICTED_PROBABILITIES_NAME);
  ASSERT_EQ(moka_features_type(out.get(), name), MOKA_TYPE_DICTIONARY) << name;
  ASSERT_EQ(moka_features_get_dictionary(out.get(), name, &probabilities), MOKA_OK);
  EXPECT_EQ(probabilities.count, moka_model_class_label_count(m));
  EXPECT_EQ(probabilities.string_keys == nullptr, probabilities.int64_keys != nullptr);
  double sum = 0;
  for (size_t i = 0; i < probabilities.count; i++) sum += probabilities.values[i];
  EXPECT_NEAR(sum, 1, 1e-6);
  EXPECT_NE(moka_model_class_label(m, 0), nullptr);
  EXPECT_EQ(moka_model_class_label(m, 1000000), nullptr);
}

/// The expected values are scikit-learn's, from decision_tree_classifier.json.
TEST(CApi, PredictsRows) {
  moka_model* m = nullptr;
  ASSERT_EQ(moka_model_load(classic("decision_tree_classifier").c_str(), nullptr, &m), MOKA_OK) << moka_last_error();
  Handle<moka_model> model(m);
  std::vector<float> rows{-0.10885368f, 0.52451181f, 0.47978535f, -0.80615097f, 0.53444821f,  -0.36625254f,
                          0.78485662f,  0.43831331f, 1.06012559f, -2.79478478f, -0.60108268f, -0.98818523f};
  const std::vector<int64_t> shape{3, 4};
  const moka_array table = array_of(rows, shape);
  auto in = features(), out = features();
  ASSERT_EQ(moka_features_set_array(in.get(), "input", &table), MOKA_OK);
  ASSERT_EQ(moka_model_predict_rows(m, in.get(), out.get()), MOKA_OK) << moka_last_error();
  moka_sequence labels;
  ASSERT_EQ(moka_features_get_sequence(out.get(), moka_model_text(m, MOKA_PREDICTED_FEATURE_NAME), &labels), MOKA_OK);
  ASSERT_EQ(labels.count, 3u);
  EXPECT_STREQ(labels.strings[0], "red");
  EXPECT_STREQ(labels.strings[1], "green");
  EXPECT_STREQ(labels.strings[2], "blue");
  moka_array scores;
  ASSERT_EQ(moka_features_get_array(out.get(), moka_model_text(m, MOKA_PREDICTED_PROBABILITIES_NAME), &scores),
            MOKA_OK);
  ASSERT_EQ(scores.rank, 2u);
  ASSERT_EQ(scores.shape[0] * scores.shape[1], 9);
  ASSERT_EQ(scores.type, MOKA_FLOAT64);
  const double expected[] = {0, 0.0625, 0.9375, 0, 1, 0, 1, 0, 0};
  for (int i = 0; i < 9; i++) EXPECT_NEAR(static_cast<const double*>(scores.data)[i], expected[i], 1e-12) << i;

  moka_prediction_options options = MOKA_PREDICTION_OPTIONS_INIT;
  const char* label = moka_model_text(m, MOKA_PREDICTED_FEATURE_NAME);
  options.outputs = &label;
  options.output_count = 1;
  ASSERT_EQ(moka_model_predict_rows_with(m, in.get(), out.get(), &options), MOKA_OK) << moka_last_error();
  EXPECT_EQ(moka_features_count(out.get()), 1u);
  moka_cancellation* cancellation = nullptr;
  ASSERT_EQ(moka_cancellation_new(&cancellation), MOKA_OK);
  ASSERT_EQ(moka_cancellation_cancel(cancellation), MOKA_OK);
  options.cancellation = cancellation;
  EXPECT_EQ(moka_model_predict_rows_with(m, in.get(), out.get(), &options), MOKA_CANCELLED);
  EXPECT_EQ(moka_features_count(out.get()), 1u);
  moka_cancellation_free(cancellation);

  const std::vector<int64_t> wrong{4, 3};
  const moka_array short_rows = array_of(rows, wrong);
  ASSERT_EQ(moka_features_set_array(in.get(), "input", &short_rows), MOKA_OK);
  EXPECT_EQ(moka_model_predict_rows(m, in.get(), out.get()), MOKA_INVALID_ARGUMENT);
  EXPECT_NE(std::string(moka_last_error()).find("input"), std::string::npos) << moka_last_error();
  EXPECT_EQ(moka_model_predict_rows(m, in.get(), in.get()), MOKA_INVALID_ARGUMENT);
  EXPECT_EQ(moka_model_predict_rows(nullptr, in.get(), out.get()), MOKA_INVALID_ARGUMENT);
}

TEST(CApi, LoadsFromMemory) {
  std::ifstream file(classic("decision_tree_classifier"), std::ios::binary);
  std::vector<char> bytes{std::istreambuf_iterator<char>(file), {}};
  ASSERT_FALSE(bytes.empty());
  moka_model* m = nullptr;
  ASSERT_EQ(moka_model_load_memory(bytes.data(), bytes.size(), nullptr, 0, nullptr, &m), MOKA_OK) << moka_last_error();
  Handle<moka_model> model(m);
  bytes.assign(bytes.size(), 0);  // the model has its own copy
  auto in = features(), out = features();
  ASSERT_EQ(moka_features_set_random(in.get(), m, 7), MOKA_OK);
  EXPECT_EQ(moka_model_predict(m, in.get(), out.get(), nullptr), MOKA_OK) << moka_last_error();
}

TEST(CApi, LoadsFromBorrowedMemory) {
  std::ifstream file(classic("decision_tree_classifier"), std::ios::binary);
  const std::vector<char> bytes{std::istreambuf_iterator<char>(file), {}};
  moka_model* m = nullptr;
  ASSERT_EQ(moka_model_load_borrowed(bytes.data(), bytes.size(), nullptr, 0, nullptr, &m), MOKA_OK)
      << moka_last_error();
  Handle<moka_model> model(m);
  auto in = features(), out = features();
  ASSERT_EQ(moka_features_set_random(in.get(), m, 7), MOKA_OK);
  EXPECT_EQ(moka_model_predict(m, in.get(), out.get(), nullptr), MOKA_OK) << moka_last_error();
  EXPECT_EQ(moka_model_load_borrowed(nullptr, 8, nullptr, 0, nullptr, &m), MOKA_INVALID_ARGUMENT);
  EXPECT_EQ(moka_model_load_borrowed(bytes.data(), bytes.size(), nullptr, 1, nullptr, &m), MOKA_INVALID_ARGUMENT);
}

TEST(CApi, KeepsValuesOfEveryKind) {
  auto f = features();
  EXPECT_EQ(moka_features_set_int64(f.get(), "i", -3), MOKA_OK);
  EXPECT_EQ(moka_features_set_double(f.get(), "d", 0.25), MOKA_OK);
  EXPECT_EQ(moka_features_set_string(f.get(), "s", "caffè"), MOKA_OK);
  std::vector<uint8_t> pixels(2 * 12);
  moka_image image{pixels.data(), 2, 2, 12, MOKA_BGRA8};
  EXPECT_EQ(moka_features_set_image(f.get(), "p", &image), MOKA_OK);
  const int64_t keys[] = {4, 2};
  const double values[] = {0.4, 0.2};
  moka_dictionary dictionary{2, nullptr, keys, values};
  EXPECT_EQ(moka_features_set_dictionary(f.get(), "m", &dictionary), MOKA_OK);
  const char* words[] = {"a", "b"};
  moka_sequence sequence{2, words, nullptr};
  EXPECT_EQ(moka_features_set_sequence(f.get(), "w", &sequence), MOKA_OK);

  int64_t i = 0;
  double d = 0;
  const char* s = nullptr;
  EXPECT_EQ(moka_features_get_int64(f.get(), "i", &i), MOKA_OK);
  EXPECT_EQ(moka_features_get_double(f.get(), "d", &d), MOKA_OK);
  EXPECT_EQ(moka_features_get_string(f.get(), "s", &s), MOKA_OK);
  EXPECT_EQ(i, -3);
  EXPECT_EQ(d, 0.25);
  EXPECT_STREQ(s, "caffè");
  image = {};
  EXPECT_EQ(moka_features_get_image(f.get(), "p", &image), MOKA_OK);
  EXPECT_EQ(image.pixels, pixels.data());
  EXPECT_EQ(image.row_bytes, 12);
  dictionary = {};
  EXPECT_EQ(moka_features_get_dictionary(f.get(), "m", &dictionary), MOKA_OK);
  ASSERT_EQ(dictionary.count, 2u);
  EXPECT_EQ(dictionary.string_keys, nullptr);
  EXPECT_EQ(dictionary.int64_keys[0], 2);
  EXPECT_EQ(dictionary.values[0], 0.2);
  moka_dictionary again{};
  EXPECT_EQ(moka_features_get_dictionary(f.get(), "m", &again), MOKA_OK);
  EXPECT_EQ(again.values, dictionary.values) << "the first answer must stay valid";
  sequence = {};
  EXPECT_EQ(moka_features_get_sequence(f.get(), "w", &sequence), MOKA_OK);
  ASSERT_EQ(sequence.count, 2u);
  EXPECT_STREQ(sequence.strings[1], "b");
  EXPECT_EQ(moka_features_get_double(f.get(), "i", &d), MOKA_INVALID_ARGUMENT);
  EXPECT_STREQ(moka_last_error(), "feature 'i': expected Double, got Int64");
  moka_features_clear(f.get());
  EXPECT_EQ(moka_features_count(f.get()), 0u);
  EXPECT_EQ(moka_features_type(f.get(), "i"), MOKA_TYPE_NONE);
}

TEST(CApi, ReplacesParameters) {
  const std::string text =
      "program(1.0)\n{\n  func main<ios15>(tensor<fp32, [2]> x) {\n"
      "    tensor<fp32, [2]> w = const()[name = tensor<string, []>(\"w\"), val = tensor<fp32, [2]>([2, 3])];\n"
      "    tensor<fp32, [2]> y = mul(x = x, y = w)[name = tensor<string, []>(\"y\")];\n  } -> (y);\n}";
  moka_configuration configuration = MOKA_CONFIGURATION_INIT;
  configuration.parameters = "w\n";
  moka_model *m = nullptr, *replaced = nullptr;
  ASSERT_EQ(moka_model_load_mil(text.c_str(), &configuration, &m), MOKA_OK) << moka_last_error();
  const std::unique_ptr<moka_model, decltype(&moka_model_free)> first(m, moka_model_free);
  EXPECT_EQ(moka_model_parameter_count(m), 1u);
  EXPECT_STREQ(moka_model_parameter_name(m, 0), "w");
  EXPECT_EQ(moka_model_parameter_name(m, 1), nullptr);
  auto values = features(), inputs = features(), outputs = features();
  ASSERT_EQ(moka_model_read_parameter(m, "w", values.get()), MOKA_OK) << moka_last_error();
  moka_array array{};
  ASSERT_EQ(moka_features_get_array(values.get(), "w", &array), MOKA_OK);
  EXPECT_EQ(static_cast<const float*>(array.data)[1], 3.0f);
  float numbers[] = {5, 7}, x[] = {1, 10};
  const int64_t two = 2, three = 3;
  array = {numbers, MOKA_FLOAT32, 1, &two, nullptr};
  ASSERT_EQ(moka_features_set_array(values.get(), "w", &array), MOKA_OK);
  ASSERT_EQ(moka_model_with_parameters(m, values.get(), &replaced), MOKA_OK) << moka_last_error();
  const std::unique_ptr<moka_model, decltype(&moka_model_free)> second(replaced, moka_model_free);
  numbers[0] = 0;  // the model has its own copy
  array = {x, MOKA_FLOAT32, 1, &two, nullptr};
  ASSERT_EQ(moka_features_set_array(inputs.get(), "x", &array), MOKA_OK);
  for (const auto& [model, expected] : {std::pair(m, 2.0f), std::pair(replaced, 5.0f)}) {
    ASSERT_EQ(moka_model_predict(model, inputs.get(), outputs.get(), nullptr), MOKA_OK) << moka_last_error();
    ASSERT_EQ(moka_features_get_array(outputs.get(), "y", &array), MOKA_OK);
    EXPECT_EQ(static_cast<const float*>(array.data)[0], expected);
  }
  array = {numbers, MOKA_FLOAT32, 1, &three, nullptr};
  ASSERT_EQ(moka_features_set_array(values.get(), "w", &array), MOKA_OK);
  EXPECT_EQ(moka_model_with_parameters(m, values.get(), &replaced), MOKA_INVALID_ARGUMENT);
  EXPECT_NE(std::string(moka_last_error()).find("parameter 'w': expected shape [2], got [3]"), std::string::npos)
      << moka_last_error();
  EXPECT_EQ(moka_model_read_parameter(m, "v", values.get()), MOKA_NOT_FOUND);
}

TEST(CApi, ReportsWrongUse) {
  moka_model* m = nullptr;
  moka_configuration configuration = MOKA_CONFIGURATION_INIT;
  configuration.processor_count = 3;
  EXPECT_EQ(moka_model_load_mil(kTwice.c_str(), &configuration, &m), MOKA_INVALID_ARGUMENT);
  EXPECT_NE(std::string(moka_last_error()).find("processors"), std::string::npos) << moka_last_error();
  auto f = features();
  const moka_image nothing{nullptr, 2, 2, 8, MOKA_BGRA8};
  EXPECT_EQ(moka_features_set_image(f.get(), "p", &nothing), MOKA_INVALID_ARGUMENT);
  EXPECT_STREQ(moka_last_error(), "feature 'p': image: expected pixels, got none");
  EXPECT_EQ(moka_model_load("/nowhere/model.mlmodel", nullptr, &m), MOKA_NOT_FOUND);
  EXPECT_NE(std::string(moka_last_error()).find("/nowhere/model.mlmodel"), std::string::npos) << moka_last_error();
  EXPECT_EQ(m, nullptr);
  EXPECT_EQ(moka_model_load(nullptr, nullptr, &m), MOKA_INVALID_ARGUMENT);
  EXPECT_EQ(moka_model_load_mil(kTwice.c_str(), nullptr, nullptr), MOKA_INVALID_ARGUMENT);
  const char noise[] = "no model";
  EXPECT_NE(moka_model_load_memory(noise, sizeof noise, nullptr, 0, nullptr, &m), MOKA_OK);
  EXPECT_EQ(moka_model_load_memory(nullptr, 8, nullptr, 0, nullptr, &m), MOKA_INVALID_ARGUMENT);
  moka_configuration c = MOKA_CONFIGURATION_INIT;
  c.struct_size = 3;
  EXPECT_EQ(moka_model_load_mil(kTwice.c_str(), &c, &m), MOKA_INVALID_ARGUMENT);
  c = MOKA_CONFIGURATION_INIT;
  c.compute_units = static_cast<moka_compute_units>(9);
  EXPECT_EQ(moka_model_load_mil(kTwice.c_str(), &c, &m), MOKA_INVALID_ARGUMENT);
  c = MOKA_CONFIGURATION_INIT;
  c.device = "toaster";
  EXPECT_EQ(moka_model_load_mil(kTwice.c_str(), &c, &m), MOKA_NOT_FOUND);
  c = MOKA_CONFIGURATION_INIT;
  c.pins = "# all\ntype:convolution=cpu\n";
  c.strict = 1;
  EXPECT_EQ(moka_model_load_mil(kTwice.c_str(), &c, &m), MOKA_NOT_FOUND);
  EXPECT_TRUE(std::string(moka_last_error()).starts_with("pin 'type:convolution=cpu' matches no operation; the model"))
      << moka_last_error();
  c = MOKA_CONFIGURATION_INIT;
  c.measure_kernels = static_cast<moka_measure_kernels>(3);
  EXPECT_EQ(moka_model_load_mil(kTwice.c_str(), &c, &m), MOKA_INVALID_ARGUMENT);
  c = MOKA_CONFIGURATION_INIT;
  const int processors[] = {0, -7};
  c.processors = processors;
  c.processor_count = 2;
  EXPECT_EQ(moka_model_load_mil(kTwice.c_str(), &c, &m), MOKA_INVALID_ARGUMENT);
  EXPECT_NE(std::string(moka_last_error()).find("-7"), std::string::npos) << moka_last_error();
  c.processor_count = 1;
  ASSERT_EQ(moka_model_load_mil(kTwice.c_str(), &c, &m), MOKA_OK) << moka_last_error();
  moka_model_free(m);
  m = nullptr;

  auto model = model_of(kTwice);
  auto in = features(), out = features();
  EXPECT_EQ(moka_model_predict(model.get(), in.get(), in.get(), nullptr), MOKA_INVALID_ARGUMENT);
  EXPECT_EQ(moka_model_predict(nullptr, in.get(), out.get(), nullptr), MOKA_INVALID_ARGUMENT);
  EXPECT_EQ(moka_model_predict(model.get(), in.get(), out.get(), nullptr), MOKA_INVALID_ARGUMENT);
  EXPECT_NE(std::string(moka_last_error()).find("'x'"), std::string::npos) << moka_last_error();
  const std::vector<int64_t> shape{2, -3}, huge{INT64_MAX, INT64_MAX};
  std::vector<float> data(6);
  moka_array x = array_of(data, shape);
  EXPECT_EQ(moka_features_set_array(in.get(), "x", &x), MOKA_INVALID_ARGUMENT);
  EXPECT_TRUE(std::string(moka_last_error()).starts_with("feature 'x': ")) << moka_last_error();
  x = array_of(data, huge);
  EXPECT_EQ(moka_features_set_array(in.get(), "x", &x), MOKA_INVALID_ARGUMENT);
  x.rank = size_t{1} << 60;
  EXPECT_EQ(moka_features_set_array(in.get(), "x", &x), MOKA_INVALID_ARGUMENT);
  x = {nullptr, MOKA_FLOAT32, 2, shape.data(), nullptr};
  EXPECT_EQ(moka_features_set_array(in.get(), "x", &x), MOKA_INVALID_ARGUMENT);
  moka_feature_info info;
  EXPECT_EQ(moka_model_feature(model.get(), MOKA_INPUT, 1, &info), MOKA_INVALID_ARGUMENT);
  EXPECT_EQ(moka_model_feature(model.get(), static_cast<moka_role>(-1), 0, &info), MOKA_INVALID_ARGUMENT);
  EXPECT_EQ(moka_model_feature_count(nullptr, MOKA_INPUT), 0u);
  EXPECT_EQ(moka_model_text(nullptr, MOKA_AUTHOR), nullptr);
  moka_model_free(nullptr);
  moka_features_free(nullptr);
  moka_state_free(nullptr);
}

TEST(CApi, KeepsOneMessagePerThread) {
  moka_model* m = nullptr;
  EXPECT_EQ(moka_model_load("/nowhere/here.mlmodel", nullptr, &m), MOKA_NOT_FOUND);
  std::string other = "unset";
  std::thread([&] { other = moka_last_error(); }).join();
  EXPECT_EQ(other, "");
  EXPECT_NE(std::string(moka_last_error()), "");
}

}  // namespace
