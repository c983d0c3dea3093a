// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>

#include "format/model_file.h"
#include "format/proto/mil.pb.h"
#include "format/proto/model.pb.h"
#include "import/importer.h"
#include "import/mlprogram/value.h"
#include "ir/evaluate.h"
#include "ir/text_printer.h"
#include "ir/text_reader.h"
#include "ir/verifier.h"
#include "models_folder.h"

namespace moka::import {
namespace {

namespace fs = std::filesystem;
using namespace ir;

Result<ImportedModel> load(const std::string& name) {
  return import_model(MOKA_TRY(format::open_model((test::models_path() / name).string())), {});
}

TextOptions with_weights(const format::ModelFile& file) {
  TextOptions options;
  options.blob = [&file](std::string_view path, uint64_t offset, const Type& type) {
    return import_blob(file.weights(), path, offset, type);
  };
  return options;
}

TEST(MLProgram, EveryModelImportsAndItsTextIsAFixedPoint) {
  MOKA_NEEDS_MODELS(models);
  int programs = 0;
  for (auto it = fs::recursive_directory_iterator(test::models_path()); it != fs::recursive_directory_iterator();
       ++it) {
    const auto extension = it->path().extension();
    if (extension != ".mlpackage" && extension != ".mlmodelc") continue;
    it.disable_recursion_pending();
    SCOPED_TRACE(it->path().filename().string());
    const auto file = format::open_model(it->path().string());
    if (!file.ok()) continue;  // compiled neural networks
    const auto description = describe(file->spec(), *file);
    ASSERT_TRUE(description.ok()) << description.error().to_string();
    if (description->type_name != "mlProgram" && file->mil_text().empty()) continue;
    ++programs;
    const auto model = import_model(*file, {});
    ASSERT_TRUE(model.ok()) << model.error().to_string();
    EXPECT_EQ(model->description.type_name, "mlProgram");
    const Status good = verify(model->program);
    EXPECT_TRUE(good.ok()) << good.error().to_string();
    const std::string first = print_text(model->program);
    const auto again = read_text(first, ops::table(), with_weights(*file));
    ASSERT_TRUE(again.ok()) << again.error().to_string();
    EXPECT_EQ(print_text(*again), first);
    if (file->mil_text().empty()) continue;
    std::string_view written = file->mil_text().text();
    while (written.ends_with('\n')) written.remove_suffix(1);
    EXPECT_EQ(first, written);
  }
  EXPECT_GE(programs, 15);
}

/// Positive inputs that differ from element to element and from input to input, the same for every model.
std::map<std::string, RuntimeValue> some_inputs(const Function& f, int64_t unknown) {
  std::map<std::string, RuntimeValue> out;
  for (const auto& v : f.body().inputs()) {
    Shape shape = v->type.shape();
    for (int i = 0; i < shape.rank(); ++i)
      if (shape[i] < 0) shape[i] = unknown;
    Tensor t = Tensor::zeros(v->type.dtype(), shape).value();
    for (int64_t i = 0; i < t.count(); ++i)
      store_f64(t.view(), i,
                0.1 + 0.5 * std::fabs(std::sin(0.37 * static_cast<double>(i) + static_cast<double>(v->name.size()))));
    out[v->name] = std::move(t);
  }
  return out;
}

Result<std::vector<RuntimeValue>> run(const ImportedModel& model, int64_t unknown = 1) {
  const Function& f = *model.program.find(model.description.default_function);
  auto named = some_inputs(f, unknown);
  std::vector<RuntimeValue> inputs;
  for (const auto& v : f.body().inputs()) inputs.push_back(named[v->name]);
  return evaluate(f, inputs);
}

/// The largest difference of outputs with equal description order.
double difference(const std::vector<RuntimeValue>& a, const std::vector<RuntimeValue>& b) {
  double worst = a.size() == b.size() ? 0 : HUGE_VAL;
  for (size_t k = 0; k < a.size() && k < b.size(); ++k) {
    const TensorView x = a[k].view(), y = b[k].view();
    if (!(x.shape == y.shape)) return HUGE_VAL;
    for (int64_t i = 0; i < x.count(); ++i) {
      const double d = std::fabs(load_f64(x, i) - load_f64(y, i));
      if (!(d <= worst)) worst = d;
    }
  }
  return worst;
}

// Apple's compiler reorders and fuses fp16 operations. One unit in the last place of fp16 at 1 is 9.8e-4.
TEST(MLProgram, SourceAndCompiledModelAgree) {
  MOKA_NEEDS_MODELS(models);
  for (const std::string name : {"silero-vad-unified-v6.0.0", "unified_palette_4bit", "unified_int8"}) {
    SCOPED_TRACE(name);
    const auto source = load("silero_vad/" + name + ".mlpackage");
    const auto compiled = load("silero_vad/" + name + ".mlmodelc");
    ASSERT_TRUE(source.ok()) << source.error().to_string();
    ASSERT_TRUE(compiled.ok()) << compiled.error().to_string();
    const auto a = run(*source), b = run(*compiled);
    ASSERT_TRUE(a.ok()) << a.error().to_string();
    ASSERT_TRUE(b.ok()) << b.error().to_string();
    EXPECT_LE(difference(*a, *b), 2e-3);
    EXPECT_GT(std::fabs(load_f64((*a)[0].view(), 0)), 0);
  }
}

// The unknown dimension is the batch: its first row must not depend on how many rows there are. The expected numbers
// were computed with numpy from the specification.
TEST(MLProgram, LoopsAndListsRun) {
  MOKA_NEEDS_MODELS(models);
  const auto model = load("dtln_aec/DTLN_AEC_128_Part1.mlpackage");
  ASSERT_TRUE(model.ok()) << model.error().to_string();
  const auto one = run(*model, 1), two = run(*model, 2);
  ASSERT_TRUE(one.ok()) << one.error().to_string();
  ASSERT_TRUE(two.ok()) << two.error().to_string();
  const auto& outputs = model->description.functions[0].outputs;
  ASSERT_EQ(one->size(), outputs.size());
  struct Expected {
    std::string name;
    std::vector<double> values;  ///< elements 0, 1, 2, 100, 200 and the last
    double sum;
  };
  const Expected expected[] = {
      {"Identity", {0.005958557, 0.131103516, 0.032592773, 0.173828125, 0.026611328, 0.006744385}, 23.2101},
      {"Identity_1", {0.024719238, 0.073791504, 0.295898438, -0.221679688, 0.116088867, -0.447509766}, 88.75614}};
  for (const Expected& e : expected)
    for (size_t k = 0; k < outputs.size(); ++k) {
      if (outputs[k].name != e.name) continue;
      const TensorView v = (*one)[k].view();
      const int64_t at[] = {0, 1, 2, 100, 200, v.count() - 1};
      for (size_t i = 0; i < 6; ++i) EXPECT_NEAR(load_f64(v, at[i]), e.values[i], 2e-3) << e.name << " " << at[i];
      double sum = 0;
      for (int64_t i = 0; i < v.count(); ++i) sum += load_f64(v, i);
      EXPECT_NEAR(sum, e.sum, 0.05) << e.name;
    }
  for (size_t k = 0; k < outputs.size(); ++k) {
    const TensorView a = (*one)[k].view(), b = (*two)[k].view();
    ASSERT_EQ(b.count(), 2 * a.count());
    if (outputs[k].name != "Identity") continue;
    double sum = 0;
    for (int64_t i = 0; i < a.count(); ++i) {
      EXPECT_GT(load_f64(a, i), 0);
      EXPECT_LT(load_f64(a, i), 1);
      EXPECT_EQ(load_f64(a, i), load_f64(b, i)) << i;
      sum += load_f64(a, i);
    }
    EXPECT_GT(sum, 0);
  }
}

namespace mil = proto::MILSpec;

void set_type(mil::ValueType& type, mil::DataType dtype) {
  auto& t = *type.mutable_tensortype();
  t.set_datatype(dtype);
  t.set_rank(1);
  t.add_dimensions()->mutable_constant()->set_size(2);
}

/// y = relu(x) of two float32 numbers, declared with other elements.
Result<ImportedModel> relu_declared(mil::DataType dtype) {
  proto::Model model;
  model.set_specificationversion(6);
  for (auto* f : {model.mutable_description()->add_input(), model.mutable_description()->add_output()}) {
    f->mutable_type()->mutable_multiarraytype()->add_shape(2);
    f->mutable_type()->mutable_multiarraytype()->set_datatype(proto::ArrayFeatureType::FLOAT32);
  }
  model.mutable_description()->mutable_input(0)->set_name("x");
  model.mutable_description()->mutable_output(0)->set_name("y");
  auto& function = (*model.mutable_mlprogram()->mutable_functions())["main"];
  function.set_opset("CoreML5");
  auto& x = *function.add_inputs();
  x.set_name("x");
  set_type(*x.mutable_type(), mil::FLOAT32);
  auto& block = (*function.mutable_block_specializations())["CoreML5"];
  auto& op = *block.add_operations();
  op.set_type("relu");
  (*op.mutable_inputs())["x"].add_arguments()->set_name("x");
  auto& y = *op.add_outputs();
  y.set_name("y");
  set_type(*y.mutable_type(), dtype);
  block.add_outputs("y");
  return import_model(MOKA_TRY(format::open_model_bytes(Bytes::from(model.SerializeAsString()), {})), {});
}

TEST(MLProgram, ResultsMayBeDeclaredInTheOtherFloat) {
  const auto model = relu_declared(mil::FLOAT16);
  ASSERT_TRUE(model.ok()) << model.error().to_string();
  const Block& body = model->program.functions[0]->body();
  const Value& y = *body.outputs()[0];
  EXPECT_EQ(y.type, Type::tensor(DType::fp16, {2}));
  EXPECT_EQ(y.name, "y");
  EXPECT_EQ(y.producer()->type_name(), "cast");
  EXPECT_EQ(y.producer()->input("x")->type, Type::tensor(DType::fp32, {2}));
  EXPECT_TRUE(verify(model->program).ok());

  const auto wrong = relu_declared(mil::INT32);
  ASSERT_FALSE(wrong.ok());
  EXPECT_NE(wrong.error().to_string().find("declared tensor<int32, [2]>, but its inputs give tensor<fp32, [2]>"),
            std::string::npos)
      << wrong.error().to_string();
}

TEST(Description, SaysWhatTheModelSays) {
  MOKA_NEEDS_MODELS(models);
  const auto file =
      format::open_model((test::models_path() / "silero_vad/silero-vad-encoder-v6.0.0.mlpackage").string());
  ASSERT_TRUE(file.ok()) << file.error().to_string();
  const auto d = describe(file->spec(), *file);
  ASSERT_TRUE(d.ok()) << d.error().to_string();
  EXPECT_EQ(d->specification_version, 6);
  ASSERT_EQ(d->functions.size(), 1u);
  ASSERT_EQ(d->functions[0].inputs.size(), 1u);
  const FeatureDescription& f = d->functions[0].inputs[0];
  EXPECT_EQ(f.name, "stft_features");
  EXPECT_EQ(f.array.shape, (std::vector<int64_t>{1, 129, 1}));
  ASSERT_EQ(f.array.ranges.size(), 3u);
  EXPECT_EQ(f.array.ranges[2], (SizeRange{1, 1024}));
  const auto type = boundary_type(f, false);
  ASSERT_TRUE(type.ok());
  EXPECT_EQ(*type, Type::tensor(DType::fp32, {1, 129, kAnyDim}));
}

TEST(Description, ImagesAndClassicTypes) {
  FeatureDescription f;
  f.kind = FeatureKind::image;
  f.image = {299, 200, ColorSpace::bgr, SizeRange{299, -1}, SizeRange{200, 200}, {}};
  EXPECT_EQ(boundary_type(f, false).value(), Type::tensor(DType::fp32, {1, 3, 200, kAnyDim}));
  f.image = {8, 9, ColorSpace::grayscale_float16, {}, {}, {{8, 9}, {16, 9}}};
  EXPECT_EQ(boundary_type(f, false).value(), Type::tensor(DType::fp16, {1, 1, 9, kAnyDim}));
  f.kind = FeatureKind::dictionary;
  f.string_keys = false;
  EXPECT_EQ(boundary_type(f, true).value(), Type::dict(Type::scalar(DType::int64), Type::scalar(DType::fp64)));
  f.kind = FeatureKind::sequence;
  EXPECT_EQ(boundary_type(f, true).value(), Type::tensor(DType::int64, {kAnyDim}));
  f.kind = FeatureKind::multi_array;
  f.array.dtype = DType::fp64;
  EXPECT_EQ(boundary_type(f, true).value(), Type::unranked(DType::fp64));
  f.array.enumerated = {{1, 2, 3}, {1, 5, 3}};
  f.array.shape = {1, 2, 3};
  EXPECT_EQ(boundary_type(f, true).value(), Type::tensor(DType::fp64, {1, kAnyDim, 3}));
  EXPECT_EQ(boundary_type(f, false).value(), Type::tensor(DType::fp32, {1, kAnyDim, 3}));
}

TEST(Import, UnsupportedModelsAreNamed) {
  MOKA_NEEDS_MODELS(models);
  const auto r = load("rules_apple_samples/sample.mlmodel");
  ASSERT_FALSE(r.ok());
  EXPECT_EQ(r.error().code(), ErrorCode::unsupported);
  EXPECT_NE(r.error().to_string().find("textClassifier"), std::string::npos) << r.error().to_string();
}

}  // namespace
}  // namespace moka::import
