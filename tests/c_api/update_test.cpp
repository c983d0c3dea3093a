// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "moka/moka.h"
#include "temporary_folder.h"

namespace {

struct FreeUpdate {
  void operator()(moka_model* m) const { moka_model_free(m); }
  void operator()(moka_features* f) const { moka_features_free(f); }
  void operator()(moka_update* u) const { moka_update_free(u); }
};
template <class T>
using Owned = std::unique_ptr<T, FreeUpdate>;

const std::string kGolden = std::string(MOKA_TEST_GOLDEN) + "/update/";

Owned<moka_features> new_features() {
  moka_features* f = nullptr;
  EXPECT_EQ(moka_features_new(&f), MOKA_OK);
  return Owned<moka_features>(f);
}

Owned<moka_model> loaded(const std::string& path) {
  moka_model* m = nullptr;
  EXPECT_EQ(moka_model_load(path.c_str(), nullptr, &m), MOKA_OK) << moka_last_error();
  return Owned<moka_model>(m);
}

/// Twelve examples of y = (x0 - x1 / 2, x2 + 1/4).
struct Examples {
  std::vector<std::vector<double>> x, y;
  int read = 0, broken = -1;
  Examples() {
    for (int i = 0; i < 12; i++) {
      std::vector<double> v;
      for (int k = 0; k < 3; k++) v.push_back((7 * i + 3 * k) % 11 / 5.0 - 1);
      y.push_back({v[0] - v[1] / 2, v[2] + 0.25});
      x.push_back(v);
    }
  }
};

void set_numbers(moka_features* to, const char* name, std::vector<double>& numbers) {
  const int64_t shape[] = {static_cast<int64_t>(numbers.size())};
  const moka_array array{numbers.data(), MOKA_FLOAT64, 1, shape, nullptr};
  EXPECT_EQ(moka_features_set_array(to, name, &array), MOKA_OK) << moka_last_error();
}

const char* read_example(void* context, size_t index, moka_features* example) {
  auto& examples = *static_cast<Examples*>(context);
  examples.read++;
  if (static_cast<int>(index) == examples.broken) return "the disk is gone";
  std::vector<double> x = examples.x[index], y = examples.y[index];  // copied by Moka
  set_numbers(example, "x", x);
  set_numbers(example, "y_true", y);
  return nullptr;
}

class CUpdate : public testing::Test {
 protected:
  /// A regressor of plain.mlmodel whose arrays are vectors of channels.
  void SetUp() override {
    std::ifstream in(kGolden + "plain.mlmodel", std::ios::binary);
    std::string data((std::istreambuf_iterator<char>(in)), {});
    const size_t mapping = data.find("\x28\x01");
    ASSERT_NE(mapping, std::string::npos);
    data[mapping + 1] = 0;
    std::ofstream(path_, std::ios::binary) << data;
    parameters_ = new_features();
    EXPECT_EQ(moka_features_set_int64(parameters_.get(), "shuffle", 0), MOKA_OK);
    options_.parameters = parameters_.get();
  }

  Owned<moka_update> task(Examples& examples) {
    moka_update* u = nullptr;
    EXPECT_EQ(moka_update_new(path_.c_str(), examples.x.size(), read_example, &examples, &options_, &u), MOKA_OK)
        << moka_last_error();
    return Owned<moka_update>(u);
  }

  static std::vector<float> weights(const moka_update* update) {
    moka_model* m = nullptr;
    EXPECT_EQ(moka_update_model(update, nullptr, &m), MOKA_OK) << moka_last_error();
    const Owned<moka_model> model(m);
    const auto values = new_features();
    EXPECT_EQ(moka_model_read_parameter(m, "second_weights", values.get()), MOKA_OK) << moka_last_error();
    moka_array array{};
    EXPECT_EQ(moka_features_get_array(values.get(), "second_weights", &array), MOKA_OK);
    const auto* data = static_cast<const float*>(array.data);
    return {data, data + 8};
  }

