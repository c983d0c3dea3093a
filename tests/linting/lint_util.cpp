// SPDX-License-Identifier: Apache-2.0
#include "lint_util.h"

#include <unistd.h>

#include <filesystem>
#include <random>

namespace moka::lint_test {

namespace fs = std::filesystem;

MultiArray array(const std::vector<float>& numbers, std::vector<int64_t> shape) {
  return MultiArray::of(numbers, std::move(shape));
}

MultiArray noise(std::vector<int64_t> shape, float scale, unsigned seed) {
  MultiArray out(DataType::float32, std::move(shape));
  std::mt19937 engine(seed);
  for (float& x : out.as<float>()) x = scale * (static_cast<float>(engine() % 2001) - 1000) / 1000;
  return out;
}

FeatureDescription image(const std::string& name, int64_t width, int64_t height) {
  FeatureDescription f;
  f.name = name;
  f.type = FeatureType::image;
  f.image.width = width;
  f.image.height = height;
  return f;
}

Value half_input(ProgramBuilder& b, const std::string& name, std::vector<int64_t> shape) {
  return b.op("cast", {{"x", b.input(name, DataType::float32, std::move(shape))}, {"dtype", "fp16"}}, name + "_half");
}

void float_output(ProgramBuilder& b, Value y, const std::string& name) {
  b.output(b.op("cast", {{"x", y}, {"dtype", "fp32"}}, name));
}

ModelSource network(const std::string& input, const std::string& output) {
  const auto feature = [](const std::string& name) {
    FeatureDescription f;
    f.name = name;
    f.array.shape = {8};
    return f;
  };
  ModelDescription description;
  description.specification_version = 4;
  description.functions.resize(1);
  description.functions[0].inputs = {feature(input)};
  description.functions[0].outputs = {feature(output)};
  Message model = describe_model(description);
  Message layer = model.add("neuralNetwork").add("layers");
  layer.set("name", "last");
  layer.set("input", std::vector<Message::Scalar>{input});
  layer.set("output", std::vector<Message::Scalar>{output});
  layer.add("activation").add("ReLU");
  return ModelSource(model);
}

Saved::Saved(const ModelSource& source, const std::string& name) {
  static int count = 0;
  folder_ =
      (fs::temp_directory_path() / ("moka_lint_" + std::to_string(getpid()) + "_" + std::to_string(count++))).string();
  fs::create_directories(folder_);
  const bool program = source.specification().which("Type") == "mlProgram";
  path = folder_ + "/" + name + (program ? ".mlpackage" : ".mlmodel");
  source.save(path);
}

Saved::~Saved() { fs::remove_all(folder_); }

lint::Report report(const ModelSource& source, const lint::Options& options) {
  const Saved saved(source);
  return lint::check(saved.path, options);
}

std::vector<std::string> found(const ModelSource& source, const lint::Options& options) {
  std::vector<std::string> out;
  for (const lint::Finding& f : report(source, options).findings)
    out.push_back(std::string(lint::to_string(f.level)) + " " + f.rule + " " + f.place);
  return out;
}

testing::AssertionResult finds(const lint::Report& report, const std::string& rule, const std::string& place,
                               lint::Level level) {
  std::string all;
  for (const lint::Finding& f : report.findings) {
    if (f.rule == rule && f.level == level && f.place.find(place) != std::string::npos)
      return testing::AssertionSuccess();
    all += "\n  " + std::string(lint::to_string(f.level)) + " " + f.rule + " " + f.place + ": " + f.reason + " (" +
           f.evidence + ")";
  }
  return testing::AssertionFailure() << "expected " << lint::to_string(level) << " " << rule << " " << place << ", got"
                                     << (all.empty() ? " nothing" : all);
}

}  // namespace moka::lint_test
