#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

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
  for (const auto& [name, value] : c["weights"].items()) o.program.parameters.push_back(name);
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

Result<Trained> train(const json& c, int threads) {
  Shape shape;
  for (int64_t d : c["shape"]) shape.push_back(d);
  const std::string text = c["program"];
  auto trainer = MOKA_TRY(
      Trainer::make([text] { return import_text(text); }, {Type::tensor(DType::fp32, shape)}, options_of(c, threads)));
  Trained out;
  for (uint64_t step = 0; step < 100; step++) {
    std::map<std::string, Tensor> arrays{{"x", draw(step, shape)}};
    if (c["loss"] == "cross_entropy") {
      Tensor target = MOKA_TRY(Tensor::zeros(DType::int32, {shape[0]}));
      const Tensor drawn = draw(step + 5000, target.shape());
      for (int64_t i = 0; i < target.count(); i++)
        store_i64(target.view(), i,
                  static_cast<int64_t>((load_f64(drawn.view(), i) + 1) / 2 * static_cast<double>(c["classes"])));
      arrays.emplace("target", target);
    } else {
      arrays.emplace("target", draw(step + 5000, {shape[0], c["classes"].get<int64_t>()}));
    }
    out.losses.push_back(MOKA_TRY(trainer->step(arrays, c["numbers"].get<Numbers>())));
  }
  for (const auto& [name, tensor] : trainer->parameters()) out.weights.emplace(name, tensor);
  return out;
}

class Training : public testing::TestWithParam<size_t> {};

TEST_P(Training, IsAsFarFromFloat64AsPyTorch) {
  const json& c = cases()[GetParam()];
  const auto trained = train(c, 1);
  ASSERT_TRUE(trained.ok()) << trained.error().to_string();
  EXPECT_NEAR(trained->losses.front(), c["first_loss"].get<double>(), 1e-5);
  EXPECT_NEAR(trained->losses.back(), c["last_loss"].get<double>(), 1e-5);
  ASSERT_EQ(trained->weights.size(), c["weights"].size());
  double squares = 0;
  for (const auto& [name, tensor] : trained->weights) {
    const json& expected = c["weights"][name];
    ASSERT_EQ(expected.size(), static_cast<size_t>(tensor.count())) << name;
    for (int64_t i = 0; i < tensor.count(); i++)
      squares += std::pow(load_f64(tensor.view(), i) - expected[static_cast<size_t>(i)].get<double>(), 2);
  }
  EXPECT_LE(std::sqrt(squares), 2 * c["float32"].get<double>());
  RecordProperty("distance", std::to_string(std::sqrt(squares)));
}

TEST_P(Training, GivesTheSameBitsWithMoreThreads) {
  const json& c = cases()[GetParam()];
  const auto one = train(c, 1), three = train(c, 3);
  ASSERT_TRUE(one.ok() && three.ok());
  for (const auto& [name, tensor] : one->weights) EXPECT_TRUE(tensor == three->weights.at(name)) << name;
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

INSTANTIATE_TEST_SUITE_P(Nets, Training, testing::Range<size_t>(0, cases().size()),
                         [](const auto& info) { return cases()[info.param]["name"].template get<std::string>(); });

}  // namespace
}  // namespace moka::training