  moka::test::TemporaryFolder folder_;
  std::string path_ = (folder_.path() / "net.mlmodel").string();
  Owned<moka_features> parameters_;
  moka_update_options options_ = MOKA_UPDATE_OPTIONS_INIT;
};

TEST_F(CUpdate, TheDescriptionIsThatOfTheFile) {
  const auto model = loaded(kGolden + "images.mlmodel");
  EXPECT_EQ(moka_model_is_updatable(model.get()), 1);
  EXPECT_STREQ(moka_model_update_fault(model.get()), "");
  EXPECT_STREQ(moka_model_update_optimizer(model.get()), "adam");
  ASSERT_EQ(moka_model_training_input_count(model.get()), 2u);
  moka_feature_info info{};
  ASSERT_EQ(moka_model_training_input(model.get(), 1, &info), MOKA_OK);
  EXPECT_STREQ(info.name, "digit");
  EXPECT_STREQ(info.type_text, "String");
  EXPECT_EQ(moka_model_training_input(model.get(), 2, &info), MOKA_INVALID_ARGUMENT);
  ASSERT_EQ(moka_model_update_loss_count(model.get()), 1u);
  moka_update_loss loss{};
  ASSERT_EQ(moka_model_update_loss(model.get(), 0, &loss), MOKA_OK);
  EXPECT_EQ(loss.kind, MOKA_CATEGORICAL_CROSS_ENTROPY);
  EXPECT_STREQ(loss.target, "digit_probabilities_true");
  EXPECT_STREQ(loss.training_input, "digit");
  ASSERT_EQ(moka_model_update_layer_count(model.get()), 2u);
  moka_update_layer layer{};
  ASSERT_EQ(moka_model_update_layer(model.get(), 1, &layer), MOKA_OK);
  EXPECT_STREQ(layer.type, "innerProduct");
  ASSERT_EQ(layer.parameter_count, 2u);
  EXPECT_STREQ(layer.parameters[1], "dense_bias");
  int found = 0;
  for (size_t i = 0; i < moka_model_update_parameter_count(model.get()); i++) {
    moka_update_parameter p{};
    ASSERT_EQ(moka_model_update_parameter(model.get(), i, &p), MOKA_OK);
    const std::string name = p.name;
    if (name == "learningRate") {
      found++;
      EXPECT_EQ(p.kind, MOKA_PARAMETER_DOUBLE);
      EXPECT_EQ(p.has_range, 1);
      EXPECT_EQ((std::vector<double>{p.value, p.lower, p.upper}), (std::vector<double>{0.01, 0.001, 0.1}));
    }
    if (name == "miniBatchSize") {
      found++;
      EXPECT_EQ(p.kind, MOKA_PARAMETER_INT64);
      EXPECT_EQ(p.has_range, 0);
      EXPECT_EQ((std::vector<int64_t>{p.allowed, p.allowed + p.allowed_count}), (std::vector<int64_t>{4, 8, 16}));
    }
    if (name == "shuffle") {
      found++;
      EXPECT_EQ(p.kind, MOKA_PARAMETER_BOOLEAN);
      EXPECT_EQ(p.value, 1);
    }
  }
  EXPECT_EQ(found, 3);
}

TEST_F(CUpdate, OtherModelsLearnNothing) {
  const auto model = loaded(std::string(MOKA_TEST_GOLDEN) + "/../../examples/models/rent.mlmodel");
  EXPECT_EQ(moka_model_is_updatable(model.get()), 0);
  EXPECT_STREQ(moka_model_update_optimizer(model.get()), "");
  EXPECT_EQ(moka_model_training_input_count(model.get()), 0u);
  EXPECT_EQ(moka_model_update_loss_count(model.get()), 0u);
  moka_update_layer layer{};
  EXPECT_EQ(moka_model_update_layer(model.get(), 0, &layer), MOKA_INVALID_ARGUMENT);
  EXPECT_EQ(moka_model_is_updatable(nullptr), 0);
  EXPECT_EQ(moka_model_update_fault(nullptr), nullptr);
}

struct Seen {
  std::vector<moka_update_metrics> all;
  moka_features* change = nullptr;  ///< parameters after the first epoch
  int cancel_after = -1;            ///< events
  const char* fail = nullptr;
};

const char* show(void* context, moka_update* update, const moka_update_metrics* metrics) {
  Seen& seen = *static_cast<Seen*>(context);
  seen.all.push_back(*metrics);
  const bool first_epoch = metrics->event == MOKA_EPOCH_END && metrics->epoch == 0;
  moka_status status = MOKA_OK;
  if (first_epoch && seen.change != nullptr) status = moka_update_resume(update, seen.change);
  if (static_cast<int>(seen.all.size()) == seen.cancel_after) status = moka_update_cancel(update);
  EXPECT_EQ(status, MOKA_OK) << moka_last_error();
  return metrics->event == MOKA_EPOCH_END ? seen.fail : nullptr;
}

TEST_F(CUpdate, TrainsReportsAndSaves) {
  Examples examples;
  Seen seen;
  options_.progress = show;
  options_.context = &seen;
  const auto update = task(examples);
  moka_update_metrics reached{};
  ASSERT_EQ(moka_update_run(update.get(), &reached), MOKA_OK) << moka_last_error();
  EXPECT_EQ(examples.read, 12);  // what they become is kept
  ASSERT_EQ(seen.all.size(), 1u + 3 * (3 + 1));
  EXPECT_EQ(seen.all[0].event, MOKA_TRAINING_BEGIN);
  EXPECT_EQ(seen.all[6].event, MOKA_MINI_BATCH_END);
  EXPECT_EQ(seen.all[6].epoch, 1);
  EXPECT_EQ(seen.all[6].mini_batch, 1);
  EXPECT_EQ(seen.all[6].mini_batches, 3);
  EXPECT_NEAR(seen.all[4].loss, (seen.all[1].loss + seen.all[2].loss + seen.all[3].loss) / 3, 1e-7);
  EXPECT_EQ(reached.event, MOKA_EPOCH_END);
  EXPECT_EQ(reached.loss, seen.all.back().loss);
  EXPECT_LT(reached.loss, seen.all[4].loss);
  EXPECT_EQ(reached.is_cancelled, 0);
  // The saved model predicts what the updated one does.
  const std::string out = (folder_.path() / "new.mlmodel").string();
  ASSERT_EQ(moka_update_save(update.get(), out.c_str()), MOKA_OK) << moka_last_error();
  moka_model* m = nullptr;
  ASSERT_EQ(moka_update_model(update.get(), nullptr, &m), MOKA_OK);
  const Owned<moka_model> updated(m), saved = loaded(out), before = loaded(path_);
  std::vector<std::vector<double>> answers;
  for (const auto* model : {updated.get(), saved.get(), before.get()}) {
    const auto inputs = new_features(), outputs = new_features();
    std::vector<double> x = examples.x[5];
    set_numbers(inputs.get(), "x", x);
    ASSERT_EQ(moka_model_predict(model, inputs.get(), outputs.get(), nullptr), MOKA_OK) << moka_last_error();
    moka_array y{};
    ASSERT_EQ(moka_features_get_array(outputs.get(), "y", &y), MOKA_OK);
    const auto* data = static_cast<const double*>(y.data);
    answers.emplace_back(data, data + 2);
  }
  EXPECT_EQ(answers[0], answers[1]);
  EXPECT_NE(answers[0], answers[2]);
  std::ofstream(out) << "another file";
  EXPECT_EQ(moka_update_save(update.get(), out.c_str()), MOKA_INVALID_ARGUMENT);
}

TEST_F(CUpdate, ExamplesInMemoryGiveTheSame) {
  Examples examples;
  const auto by_function = task(examples);
  ASSERT_EQ(moka_update_run(by_function.get(), nullptr), MOKA_OK) << moka_last_error();
  std::vector<Owned<moka_features>> all;
  std::vector<const moka_features*> handles;
  for (size_t i = 0; i < examples.x.size(); i++) {
    all.push_back(new_features());
    set_numbers(all.back().get(), "x", examples.x[i]);
    set_numbers(all.back().get(), "y_true", examples.y[i]);
    handles.push_back(all.back().get());
  }
  moka_update* u = nullptr;
  ASSERT_EQ(moka_update_new_from(path_.c_str(), handles.data(), handles.size(), &options_, &u), MOKA_OK)
      << moka_last_error();
  const Owned<moka_update> in_memory(u);
  ASSERT_EQ(moka_update_run(u, nullptr), MOKA_OK) << moka_last_error();
  EXPECT_EQ(weights(u), weights(by_function.get()));
}

TEST_F(CUpdate, HandlersChangeParametersAndCancel) {
  Examples examples;
  const auto slower = new_features();
  EXPECT_EQ(moka_features_set_double(slower.get(), "learningRate", 0), MOKA_OK);
  Seen seen;
  seen.change = slower.get();
  options_.progress = show;
  options_.context = &seen;
  const auto stays = task(examples);
  ASSERT_EQ(moka_update_run(stays.get(), nullptr), MOKA_OK) << moka_last_error();
  const auto now = new_features();
  ASSERT_EQ(moka_update_read_parameters(stays.get(), now.get()), MOKA_OK);
  double rate = 1;
  int64_t epochs = 0, shuffle = 1;
  EXPECT_EQ(moka_features_get_double(now.get(), "learningRate", &rate), MOKA_OK);
  EXPECT_EQ(moka_features_get_int64(now.get(), "epochs", &epochs), MOKA_OK);
  EXPECT_EQ(moka_features_get_int64(now.get(), "shuffle", &shuffle), MOKA_OK);
  EXPECT_EQ(rate, 0);
  EXPECT_EQ(epochs, 3);
  EXPECT_EQ(shuffle, 0);

  Seen short_seen;
  short_seen.cancel_after = 5;  // the end of the first epoch
  options_.context = &short_seen;
  const auto stopped = task(examples);
  moka_update_metrics reached{};
  ASSERT_EQ(moka_update_run(stopped.get(), &reached), MOKA_OK) << moka_last_error();
  EXPECT_EQ(reached.is_cancelled, 1);
  EXPECT_EQ(reached.epoch, 0);
  // Without a rate the two later epochs change nothing.
  EXPECT_EQ(weights(stopped.get()), weights(stays.get()));
  ASSERT_EQ(moka_update_run(stopped.get(), &reached), MOKA_OK) << moka_last_error();
  EXPECT_EQ(reached.is_cancelled, 0);
  EXPECT_NE(weights(stopped.get()), weights(stays.get()));
}

TEST_F(CUpdate, FailuresAreStatuses) {
  Examples examples;
  moka_update* u = nullptr;
  const auto refused = [&](const char* path, const char* text) {
    EXPECT_EQ(moka_update_new(path, 12, read_example, &examples, &options_, &u), MOKA_INVALID_ARGUMENT);
    EXPECT_NE(std::string(moka_last_error()).find(text), std::string::npos) << moka_last_error();
    EXPECT_EQ(u, nullptr);
  };
  refused(nullptr, "argument 'path'");
  refused((std::string(MOKA_TEST_GOLDEN) + "/../../examples/models/rent.mlmodel").c_str(), "not updatable");
  EXPECT_EQ(moka_features_set_double(parameters_.get(), "learningRate", 7), MOKA_OK);
  refused(path_.c_str(), "learningRate: the model allows 0 to 1, got 7");
  EXPECT_EQ(moka_features_set_string(parameters_.get(), "learningRate", "fast"), MOKA_OK);
  refused(path_.c_str(), "learningRate: expected a number, got");
  EXPECT_EQ(moka_features_set_double(parameters_.get(), "learningRate", 0.05), MOKA_OK);
  options_.struct_size = 3;
  refused(path_.c_str(), "struct_size");
  options_.struct_size = sizeof options_;
  EXPECT_EQ(moka_update_new(path_.c_str(), 12, nullptr, nullptr, nullptr, &u), MOKA_INVALID_ARGUMENT);
  EXPECT_EQ(moka_update_new_from(path_.c_str(), nullptr, 0, nullptr, &u), MOKA_INVALID_ARGUMENT);
  EXPECT_STREQ(moka_last_error(), "expected at least one example, got none");
  EXPECT_EQ(moka_update_new_from(path_.c_str(), nullptr, 2, nullptr, &u), MOKA_INVALID_ARGUMENT);
  EXPECT_EQ(moka_update_run(nullptr, nullptr), MOKA_INVALID_ARGUMENT);
  moka_update_free(nullptr);

  Seen seen;
  seen.fail = "the user left";
  options_.progress = show;
  options_.context = &seen;
  const auto left = task(examples);
  EXPECT_EQ(moka_update_save(left.get(), path_.c_str()), MOKA_INVALID_ARGUMENT);
  EXPECT_STREQ(moka_last_error(), "update: expected a task that has run");
  EXPECT_EQ(moka_update_run(left.get(), nullptr), MOKA_DATA);
  EXPECT_STREQ(moka_last_error(), "the user left");
  options_.progress = nullptr;
  examples.broken = 3;
  const auto broken = task(examples);
  EXPECT_EQ(moka_update_run(broken.get(), nullptr), MOKA_DATA);
  EXPECT_STREQ(moka_last_error(), "example 3: the disk is gone");
  examples.broken = -1;
  examples.y[7][1] = NAN;
  const auto nan = task(examples);
  EXPECT_EQ(moka_update_run(nan.get(), nullptr), MOKA_INVALID_ARGUMENT);
  EXPECT_STREQ(moka_last_error(), "example 7: 'y_true': expected finite numbers, got nan");
}

}  // namespace
