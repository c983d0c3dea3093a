// SPDX-License-Identifier: Apache-2.0
#include "moka/build.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cmath>
#include <fstream>

#include "api/api_util.h"
#include "models_folder.h"
#include "moka/program.h"
#include "temporary_folder.h"

namespace moka::test {
namespace {

namespace fs = std::filesystem;

std::string content(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

/// All files of a folder, by relative path.
std::map<std::string, std::string> contents(const fs::path& folder) {
  std::map<std::string, std::string> out;
  for (const auto& entry : fs::recursive_directory_iterator(folder))
    if (entry.is_regular_file()) out[fs::relative(entry.path(), folder).string()] = content(entry.path());
  return out;
}

FeatureDescription array(const std::string& name, std::vector<int64_t> shape, DataType type = DataType::float32) {
  FeatureDescription f;
  f.name = name;
  f.array.type = type;
  f.array.shape = std::move(shape);
  return f;
}

FeatureDescription number(const std::string& name) {
  FeatureDescription f;
  f.name = name;
  f.type = FeatureType::float64;
  return f;
}

/// y = softmax(W x) with labels.
ProgramBuilder classifier() {
  ProgramBuilder b("ios16");
  auto x = b.input("x", DataType::float32, {1, 4});
  auto y = b.op("linear",
                {{"x", x}, {"weight", counted({3, 4})}, {"bias", MultiArray::of(std::vector<float>{1, 0, -1}, {3})}});
  b.classify(b.op("softmax", {{"x", y}, {"axis", -1}}), std::vector<std::string>{"a", "b", "c"});
  ModelDescription texts;
  texts.author = "somebody";
  texts.user_defined["key"] = "value";
  b.metadata(texts);
  return b;
}

TEST(BuildProgram, ClassifierIsSavedAndPredicts) {
  TemporaryFolder folder;
  const std::string path = folder / "Classifier.mlpackage";
  classifier().save(path);
  Model saved = Model::load(path), built = classifier().build();
  EXPECT_EQ(saved.description().specification_version, 7);
  EXPECT_EQ(saved.description().author, "somebody");
  EXPECT_EQ(saved.description().user_defined.at("key"), "value");
  EXPECT_EQ(saved.description().class_labels, (std::vector<std::string>{"a", "b", "c"}));
  EXPECT_EQ(saved.function().predicted_feature_name, "classLabel");
  const MultiArray x = MultiArray::of(std::vector<float>{1, -2, 3, 0.5f}, {1, 4});
  // W x + b by hand; the softmax of it in double.
  double logits[3], sum = 0;
  const MultiArray w = counted({3, 4});
  for (int64_t i = 0; i < 3; ++i) {
    logits[i] = 1 - static_cast<double>(i);
    for (int64_t k = 0; k < 4; ++k) logits[i] += w.at(4 * i + k) * x.at(k);
    sum += std::exp(logits[i]);
  }
  for (Model* m : {&saved, &built}) {
    const Features out = m->predict({{"x", x}});
    const auto& probabilities = std::get<Dictionary>(out.at("classLabel_probs"));
    EXPECT_NEAR(probabilities.strings.at("a"), std::exp(logits[0]) / sum, 1e-6);
    EXPECT_NEAR(probabilities.strings.at("c"), std::exp(logits[2]) / sum, 1e-6);
    EXPECT_EQ(std::get<std::string>(out.at("classLabel")), "a");
  }
}

TEST(BuildProgram, FunctionsAndStates) {
  TemporaryFolder folder;
  ProgramBuilder b("ios18");
  b.function("count");
  auto total = b.state("total", DataType::float16, {2});
  auto sum = b.op("add", {{"x", b.op("read_state", {{"input", total}})}, {"y", b.input("x", DataType::float16, {2})}});
  b.output(b.op("coreml_update_state", {{"state", total}, {"value", sum}}), "y");
  b.function("twice");
  b.output(b.op("mul", {{"x", b.input("x", DataType::float16, {2})}, {"y", 2}}), "y");  // the number becomes float16
  b.save(folder / "m.mlpackage");
  ModelConfiguration configuration;
  Model count = Model::load(folder / "m.mlpackage", configuration);
  configuration.function_name = "twice";
  Model twice = Model::load(folder / "m.mlpackage", configuration);
  EXPECT_EQ(count.description().default_function, "count");
  ASSERT_EQ(count.function().states.size(), 1u);
  State state = count.new_state();
  const MultiArray x = MultiArray::of(std::vector<float>{1, 2.5f}, {2});
  PredictionOptions with_state{&state};
  count.predict({{"x", x}}, with_state);
  EXPECT_EQ(values(count.predict({{"x", x}}, with_state).array("y")), (std::vector<double>{2, 5}));
  EXPECT_EQ(values(twice.predict({{"x", x}}).array("y")), (std::vector<double>{2, 5}));
}

TEST(BuildProgram, ImagesAndFlexibleSizes) {
  TemporaryFolder folder;
  ProgramBuilder b("ios16");
  FeatureDescription picture;
  picture.name = "picture";
  picture.type = FeatureType::image;
  picture.image = {4, 2, ColorSpace::rgb};
  auto image = b.input(picture);
  FeatureDescription flexible = array("x", {1, 3});
  flexible.array.ranges = {{1, 1}, {2, 5}};
  b.output(b.op("reduce_sum", {{"x", b.input(flexible)}, {"axes", std::vector<int>{1}}, {"keep_dims", false}}), "sum");
  b.image_output(b.op("sub", {{"x", 255.f}, {"y", image}}), ColorSpace::rgb, "negative");
  b.save(folder / "m.mlpackage");
  Model m = Model::load(folder / "m.mlpackage");
  Image in(4, 2, PixelFormat::rgba8);
  for (int i = 0; i < 32; ++i) in.pixels.get()[i] = static_cast<uint8_t>(i % 4 == 3 ? 255 : 5 * i);
  const Features out = m.predict({{"picture", in}, {"x", counted({1, 5}, 1)}});
  EXPECT_EQ(out.array("sum").at(0), -3 - 2 - 1 + 0 + 1);
  const Image& negative = std::get<Image>(out.at("negative"));
  ASSERT_EQ(negative.width, 4);
  const bool swapped = negative.format == PixelFormat::bgra8;
  EXPECT_EQ(negative.pixels.get()[swapped ? 2 : 0], 255);
  EXPECT_EQ(negative.pixels.get()[1], 250);
  EXPECT_EQ(negative.pixels.get()[swapped ? 0 : 2], 245);
  expect_error(ErrorKind::invalid_argument, {"x", "6"}, [&] { m.predict({{"picture", in}, {"x", counted({1, 6})}}); });
}

TEST(BuildProgram, LoopsAndConditions) {
  TemporaryFolder folder;
  ProgramBuilder b("ios17");
  using Values = std::vector<ProgramBuilder::Value>;
  auto x = b.input("x", DataType::float32, {1});
  // Doubles x until it is at least 100.
  const Values loop = b.control("while_loop", {{"loop_vars", Values{x}}},
                                {[&](const Values& v) {
                                   return Values{b.op("less", {{"x", v[0]}, {"y", 100.f}})};
                                 },
                                 [&](const Values& v) {
                                   return Values{b.op("mul", {{"x", v[0]}, {"y", 2}})};
                                 }});
  const Values chosen = b.control("cond", {{"pred", b.op("greater", {{"x", loop[0]}, {"y", 150}})}},
                                  {[&](const Values&) {
                                     return Values{b.op("sub", {{"x", loop[0]}, {"y", 1}})};
                                   },
                                   [&](const Values&) {
                                     return Values{b.op("add", {{"x", loop[0]}, {"y", 1}})};
                                   }});
  b.output(chosen[0], "y");
  b.save(folder / "m.mlpackage");
  Model m = Model::load(folder / "m.mlpackage");
  EXPECT_EQ(m.predict({{"x", counted({1}, -1)}}).array("y").at(0), 3 * 64 - 1);
  EXPECT_EQ(m.predict({{"x", MultiArray::of(std::vector<float>{7}, {1})}}).array("y").at(0), 7 * 16 + 1);
}

TEST(BuildProgram, PackedConstantsAndEveryWeightType) {
  TemporaryFolder folder;
  ProgramBuilder b("ios18");
  MultiArray indices(DataType::int32, {4, 8});
  for (int i = 0; i < 32; ++i) indices.as<int32_t>()[static_cast<size_t>(i)] = (i * 5) % 16;
  MultiArray table(DataType::float32, {1, 1, 16, 1});
  for (int i = 0; i < 16; ++i) table.as<float>()[static_cast<size_t>(i)] = static_cast<float>(i * i);
  auto weight = b.op("constexpr_lut_to_dense", {{"indices", b.constant(indices, "uint4")}, {"lut", table}});
  auto x = b.input("x", DataType::float32, {1, 8});
  b.output(b.op("linear", {{"x", x}, {"weight", weight}}), "y");
  b.save(folder / "m.mlpackage");
  MultiArray one(DataType::float32, {1, 8});
  one.as<float>()[3] = 1;
  const MultiArray y = Model::load(folder / "m.mlpackage").predict({{"x", one}}).array("y");
  for (int64_t i = 0; i < 4; ++i) EXPECT_EQ(y.at(i), std::pow((8 * i + 3) * 5 % 16, 2)) << i;
  expect_error(ErrorKind::invalid_argument, {"16", "uint4"},
               [&] { b.constant(MultiArray::of(std::vector<float>{16}, {1}), "uint4"); });
}

TEST(BuildProgram, ConstantsMustFitTheirType) {
  ProgramBuilder b("ios18");
  MultiArray number(DataType::int64, {1});
  for (const auto& [value, type] :
       {std::pair<int64_t, const char*>(300, "int8"), {int64_t{1} << 40, "int32"}, {-1, "uint8"}}) {
    number.as<int64_t>()[0] = value;
    expect_error(ErrorKind::invalid_argument, {std::to_string(value).c_str(), "does not fit", type},
                 [&] { b.constant(number, type); });
  }
  expect_error(ErrorKind::invalid_argument, {"2.75 does not fit into int8"},
               [&] { b.constant(MultiArray::of(std::vector<float>{2.75f}, {1}), "int8"); });
  EXPECT_NO_THROW(b.constant(MultiArray::of(std::vector<float>{-3}, {1}), "int8"));
}

TEST(BuildProgram, NeedsAnOutput) {
  ProgramBuilder b("ios18");
  b.function("main");
  b.op("add", {{"x", b.input("x", DataType::float32, {1})}, {"y", 1.0f}});
  expect_error(ErrorKind::invalid_argument, {"'main'", "no output"}, [&] { b.build(); });
}

TEST(BuildProgram, ErrorsNameTheOperationAndTheParameter) {
  ProgramBuilder b("ios16");
  auto x = b.input("x", DataType::float32, {1, 3, 8, 8});
  expect_error(ErrorKind::invalid_argument, {"conv", "unknown parameter 'weights'"}, [&] {
    b.op("conv", {{"x", x}, {"weights", counted({4, 3, 3, 3})}});
  });
  expect_error(ErrorKind::invalid_argument, {"conv", "weight", "5"}, [&] {
    b.op("conv", {{"x", x}, {"weight", counted({4, 5, 3, 3})}});
  });
  expect_error(ErrorKind::invalid_argument, {"conv", "pad_type", "one of 'valid'", "'sama'"}, [&] {
    b.op("conv", {{"x", x}, {"weight", counted({4, 3, 3, 3})}, {"pad_type", "sama"}});
  });
  expect_error(ErrorKind::unsupported, {"frobnicate"}, [&] { b.op("frobnicate", {{"x", x}}); });
  expect_error(ErrorKind::unsupported, {"read_state", "ios16"}, [&] { b.op("read_state", {{"input", x}}); });
  expect_error(ErrorKind::invalid_argument, {"state 's'", "ios18", "ios16"},
               [&] { b.state("s", DataType::float32, {1}); });
  expect_error(ErrorKind::invalid_argument, {"image 'y'", "[1, 1, height, width]", "[1, 3, 8, 8]"}, [&] {
    b.image_output(b.op("relu", {{"x", x}}), ColorSpace::grayscale, "y");
  });
  expect_error(ErrorKind::invalid_argument, {"input 'x'", "another value"},
               [&] { b.input("x", DataType::float32, {1}); });
  ProgramBuilder other("ios16");
  expect_error(ErrorKind::invalid_argument, {"'x'", "another function"}, [&] { other.op("relu", {{"x", x}}); });
  expect_error(ErrorKind::invalid_argument, {"'x'", "another function"}, [&] { other.output(x); });
  ProgramBuilder::Value inside;
  auto flag = b.op("less", {{"x", b.op("reduce_max", {{"x", x}, {"keep_dims", false}})}, {"y", 0}});
  b.control("cond", {{"pred", flag}},
            {[&](const auto&) {
               return std::vector{inside = b.op("relu", {{"x", x}})};
             },
             [&](const auto&) { return std::vector{x}; }});
  expect_error(ErrorKind::invalid_argument, {"a block that does not contain"}, [&] { b.op("relu", {{"x", inside}}); });
  expect_error(ErrorKind::invalid_argument, {"a block that does not contain"}, [&] { b.output(inside); });
  expect_error(ErrorKind::invalid_argument, {"function 'main'", "no output"}, [&] { b.source(); });
  b.output(b.op("less", {{"x", x}, {"y", 1.f}}), "y");
  expect_error(ErrorKind::invalid_argument, {"'y'", "boolean"}, [&] { b.source(); });
}

TEST(BuildProgram, ListsOperationsAndParameters) {
  const auto old = operations_of("ios15"), all = operations_of("ios18");
  const auto has = [](const auto& list, const char* name) {
    return std::find(list.begin(), list.end(), name) != list.end();
  };
  EXPECT_TRUE(has(all, "read_state") && !has(old, "read_state") && has(old, "conv"));
  EXPECT_FALSE(has(all, "nn_softmax") ||
               std::any_of(all.begin(), all.end(), [](auto& n) { return n.starts_with("ml_"); }));
  const auto parameters = parameters_of("softmax", "ios15");
  ASSERT_EQ(parameters.size(), 2u);
  EXPECT_EQ(parameters[1].name, "axis");
  EXPECT_TRUE(parameters[1].constant && parameters[1].optional && !parameters[0].constant);
}

/// y = W x + b as a neural network.
ModelSource network() {
  ModelDescription d;
  d.specification_version = 4;
  d.functions = {{"", {array("x", {4}, DataType::float64)}, {array("y", {3}, DataType::float64)}}};
  Message model = describe_model(d);
  Message layer = model.add("neuralNetwork").add("layers");
  layer.set("name", "dense").set("input", "x").set("output", "y");
  Message dense = layer.add("innerProduct").set("inputChannels", 4).set("outputChannels", 3);
  dense.set("hasBias", Message::Scalar(true));
  dense.add("weights").set("floatValue", counted({3, 4}));
  dense.add("bias").set("floatValue", MultiArray::of(std::vector<float>{1, 0, -1}, {3}));
  return ModelSource(model);
}

TEST(BuildModels, NeuralNetworkOfMessages) {
  TemporaryFolder folder;
  network().save(folder / "n.mlmodel");
  Model saved = Model::load(folder / "n.mlmodel"), loaded = network().load();
  const MultiArray x = MultiArray::of(std::vector<float>{1, -2, 3, 0.5f}, {4}), w = counted({3, 4});
  for (Model* m : {&saved, &loaded}) {
    const MultiArray y = m->predict({{"x", x}}).array("y");
    for (int64_t i = 0; i < 3; ++i) {
      double expected = 1 - static_cast<double>(i);
      for (int64_t k = 0; k < 4; ++k) expected += w.at(4 * i + k) * x.at(k);
      EXPECT_NEAR(y.at(i), expected, 1e-6);
    }
  }
}

TEST(BuildModels, ClassicModelAndPipeline) {
  TemporaryFolder folder;
  // A feature vectorizer and a linear regressor: 2 a - 3 b + 0.5.
  ModelDescription vectorizer;
  vectorizer.functions = {{"", {number("a"), number("b")}, {array("v", {2}, DataType::float64)}}};
  Message first = describe_model(vectorizer);
  Message columns = first.add("featureVectorizer");
  for (const char* name : {"a", "b"}) columns.add("inputList").set("inputColumn", name).set("inputDimensions", 1);
  ModelDescription regressor;
  regressor.functions = {{"", {array("v", {2}, DataType::float64)}, {number("y")}}};
  regressor.functions[0].predicted_feature_name = "y";
  Message second = describe_model(regressor);
  Message glm = second.add("glmRegressor");
  glm.add("weights").set("value", std::vector<Message::Scalar>{2.0, -3.0});
  glm.set("offset", std::vector<Message::Scalar>{0.5});
  ModelDescription whole = vectorizer;
  whole.functions[0].outputs = regressor.functions[0].outputs;
  whole.functions[0].predicted_feature_name = "y";
  Message pipeline = describe_model(whole);
  pipeline.add("pipelineRegressor");
  ModelSource source(pipeline);
  source.add_stage(ModelSource(first), "vectorizer");
  source.add_stage(ModelSource(second), "regressor");
  source.save(folder / "p.mlmodel");
  const Features out = Model::load(folder / "p.mlmodel").predict({{"a", 4.0}, {"b", 1.5}});
  EXPECT_DOUBLE_EQ(std::get<double>(out.at("y")), 8 - 4.5 + 0.5);
}

TEST(BuildModels, PipelineOfProgramsKeepsBothWeightFiles) {
  TemporaryFolder folder;
  const auto dense = [](const char* in, const char* out, float step) {
    ProgramBuilder b("ios16");
    auto y = b.op("linear", {{"x", b.input(in, DataType::float32, {1, 4})}, {"weight", counted({4, 4}, step)}});
    b.output(y, out);
    return b.source();
  };
  ModelDescription d;
  d.specification_version = 7;
  d.functions = {{"", {array("x", {1, 4})}, {array("z", {1, 4})}}};
  Message model = describe_model(d);
  model.add("pipeline");
  ModelSource source(model);
  source.add_stage(dense("x", "y", 1), "first");
  source.add_stage(dense("y", "z", 2), "second");
  EXPECT_EQ(source.weight_files(), (std::vector<std::string>{"weights/1-weight.bin", "weights/weight.bin"}));
  source.save(folder / "p.mlpackage");
  const MultiArray x = MultiArray::of(std::vector<float>{1, 2, 3, 4}, {1, 4});
  const MultiArray z = Model::load(folder / "p.mlpackage").predict({{"x", x}}).array("z");
  const MultiArray w = counted({4, 4}, 1);
  double y[4] = {};
  for (int64_t i = 0; i < 4; ++i)
    for (int64_t k = 0; k < 4; ++k) y[i] += w.at(4 * i + k) * x.at(k);
  for (int64_t i = 0; i < 4; ++i) {
    double expected = 0;
    for (int64_t k = 0; k < 4; ++k) expected += 2 * w.at(4 * i + k) * y[k];
    EXPECT_NEAR(z.at(i), expected, 1e-4);
  }
  expect_error(ErrorKind::invalid_argument, {".mlpackage"}, [&] { source.save(folder / "p.mlmodel"); });
  expect_error(ErrorKind::invalid_argument, {"expected a pipeline", "neuralNetwork"},
               [] { network().add_stage(network(), "again"); });
}

TEST(SaveModels, WithoutChangesAreTheSameFiles) {
  TemporaryFolder folder;
  classifier().save(folder / "a.mlpackage");
  ModelSource::open(folder / "a.mlpackage").save(folder / "b.mlpackage");
  EXPECT_EQ(contents(folder / "a.mlpackage"), contents(folder / "b.mlpackage"));
  EXPECT_EQ(contents(folder / "a.mlpackage").size(), 3u);
  classifier().save(folder / "c.mlpackage");  // the same program gives the same bytes
  EXPECT_EQ(contents(folder / "a.mlpackage"), contents(folder / "c.mlpackage"));
}

TEST(SaveModels, InPlaceWithAChange) {
  TemporaryFolder folder;
  network().save(folder / "n.mlmodel");
  ModelSource opened = ModelSource::open(folder / "n.mlmodel");
  opened.specification().add("description").add("metadata").set("author", "somebody else");
  opened.save(folder / "n.mlmodel");
  EXPECT_EQ(Model::load(folder / "n.mlmodel").description().author, "somebody else");
  classifier().save(folder / "p.mlpackage");
  ModelSource package = ModelSource::open(folder / "p.mlpackage");
  package.specification().add("description").add("metadata").set("license", "MIT");
  package.save(folder / "p.mlpackage");
  EXPECT_EQ(Model::load(folder / "p.mlpackage").description().license, "MIT");
  EXPECT_EQ(std::distance(fs::directory_iterator(folder.path()), {}), 2) << "temporary files are left";
}

TEST(SaveModels, RefusesPathsThatHoldOtherThings) {
  TemporaryFolder folder;
  fs::create_directory(folder / "full.mlpackage");
  std::ofstream(folder / "full.mlpackage" / "letter.txt") << "text";
  expect_error(ErrorKind::invalid_argument, {"other files"}, [&] { network().save(folder / "full.mlpackage"); });
  expect_error(ErrorKind::invalid_argument, {".mlmodel"}, [&] { network().save(folder / "n.txt"); });
  expect_error(ErrorKind::io, {"n.mlmodel"}, [&] { network().save("/proc/n.mlmodel"); });
  EXPECT_EQ(content(folder / "full.mlpackage" / "letter.txt"), "text");
}

/// Memory of this process that is in use, in bytes. Pages of files and of untouched memory do not count.
size_t memory_in_use() {
  std::ifstream in("/proc/self/statm");
  size_t size = 0, resident = 0, shared = 0;
  in >> size >> resident >> shared;
  return (resident - shared) * static_cast<size_t>(sysconf(_SC_PAGESIZE));
}

TEST(SaveModels, StreamsWeightsOfMoreThanTwoGigabytes) {
  TemporaryFolder folder;
  constexpr size_t part = size_t{550} << 20, count = 4;
  if (fs::space(folder.path()).available < 2 * part * count)
    GTEST_SKIP() << "the temporary folder has no room for 4.4 GB";
  // Reading memory that was never written gives zeros and takes no memory.
  void* zeros = mmap(nullptr, part, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  ASSERT_NE(zeros, MAP_FAILED);
  constexpr int64_t columns = 4096, rows = static_cast<int64_t>(part) / columns / 4;
  const size_t before = memory_in_use();
  {
    ProgramBuilder b("ios16");
    auto x = b.input("x", DataType::int32, {1});
    for (size_t i = 0; i < count; ++i) {
      // Overlapping parts at different addresses are different weights.
      auto* data = static_cast<char*>(zeros) + i * columns * 4;
      const MultiArray table(data, DataType::float32, {rows - 4, columns});
      b.output(b.op("gather", {{"x", table}, {"indices", x}, {"axis", 0}}), "y" + std::to_string(i));
    }
    MultiArray last(DataType::float32, {4, 4});
    last.as<float>()[15] = 42;
    b.output(b.op("gather", {{"x", last}, {"indices", x}, {"axis", 0}}), "last");
    b.save(folder / "big.mlpackage");
  }
  EXPECT_LT(memory_in_use(), before + (size_t{100} << 20));
  munmap(zeros, part);
  const fs::path weights = folder / "big.mlpackage" / "Data" / "com.apple.CoreML" / "weights" / "weight.bin";
  ASSERT_GT(fs::file_size(weights), size_t{2} << 30);
  MultiArray three(DataType::int32, {1});
  three.as<int32_t>()[0] = 3;
  const Features out = Model::load(folder / "big.mlpackage").predict({{"x", three}});
  EXPECT_EQ(out.array("last").at(3), 42);
  EXPECT_EQ(out.array("y3").at(columns - 1), 0);
}

/// A description may give an input of a program another type: one number or text where the program reads 300 numbers.
TEST(BuildProgram, DescribedTypesAreThoseOfTheProgram) {
  ProgramBuilder b;
  b.output(b.op("relu", {{"x", b.input("x", DataType::float32, {300})}}), "y");
  for (const std::string type : {"stringType", "dictionaryType", "sequenceType", "int64Type", "doubleType"}) {
    SCOPED_TRACE(type);
    Message model = b.source().specification();
    Message input = model.at("description").at("input");
    input.clear("type");
    Message other = input.add("type").add(type);
    if (type == "dictionaryType") other.add("stringKeyType");
    if (type == "sequenceType") other.add("stringType");
    expect_error(ErrorKind::malformed, {"input 'x'", "fp32, [300]", "another type"}, [&] {
      const Model m = ModelSource(model).load();
      m.predict(random_inputs(m.function()));
    });
  }
}

}  // namespace
}  // namespace moka::test
