// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "ir/text_reader.h"
#include "training/trainer.h"

namespace moka::api {
std::vector<const kernel::Device*> all_devices();
}

/// Training against PyTorch in float64: cases.json, which generate.py writes.
namespace moka::training {
namespace {

using nlohmann::json;
using namespace ir;

const json& cases() {
  static const json all = json::parse(std::ifstream(MOKA_TRAINING_CASES));
  return all;
}

constexpr double kMove = 0.125;  // MOVE in generate.py

/// As draw() in generate.py.
Tensor draw(uint64_t seed, const Shape& shape) {
  Tensor out = *Tensor::zeros(DType::fp32, shape);
  for (int64_t k = 0; k < out.count(); k++) {
    uint64_t x = (static_cast<uint64_t>(k) + seed * 1000003) * 2654435761U & 0xFFFFFFFF;
    x ^= x >> 15;
    x = x * 2246822519U & 0xFFFFFFFF;
    x ^= x >> 13;
    store_f64(out.view(), k, static_cast<double>(x >> 8) / 8388608 - 1);
  }
  return out;
}

Result<import::ImportedModel> import_text(const std::string& text) {
  import::ImportedModel m;
  m.program = MOKA_TRY(read_text(text, ops::table()));
  const Function& f = *m.program.functions[0];
  m.description.typed = true;
  m.description.default_function = f.name;
  import::FunctionDescription d;
  d.name = f.name;
  for (const auto& v : f.body().inputs()) {
    d.inputs.emplace_back().name = v->name;
    for (int64_t n : v->type.shape()) d.inputs.back().array.shape.push_back(n);
  }
  for (const Value* v : f.body().outputs()) d.outputs.emplace_back().name = v->name;
  m.description.functions.push_back(std::move(d));
  return m;
}

std::vector<const kernel::Device*> host_devices() {
  std::vector<const kernel::Device*> out;
  for (const kernel::Device* d : api::all_devices())
    if (d->name() == "cpu" || d->name() == "reference") out.push_back(d);
  return out;
}

TrainerOptions options_of(const json& c, int threads) {
  TrainerOptions o;
  const auto statistics = c["statistics"].get<std::set<std::string>>();
  for (const auto& [name, value] : c["weights"].items())
    if (!statistics.contains(name)) o.program.parameters.push_back(name);
  if (!statistics.empty()) o.program.batch_statistics = kMove;
  o.program.optimizer = c["optimizer"] == "adam" ? Optimizer::adam : Optimizer::sgd;
  o.program.momentum = c["numbers"].contains("momentum");
  const bool is_class = c["loss"] == "cross_entropy";
  o.program.losses.push_back({is_class ? Loss::Kind::cross_entropy : Loss::Kind::mean_squared_error, "y", "target"});
  o.compile.plan.devices = host_devices();
  o.compile.plan.threads = threads;
  return o;
}

struct Trained {
  std::vector<double> losses;
  std::map<std::string, Tensor> weights;
};

Shape shape_of(const json& dims) {
  Shape shape;
  for (int64_t d : dims) shape.push_back(d);
  return shape;
}

/// The masks of dropout in a step.
std::map<std::string, Tensor> masks_of(const json& c, uint64_t step) {
  std::map<std::string, Tensor> out;
  uint64_t seed = step + 7000;
  for (const auto& [name, dims] : c["masks"].items()) {
    const Tensor mask = draw(seed++, shape_of(dims));
    for (int64_t i = 0; i < mask.count(); i++) store_f64(mask.view(), i, load_f64(mask.view(), i) > 0 ? 2 : 0);
    out.emplace(name, mask);
  }
  return out;
}

Result<std::unique_ptr<Trainer>> trainer_of(const json& c, TrainerOptions options) {
  std::vector<Type> inputs{Type::tensor(DType::fp32, shape_of(c["shape"]))};
  for (const auto& [name, mask] : masks_of(c, 0)) inputs.push_back(Type::tensor(DType::fp32, mask.shape()));
  const std::string text = c["program"];
  return Trainer::make([text] { return import_text(text); }, std::move(inputs), std::move(options));
}

std::map<std::string, Tensor> arrays_of(const json& c, uint64_t step) {
  const Shape shape = shape_of(c["shape"]);
  std::map<std::string, Tensor> arrays = masks_of(c, step);
  arrays.emplace("x", draw(step, shape));
  if (c["loss"] == "cross_entropy") {
    Tensor target = *Tensor::zeros(DType::int32, {c["rows"].get<int64_t>()});
    const Tensor drawn = draw(step + 5000, target.shape());
    for (int64_t i = 0; i < target.count(); i++)
      store_i64(target.view(), i,
                static_cast<int64_t>((load_f64(drawn.view(), i) + 1) / 2 * static_cast<double>(c["classes"])));
    arrays.emplace("target", target);
  } else {
    arrays.emplace("target", draw(step + 5000, {shape[0], c["classes"].get<int64_t>()}));
  }
  return arrays;
}

Result<Trained> train(const json& c, TrainerOptions options) {
  auto trainer = MOKA_TRY(trainer_of(c, std::move(options)));
  Trained out;
  for (uint64_t step = 0; step < 100; step++)
    out.losses.push_back(MOKA_TRY(trainer->step(arrays_of(c, step), c["numbers"].get<Numbers>())));
  for (const auto& [name, tensor] : trainer->parameters()) out.weights.emplace(name, tensor);
  return out;
}

Result<Trained> train(const json& c, int threads) { return train(c, options_of(c, threads)); }

/// The distance of all weights from PyTorch's in float64.
double distance(const json& c, const Trained& trained) {
  double squares = 0;
  for (const auto& [name, tensor] : trained.weights) {
    const json& expected = c["weights"][name];
    if (expected.size() != static_cast<size_t>(tensor.count())) return INFINITY;
    for (int64_t i = 0; i < tensor.count(); i++)
      squares += std::pow(load_f64(tensor.view(), i) - expected[static_cast<size_t>(i)].get<double>(), 2);
  }
  return std::sqrt(squares);
}

class Training : public testing::TestWithParam<size_t> {};

TEST_P(Training, IsAsFarFromFloat64AsPyTorch) {
  const json& c = cases()[GetParam()];
  const auto trained = train(c, 1);
  ASSERT_TRUE(trained.ok()) << trained.error().to_string();
  EXPECT_NEAR(trained->losses.front(), c["first_loss"].get<double>(), 1e-5);
  EXPECT_NEAR(trained->losses.back(), c["last_loss"].get<double>(), 1e-5);
  ASSERT_EQ(trained->weights.size(), c["weights"].size());
  const double far = distance(c, *trained);
  EXPECT_LE(far, 2 * c["float32"].get<double>());
  RecordProperty("distance", cat(far));
}

TEST_P(Training, GivesTheSameBitsWithMoreThreads) {
  const json& c = cases()[GetParam()];
  const auto one = train(c, 1);
  ASSERT_TRUE(one.ok());
  for (int threads : {2, 3}) {
    const auto more = train(c, threads);
    ASSERT_TRUE(more.ok());
    for (const auto& [name, tensor] : one->weights)
      EXPECT_TRUE(tensor == more->weights.at(name)) << name << ", " << threads << " threads";
  }
}

/// A device with its own memory computes what it can of a step, and gets the new weights before each.
TEST_P(Training, IsAsGoodOnADevice) {
  const json& c = cases()[GetParam()];
  for (const std::string name : {"simulator", "vulkan"}) {
    const auto all = api::all_devices();
    const auto device = std::find_if(all.begin(), all.end(), [&](const auto* d) { return d->name() == name; });
    if (device == all.end()) continue;  // no driver
    TrainerOptions o = options_of(c, 1);
    o.compile.plan.devices.insert(o.compile.plan.devices.begin(), *device);
    o.compile.plan.pinned_device = [d = *device](const Op&) { return d; };
    const auto trained = train(c, o);
    ASSERT_TRUE(trained.ok()) << name << ": " << trained.error().to_string();
    EXPECT_LE(distance(c, *trained), 2 * c["float32"].get<double>()) << name;
  }
}

TEST(Trainer, RecomputesWithTheSameBitsInLessMemory) {
  for (const json& c : cases()) {
    const std::string text = c["program"];
    std::vector<std::unique_ptr<Trainer>> trainers;
    for (const bool again : {false, true}) {
      TrainerOptions o = options_of(c, 1);
      o.program.recompute = again;
      std::vector<Type> inputs{Type::tensor(DType::fp32, shape_of(c["shape"]))};
      for (const auto& [name, mask] : masks_of(c, 0)) inputs.push_back(Type::tensor(DType::fp32, mask.shape()));
      auto trainer = Trainer::make([text] { return import_text(text); }, inputs, o);
      ASSERT_TRUE(trainer.ok()) << trainer.error().to_string();
      trainers.push_back(std::move(*trainer));
      for (uint64_t step = 0; step < 3; step++)
        ASSERT_TRUE(trainers.back()->step(arrays_of(c, step), c["numbers"].get<Numbers>()).ok());
    }
    for (const auto& [name, tensor] : trainers[0]->parameters())
      EXPECT_TRUE(tensor == trainers[1]->parameters().at(name)) << c["name"] << ": " << name;
    EXPECT_LE(trainers[1]->program().session_bytes(), trainers[0]->program().session_bytes()) << c["name"];
  }
}

/// How many operations of a training program are costly, and how many there are.
std::pair<int, int> operations_of(const json& c, bool recompute) {
  ProgramOptions o = options_of(c, 1).program;
  o.recompute = recompute;
  o.inputs.push_back(Type::tensor(DType::fp32, shape_of(c["shape"])));
  for (const auto& [name, mask] : masks_of(c, 0)) o.inputs.push_back(Type::tensor(DType::fp32, mask.shape()));
  std::pair<int, int> counts;
  auto model = import_text(c["program"]);
  EXPECT_TRUE(model.ok());
  const auto made = make_training_program(std::move(*model), o);
  EXPECT_TRUE(made.ok()) << made.error().to_string();
  for (const auto& op : made->program.functions[0]->body().ops()) {
    counts.first += op->has_trait(Trait::costly);
    counts.second++;
  }
  return counts;
}

TEST(Program, ComputesNothingAgainThatIsCostly) {
  int costly = 0, again = 0;
  for (const json& c : cases()) {
    const auto kept = operations_of(c, false), made = operations_of(c, true);
    EXPECT_EQ(made.first, kept.first) << c["name"];
    costly += kept.first;
    again += made.second - kept.second;
  }
  EXPECT_GT(costly, 20);
  EXPECT_GT(again, 20);
}

std::string three(const std::string& a, const std::string& b) { return "[" + a + ", " + b + ", " + a + "]"; }
std::string four(const std::string& a) { return "[" + a + ", " + a + ", " + a + ", " + a + "]"; }

/// Twelve convolutions, of which two values each are kept, or one and what the longest layer needs.
TEST(Trainer, KeepsHalfOfADeepNetWhenItRecomputes) {
  std::string text = "program(1.3)\n{\n  func main<ios18>(tensor<fp32, [2, 4, 32, 32]> x0) {\n";
  for (int i = 0; i < 12; i++) {
    const std::string n = std::to_string(i), next = std::to_string(i + 1);
    text += "tensor<fp32, [4, 4, 3, 3]> w" + n + " = const()[name = string(\"w" + n +
            "\"), val = tensor<fp32, [4, 4, 3, 3]>(" +
            four(four(three(three("0x1p-3", "-0x1p-4"), three("-0x1p-4", "0x1p-5")))) +
            ")];\ntensor<fp32, [2, 4, 32, 32]> c" + n + " = conv(x = x" + n + ", weight = w" + n +
            ", pad_type = string(\"same\"), strides = tensor<int32, [2]>([1, 1]))[name = string(\"c" + n + "\")];\n" +
            "tensor<fp32, [2, 4, 32, 32]> x" + next + " = silu(x = c" + n + ")[name = string(\"x" + next + "\")];\n";
  }
  text += "  } -> (x12);\n}\n";
  const Shape shape{2, 4, 32, 32};
  std::vector<size_t> bytes;
  std::vector<Tensor> weights;
  for (const bool again : {false, true}) {
    TrainerOptions o;
    o.program.parameters = {"w*"};
    o.program.losses = {{Loss::Kind::mean_squared_error, "x12", "target"}};
    o.program.recompute = again;
    o.compile.plan.devices = host_devices();
    auto trainer = Trainer::make([text] { return import_text(text); }, {Type::tensor(DType::fp32, shape)}, o);
    ASSERT_TRUE(trainer.ok()) << trainer.error().to_string();
    const auto loss = (*trainer)->step({{"x0", draw(1, shape)}, {"target", draw(2, shape)}}, {{"learning_rate", 0.5}});
    ASSERT_TRUE(loss.ok()) << loss.error().to_string();
    bytes.push_back((*trainer)->program().session_bytes());
    weights.push_back((*trainer)->parameters().at("w0"));
  }
  EXPECT_TRUE(weights[0] == weights[1]);
  EXPECT_LT(bytes[1], bytes[0] * 7 / 10);
}

/// The memory of a step for `layers` dense layers of 64 x 64.
size_t dense_bytes(int layers) {
  std::string row = "[0x1p-4", matrix;
  for (int i = 1; i < 64; i++) row += i % 3 == 0 ? ", 0x1p-5" : ", -0x1p-5";
  row += "]";
  for (int i = 0; i < 64; i++) matrix += (i == 0 ? "[" : ", ") + row;
  matrix += "]";
  std::string text = "program(1.3)\n{\n  func main<ios18>(tensor<fp32, [2, 64]> x0) {\n";
  for (int i = 0; i < layers; i++) {
    const std::string n = std::to_string(i), next = std::to_string(i + 1);
    text += "tensor<fp32, [64, 64]> w" + n + " = const()[name = string(\"w" + n + "\"), val = tensor<fp32, [64, 64]>(" +
            matrix + ")];\ntensor<fp32, [2, 64]> x" + next + " = linear(x = x" + n + ", weight = w" + n +
            ")[name = string(\"x" + next + "\")];\n";
  }
  const std::string last = "x" + std::to_string(layers);
  text += "  } -> (" + last + ");\n}\n";
  TrainerOptions o;
  o.program.parameters = {"w*"};
  o.program.losses = {{Loss::Kind::mean_squared_error, last, "target"}};
  o.program.momentum = true;
  o.compile.plan.devices = host_devices();
  auto trainer = Trainer::make([text] { return import_text(text); }, {Type::tensor(DType::fp32, Shape{2, 64})}, o);
  EXPECT_TRUE(trainer.ok()) << trainer.error().to_string();
  if (!trainer.ok()) return 0;
  const auto loss = (*trainer)->step({{"x0", draw(1, {2, 64})}, {"target", draw(2, {2, 64})}},
                                     {{"learning_rate", 0.5}, {"momentum", 0.9}});
  EXPECT_TRUE(loss.ok()) << loss.error().to_string();
  return (*trainer)->program().session_bytes();
}

/// The arena has room for the new weight of each layer, 16 KiB, but not for its gradient.
TEST(Trainer, DropsEachGradientAfterItsStep) {
  const size_t few = dense_bytes(4), many = dense_bytes(14);
  EXPECT_LT(many, few + 11 * 64 * 64 * sizeof(float));
}

TEST(Trainer, RefusesAClassThatTheLossDoesNotKnow) {
  const json& c = cases()[0];
  const std::string text = c["program"];
  const Shape shape{8, 12};
  auto trainer =
      Trainer::make([text] { return import_text(text); }, {Type::tensor(DType::fp32, shape)}, options_of(c, 1));
  ASSERT_TRUE(trainer.ok()) << trainer.error().to_string();
  Tensor target = *Tensor::zeros(DType::int32, {8});
  store_i64(target.view(), 3, 5);
  const auto loss = (*trainer)->step({{"x", draw(0, shape)}, {"target", target}}, {{"learning_rate", 0.1}});
  ASSERT_FALSE(loss.ok());
  EXPECT_EQ(loss.error().to_string(), "training: 'target': expected classes from 0 to 4, got 5");
  const auto missing = (*trainer)->step({{"x", draw(0, shape)}}, {{"learning_rate", 0.1}});
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.error().to_string(), "training: 'target' is missing");
  EXPECT_EQ((*trainer)->steps(), 0);
}

/// Two batch norms whose weights of the same values are one, as coremltools writes them.
std::string norms(const std::string& x) {
  return R"(program(1.3)
{
  func main<ios18>(tensor<fp32, )" +
         x + R"(> x) {
    tensor<fp32, [2]> zeros = const()[name = string("zeros"), val = tensor<fp32, [2]>([0, 0])];
    tensor<fp32, [2]> ones = const()[name = string("ones"), val = tensor<fp32, [2]>([1, 1])];
    tensor<fp32, [2]> shift = const()[name = string("shift"), val = tensor<fp32, [2]>([0.5, 0.25])];
    tensor<fp32, )" +
         x + R"(> a = batch_norm(x = x, mean = zeros, variance = ones, gamma = ones, beta = zeros)[name = string("a")];
    tensor<fp32, )" +
         x + R"(> y = batch_norm(x = a, mean = zeros, variance = ones, beta = shift)[name = string("y")];
  } -> (y);
}
)";
}

