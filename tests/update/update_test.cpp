// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "base64.h"
#include "moka/moka.hpp"
#include "temporary_folder.h"

/// Updates against PyTorch in float64: cases.json, which generate.py writes.
namespace moka {
namespace {

using nlohmann::json;

const json& cases() {
  static const json all = json::parse(std::ifstream(MOKA_UPDATE_CASES));
  return all;
}

const json& case_of(const std::string& name) {
  for (const json& c : cases())
    if (c["name"] == name) return c;
  throw std::runtime_error("no case " + name);
}

ModelSource model_of(const json& c) {
  const std::string bytes = test::base64(c["model"]);
  return ModelSource(Message::parse("Model", std::as_bytes(std::span(bytes))));
}

FeatureValue value_of(const json& v) {
  if (v.is_string()) return v.get<std::string>();
  if (v.is_number_integer()) return v.get<int64_t>();
  if (!v.contains("picture")) return MultiArray::of(v["values"].get<std::vector<float>>(), v["shape"]);
  const json& rows = v["picture"];
  const auto height = static_cast<int64_t>(rows.size()), width = static_cast<int64_t>(rows[0].size());
  Image out(width, height, PixelFormat::gray8);
  for (int64_t y = 0; y < height; y++)
    for (int64_t x = 0; x < width; x++)
      out.pixels.get()[y * out.row_bytes + x] = rows[static_cast<size_t>(y)][static_cast<size_t>(x)].get<uint8_t>();
  return out;
}

std::vector<Features> rows_of(const json& c) {
  std::vector<Features> out;
  for (const json& row : c["rows"]) {
    Features& to = out.emplace_back();
    for (const auto& [name, value] : row.items()) to[name] = value_of(value);
  }
  return out;
}

UpdateOptions with_threads(int threads) {
  UpdateOptions o;
  o.configuration.threads = threads;
  return o;
}

Features input_of(const json& c, size_t row) {
  Features in;
  in["x"] = value_of(c["rows"][row]["x"]);
  return in;
}

class Update : public testing::TestWithParam<size_t> {};

TEST_P(Update, IsAsFarFromFloat64AsPyTorch) {
  const json& c = cases()[GetParam()];
  std::vector<double> losses;
  UpdateOptions options = with_threads(1);
  options.progress = [&](const UpdateContext& context) {
    if (context.event == UpdateEvent::mini_batch_end) losses.push_back(context.metrics.loss);
  };
  UpdateTask task(model_of(c), rows_of(c), options);
  const UpdateContext result = task.run();
  ASSERT_EQ(losses.size(), c["losses"].size());
  for (size_t i = 0; i < losses.size(); i++) EXPECT_NEAR(losses[i], c["losses"][i].get<double>(), 1e-5) << i;
  const Model model = result.model();
  double squares = 0;
  ASSERT_EQ(model.parameters().size(), c["weights"].size());
  for (const auto& [name, expected] : c["weights"].items()) {
    const MultiArray got = model.parameter(name);
    ASSERT_EQ(expected.size(), static_cast<size_t>(got.count())) << name;
    for (int64_t i = 0; i < got.count(); i++)
      squares += std::pow(got.at(i) - expected[static_cast<size_t>(i)].get<double>(), 2);
  }
  EXPECT_LE(std::sqrt(squares), 2 * c["float32"].get<double>());
}

/// The saved model, the same with more threads, and without memory for what the front computes.
TEST_P(Update, GivesTheSameModelInEveryWay) {
  const json& c = cases()[GetParam()];
  const UpdateContext result = UpdateTask(model_of(c), rows_of(c), with_threads(1)).run();
  const auto bytes = result.source().specification().serialize();
  EXPECT_EQ(UpdateTask(model_of(c), rows_of(c), with_threads(3)).run().source().specification().serialize(), bytes);
  UpdateOptions on_device = with_threads(1);
  on_device.configuration.device = "simulator";
  const UpdateContext elsewhere = UpdateTask(model_of(c), rows_of(c), on_device).run();
  EXPECT_NEAR(elsewhere.metrics.loss, result.metrics.loss, 1e-5);
  UpdateOptions forgetful = with_threads(2);
  forgetful.kept_bytes = 0;
  EXPECT_EQ(UpdateTask(model_of(c), rows_of(c), forgetful).run().source().specification().serialize(), bytes);
  const test::TemporaryFolder folder;
  const Model learned = result.model();
  for (const char* name : {"new.mlmodel", "new.mlmodelc"}) {
    const std::string path = (folder / name).string();
    result.save(path);
    const Model saved = Model::load(path);
    for (size_t i = 0; i < 3; i++) {
      const Features a = learned.predict(input_of(c, i)), b = saved.predict(input_of(c, i));
      for (const auto& [output, value] : a) {
        if (const auto* array = std::get_if<MultiArray>(&value)) {
          for (int64_t k = 0; k < array->count(); k++) EXPECT_NEAR(array->at(k), b.array(output).at(k), 1e-5) << name;
        } else if (const auto* label = std::get_if<std::string>(&value)) {
          EXPECT_EQ(*label, std::get<std::string>(b.at(output))) << name;
        }
      }
    }
  }
  UpdateTask again((folder / "new.mlmodelc").string(), rows_of(c), with_threads(1));
  EXPECT_TRUE(std::isfinite(again.run().metrics.loss));
}

TEST(UpdateTask, ChangesParametersAndStopsInHandlers) {
  const json& c = case_of("regression");
  std::string seen;
  UpdateTask* running = nullptr;
  UpdateOptions options = with_threads(1);
  options.progress = [&](const UpdateContext& context) {
    seen += std::string(to_string(context.event)) + " " + std::to_string(context.metrics.epoch) + "\n";
    if (context.event == UpdateEvent::training_begin) running->resume({{"learningRate", 0.5}});
    if (context.event != UpdateEvent::mini_batch_end) return;
    EXPECT_EQ(std::get<double>(context.parameters.at("learningRate")), 0.5);
    if (context.metrics.epoch == 0 && context.metrics.mini_batch == 1) running->cancel();
  };
  UpdateTask task(model_of(c), rows_of(c), options);
  running = &task;
  EXPECT_TRUE(task.run().is_cancelled);
  EXPECT_EQ(seen, "trainingBegin 0\nminiBatchEnd 0\nminiBatchEnd 0\n");
  const UpdateContext rest = task.run();
  EXPECT_FALSE(rest.is_cancelled);
  EXPECT_EQ(rest.metrics.epoch, 3);
  UpdateOptions straight = with_threads(1);
  straight.parameters["learningRate"] = 0.5;
  EXPECT_EQ(rest.source().specification().serialize(),
            UpdateTask(model_of(c), rows_of(c), straight).run().source().specification().serialize());
}

TEST(UpdateTask, ExplainsAStep) {
  const json& c = case_of("pictures");
  UpdateTask task(model_of(c), rows_of(c), with_threads(1));
  EXPECT_THROW(task.compute_plan(), Exception);
  task.run();
  std::map<std::string, int> types;
  for (const PlannedOperation& op : task.compute_plan().operations) {
    types[op.type]++;
    if (op.type.starts_with("moka_") || op.type == "linear") {
      EXPECT_EQ(op.device, "cpu") << op.name;
    }
  }
  EXPECT_EQ(types["moka_sgd_step"], 6);
  EXPECT_EQ(types["moka_max_pool_gradient"], 1);
}

/// The message of what `call` throws.
template <class F>
std::string error_of(const F& call) {
  try {
    call();
  } catch (const Exception& e) {
    return e.what();
  }
  return "no error";
}

/// The error of a run that finds it before the training begins.
std::string error_before(const ModelSource& model, const std::vector<Features>& rows) {
  UpdateOptions options = with_threads(1);
  options.progress = [](const UpdateContext&) { ADD_FAILURE() << "the training began"; };
  return error_of([&] { UpdateTask(model, rows, options).run(); });
}

std::string error_with(const json& c, size_t row, const std::string& name, const FeatureValue& value) {
  auto rows = rows_of(c);
  rows[row][name] = value;
  return error_before(model_of(c), rows);
}

TEST(UpdateTask, NamesTheExampleThatDoesNotFit) {
  const json& c = case_of("arrays");
  EXPECT_EQ(error_with(c, 6, "label", std::string("dog")),
            "example 6: 'label': expected one of the classes 'a', 'b', 'c', got 'dog'");
  EXPECT_EQ(error_with(c, 2, "label", int64_t{1}),
            "example 2: 'label': expected a text, a label of the model, got Int64");
  EXPECT_EQ(error_with(c, 2, "label", std::monostate{}).substr(0, 20), "example 2: 'label': ");
  EXPECT_EQ(error_with(c, 9, "x", MultiArray(DataType::float32, {1, 6, 5})).substr(0, 22), "example 9: input 'x': ");
  const std::vector<float> nan(36, NAN);
  EXPECT_EQ(error_with(c, 5, "x", MultiArray::of(nan, {1, 6, 6})),
            "example 5: input 'x': expected finite numbers, got nan");
  const json& regression = case_of("regression");
  EXPECT_EQ(error_with(regression, 8, "y_true", MultiArray::of(std::vector<float>{1, INFINITY}, {2})),
            "example 8: 'y_true': expected finite numbers, got inf");
  auto rows = rows_of(regression);
  rows[1]["y_true"] = MultiArray(DataType::float32, {3});
  EXPECT_EQ(error_of([&] { UpdateTask(model_of(regression), rows, with_threads(1)).run(); }),
            "example 1: 'y_true': expected 2 numbers, which the loss compares with 'y', got 3");
  EXPECT_EQ(error_with(regression, 1, "y_true", MultiArray(DataType::float32, {2, 1})),
            "example 1: input 'y_true': expected MultiArray (Double 2), got shape 2 x 1");
}

TEST(UpdateTask, RefusesWhatItCannotTrain) {
  const json& c = case_of("arrays");
  const auto error = [&](const UpdateParameters& parameters) {
    UpdateOptions options = with_threads(1);
    options.parameters = parameters;
    return error_of([&] { UpdateTask(model_of(c), rows_of(c), options); });
  };
  EXPECT_EQ(error({{"epochs", int64_t{9}}}), "epochs: the model allows 4, got 9");
  EXPECT_EQ(error({{"learningRate", 2.0}}), "learningRate: the model allows 0 to 1, got 2");
  EXPECT_EQ(error({{"learningRate", NAN}}), "learningRate: expected a finite number, got nan");
  EXPECT_EQ(error({{"momentum", 0.5}}).substr(0, 59), "the model has no parameter 'momentum' for updates; it has l");
  EXPECT_EQ(error_of([&] { UpdateTask(model_of(c), std::vector<Features>()); }),
            "expected at least one example, got none");
  Message plain = model_of(c).specification().copy();
  plain.set("isUpdatable", Message::Scalar(false));
  EXPECT_EQ(error_of([&] { UpdateTask(ModelSource(plain), rows_of(c)); }),
            "the model is not updatable; moka edit --updatable and moka.update.mark make it so");
}

/// A classifier whose examples have the index of their class instead of its label.
ModelSource with_indices(const json& c) {
  const Message model = model_of(c).specification().copy();
  Message input = model.at("description").at("trainingInput", 1);
  input.set("name", "p_true");
  input.at("type")
      .add("multiArrayType")
      .set("shape", std::vector<Message::Scalar>{int64_t{1}})
      .set("dataType", "INT32");
  return ModelSource(model);
}

TEST(UpdateTask, LooksAtAllClassesFirst) {
  const json& c = case_of("arrays");
  std::vector<Features> rows = rows_of(c);
  for (size_t i = 0; i < rows.size(); i++) {
    Features indexed;
    indexed["x"] = rows[i].at("x");
    indexed["p_true"] = MultiArray::of(std::vector<float>{static_cast<float>(i % 3)}, {1});
    rows[i] = std::move(indexed);
  }
  EXPECT_TRUE(std::isfinite(UpdateTask(with_indices(c), rows, with_threads(1)).run().metrics.loss));
  const auto error = [&](float index) {
    rows[9]["p_true"] = MultiArray::of(std::vector<float>{index}, {1});
    return error_before(with_indices(c), rows);
  };
  EXPECT_EQ(error(3), "example 9: 'p_true': expected a class from 0 to 2, got 3");
  EXPECT_EQ(error(-1), "example 9: 'p_true': expected the index of a class, got -1");
  EXPECT_EQ(error(0.5), "example 9: 'p_true': expected the index of a class, got 0.5");
  EXPECT_EQ(error(NAN), "example 9: 'p_true': expected the index of a class, got nan");
}

TEST(UpdateTask, ReadsEachExampleOnce) {
  const json& c = case_of("arrays");
  const auto rows = rows_of(c);
  std::vector<int> read(rows.size()), looked(rows.size());
  UpdateExamples examples(rows.size(), [&](size_t i) {
    read[i]++;
    return rows[i];
  });
  examples.known = [&](size_t i) {
    looked[i]++;
    Features label;
    label["label"] = rows[i].at("label");
    return label;
  };
  UpdateTask(model_of(c), examples, with_threads(1)).run();
  EXPECT_EQ(read, std::vector<int>(rows.size(), 1));
  EXPECT_EQ(looked, std::vector<int>(rows.size(), 1));
}

TEST(UpdateTask, NamesBothExamplesOfDifferentSizes) {
  const json& c = case_of("lstm");
  auto rows = rows_of(c);
  const MultiArray& five = std::get<MultiArray>(rows[2].at("x"));
  rows[2]["x"] = MultiArray::of(five.as<float>().first(12), {4, 1, 3, 1, 1});
  EXPECT_EQ(error_of([&] { UpdateTask(model_of(c), rows, with_threads(1)).run(); }),
            "example 2: input 'x': expected [5, 1, 3, 1, 1], the shape in example 0 of the same mini-batch, got "
            "[4, 1, 3, 1, 1]; mini-batches of 1 take any shape");
  UpdateOptions alone = with_threads(1);
  alone.parameters["miniBatchSize"] = int64_t{1};
  const Message model = model_of(c).specification().copy();
  Message sgd = model.at("neuralNetworkClassifier").at("updateParams").at("optimizer").at("sgdOptimizer");
  sgd.at("miniBatchSize").add("set").set("values", std::vector<Message::Scalar>{int64_t{1}, int64_t{4}});
  EXPECT_TRUE(std::isfinite(UpdateTask(ModelSource(model), rows, alone).run().metrics.loss));
}

TEST(UpdateTask, RefusesClassesOfEveryStep) {
  const json& c = case_of("lstm");
  const Message model = model_of(c).specification().copy();
  for (Message& layer : model.at("neuralNetworkClassifier").all("layers"))
    if (layer.which("layer") == "uniDirectionalLSTM")
      layer.at("uniDirectionalLSTM").at("params").set("sequenceOutput", Message::Scalar(true));
  EXPECT_EQ(error_before(ModelSource(model), rows_of(c)),
            "loss 'loss': categorical cross entropy compares one class with the probabilities of an example, and 'p' "
            "has several rows of them: expected one dimension that is not 1, got the shape [5, 3]; an LSTM "
            "that gives the output of its last step only gives one row");
}

void rename(Message message, std::string_view field, const std::string& from, const std::string& to) {
  std::vector<Message::Scalar> names = message.values(field);
  for (Message::Scalar& name : names)
    if (std::get<std::string>(name) == from) name = to;
  if (field == "name")
    message.set(field, names.at(0));
  else
    message.set(field, names);
}

/// A classifier with another name of a layer.
Message with_layer(const Message& model, const std::string& from, const std::string& to) {
  Message out = model.copy();
  for (const Message& layer : out.at("neuralNetworkClassifier").all("layers")) rename(layer, "name", from, to);
  return out;
}

/// A classifier with another name of a blob, which may be an input.
Message with_blob(const Message& model, const std::string& from, const std::string& to) {
  Message out = model.copy();
  for (const Message& layer : out.at("neuralNetworkClassifier").all("layers"))
    for (const char* list : {"input", "output"}) rename(layer, list, from, to);
  for (const char* list : {"input", "trainingInput"})
    for (const Message& feature : out.at("description").all(list)) rename(feature, "name", from, to);
  return out;
}

/// All weights of the network, in the order of its layers.
std::vector<std::vector<std::byte>> weights_of(const UpdateContext& context) {
  std::vector<std::vector<std::byte>> out;
  for (const Message& layer : context.source().specification().at("neuralNetworkClassifier").all("layers")) {
    const Message holder = layer.at(layer.which("layer"));
    for (const std::string& name : holder.names())
      if (name == "weights" || name == "bias") out.push_back(holder.at(name).serialize());
  }
  return out;
}

TEST(UpdateTask, TellsLayersWithSimilarNamesApart) {
  const json& c = case_of("arrays");
  const Message model = model_of(c).specification();
  const auto usual = weights_of(UpdateTask(model_of(c), rows_of(c), with_threads(1)).run());
  ASSERT_EQ(usual.size(), 6U);
  const auto check = [&](const Message& changed, const char* input) {
    auto rows = rows_of(c);
    for (Features& row : rows)
      if (std::string_view(input) != "x") {
        Features other;
        other[input] = row.at("x");
        other["label"] = row.at("label");
        row = std::move(other);
      }
    const UpdateContext result = UpdateTask(ModelSource(changed), rows, with_threads(1)).run();
    EXPECT_EQ(weights_of(result), usual);
    const Model trained = result.model();
    std::set<std::string> names;
    for (const auto& p : trained.parameters()) names.insert(p.name);
    EXPECT_EQ(names.size(), 6U);
    const auto& layers = trained.description().update->layers;
    for (const UpdatableLayer& layer : layers)
      for (const std::string& name : layer.parameters) EXPECT_TRUE(names.contains(name)) << name;
    EXPECT_TRUE(std::isfinite(trained.parameter(layers.back().parameters[0]).at(0)));
  };
  check(with_layer(model, "dense_1", "dense.2"), "x");
  check(with_layer(with_layer(model, "dense_1", "conv_"), "dense_2", "conv."), "x");
  check(with_blob(model, "x", "dense_1_weights"), "dense_1_weights");
  check(with_blob(model, "d", "dense_2_weights"), "x");
}

TEST(UpdateTask, TellsRecurrentLayersApart) {
  const json& c = case_of("recurrent");
  const Message model = model_of(c).specification();
  const UpdateContext usual = UpdateTask(model_of(c), rows_of(c), with_threads(1)).run();
  const UpdateContext other =
      UpdateTask(ModelSource(with_layer(with_layer(model, "lstm", "a_b"), "dense", "a.b")), rows_of(c), with_threads(1))
          .run();
  EXPECT_EQ(weights_of(other), weights_of(usual));
  EXPECT_EQ(other.metrics.loss, usual.metrics.loss);
  EXPECT_EQ(other.model().parameters().size(), usual.model().parameters().size());
}

TEST(UpdateTask, ObeysACancelBeforeTheRun) {
  const json& c = case_of("regression");
  UpdateTask task(model_of(c), rows_of(c), with_threads(1));
  task.cancel();
  const UpdateContext nothing = task.run();
  EXPECT_TRUE(nothing.is_cancelled);
  EXPECT_EQ(nothing.source().specification().serialize(), model_of(c).specification().serialize());
  EXPECT_FALSE(task.run().is_cancelled);
}

TEST(UpdateTask, StopsWhenTheLossDiverges) {
  const json& c = case_of("regression");
  auto rows = rows_of(c);
  for (auto& row : rows) row["y_true"] = MultiArray::of(std::vector<float>{3e38F, -3e38F}, {2});
  const std::string error = error_of([&] { UpdateTask(model_of(c), rows, with_threads(1)).run(); });
  EXPECT_EQ(error, "the training diverges: the loss of epoch 0, mini-batch 0 is inf with the learning rate 0.0625");
}

INSTANTIATE_TEST_SUITE_P(Models, Update, testing::Range<size_t>(0, cases().size()),
                         [](const auto& info) { return cases()[info.param]["name"].template get<std::string>(); });

}  // namespace
}  // namespace moka