Result<std::unique_ptr<Trainer>> norms_trainer(const std::string& x, const Shape& shape, double momentum) {
  TrainerOptions o;
  o.program.parameters = {"shift"};
  o.program.losses.push_back({Loss::Kind::mean_squared_error, "y", "target"});
  o.program.batch_statistics = momentum;
  o.compile.plan.devices = host_devices();
  return Trainer::make([=] { return import_text(norms(x)); }, {Type::tensor(DType::fp32, shape)}, o);
}

TEST(BatchStatistics, SharedWeightsAreSplit) {
  auto trainer = norms_trainer("[2, 2]", {2, 2}, 0.25);
  ASSERT_TRUE(trainer.ok()) << trainer.error().to_string();
  Tensor x = *Tensor::zeros(DType::fp32, {2, 2}), target = *Tensor::zeros(DType::fp32, {2, 2});
  for (int64_t i = 0; i < 4; i++) store_f64(x.view(), i, static_cast<double>(i * i));  // [[0, 1], [4, 9]]
  const auto loss = (*trainer)->step({{"x", x}, {"target", target}}, {{"learning_rate", 0}});
  ASSERT_TRUE(loss.ok()) << loss.error().to_string();
  std::map<std::string, std::vector<double>> found;
  for (const auto& [name, tensor] : (*trainer)->parameters())
    for (int64_t i = 0; i < tensor.count(); i++) found[name].push_back(load_f64(tensor.view(), i));
  // a is -1 and 1 in both channels, but for epsilon.
  ASSERT_EQ(found.size(), 5U);
  EXPECT_EQ(found["shift"], (std::vector<double>{0.5, 0.25}));
  EXPECT_EQ(found["a_mean"], (std::vector<double>{0.5, 1.25}));
  EXPECT_EQ(found["a_variance"], (std::vector<double>{0.75 + 0.25 * 8, 0.75 + 0.25 * 32}));
  for (double v : found["y_mean"]) EXPECT_NEAR(v, 0, 1e-6);
  for (double v : found["y_variance"]) EXPECT_NEAR(v, 0.75 + 0.25 * 2, 1e-5);
  EXPECT_NEAR(*loss, (1.5 * 1.5 + 0.5 * 0.5 + 1.25 * 1.25 + 0.75 * 0.75) / 4, 1e-4);
}

TEST(BatchStatistics, NeedSeveralValues) {
  const auto one = norms_trainer("[1, 2]", {1, 2}, 0.25);
  ASSERT_FALSE(one.ok());
  EXPECT_EQ(one.error().to_string(),
            "operation 'a' (batch_norm): expected at least two values of each channel in a mini-batch, got "
            "tensor<fp32, [1, 2]>");
  const auto far = norms_trainer("[2, 2]", {2, 2}, 1.5);
  ASSERT_FALSE(far.ok());
  EXPECT_EQ(far.error().to_string(), "statistics of mini-batches: expected a momentum from 0 to 1, got 1.5");
}

INSTANTIATE_TEST_SUITE_P(Nets, Training, testing::Range<size_t>(0, cases().size()),
                         [](const auto& info) { return cases()[info.param]["name"].template get<std::string>(); });

}  // namespace
}  // namespace moka::training
