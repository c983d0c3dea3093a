// SPDX-License-Identifier: Apache-2.0
#include <filesystem>

#include "editing/edit_util.h"
#include "temporary_folder.h"

/// Whether the messages are those of coremltools is compared in tests/python/test_update.py.
namespace moka::edit_test {
namespace {

ModelSource golden(const std::string& name) { return ModelSource::open(MOKA_GOLDEN "/update/" + name + ".mlmodel"); }

UpdateDescription described(const ModelSource& source) {
  test::TemporaryFolder folder;
  const std::string path = folder.path() / "model.mlmodel";
  source.save(path);
  const ModelDescription description = Model::describe(path);
  EXPECT_TRUE(description.update.has_value());
  return description.update.value_or(UpdateDescription());
}

std::string label_of(const ModelSource& source, const std::vector<float>& x) {
  const Features answer = source.load().predict({{"input", array(x, {2})}});
  return std::get<std::string>(answer.at("label"));
}

TEST(Updatable, NetworksAreMarked) {
  ModelSource source = edit::make_updatable(network(), {"dense"});
  EXPECT_EQ(message_of([&] { edit::check(source); }), "the model cannot be updated: expected one loss, got 0");
  source = edit::set_loss(source, LossLayer::Kind::mean_squared_error);
  EXPECT_EQ(message_of([&] { edit::check(source); }),
            "the model cannot be updated: expected an SGD or Adam optimizer, got none");
  EXPECT_EQ(message_of([&] { edit::set_update_parameter(source, "momentum", {0.5}); }),
            "parameter 'momentum': the model has no optimizer; set one first");
  source = edit::set_optimizer(source, "sgd");
  EXPECT_EQ(message_of([&] { edit::check(source); }),
            "the model cannot be updated: the update needs the parameter 'epochs'");
  source = edit::set_update_parameter(source, "epochs", {3, {{1, 5}}});
  edit::check(source);
  const UpdateDescription update = described(source);
  EXPECT_EQ(update.layers.at(0).parameters, (std::vector<std::string>{"dense_weights", "dense_bias"}));
  EXPECT_EQ(update.losses.at(0).target, "y_true");
  EXPECT_EQ(update.training_inputs.at(1).array.shape, (std::vector<int64_t>{3}));
  EXPECT_EQ(update.parameter("epochs")->bounds, std::pair(int64_t{1}, int64_t{5}));
}

TEST(Updatable, ProgramsAreRefused) {
  EXPECT_EQ(message_of([] { edit::make_updatable(program(), {"dense"}); }),
            "expected a neural network, got an ML program");
}

TEST(Updatable, CutNetworksLearnNothing) {
  const ModelSource cut = edit::cut(golden("plain"), {}, {"r"});
  EXPECT_FALSE(cut.load().description().updatable);
  edit::check(cut);
}

TEST(Samples, AnswerAtOnce) {
  const ModelSource empty = golden("neighbors_empty");
  EXPECT_EQ(label_of(empty, {1, 1}), "none");
  const ModelSource learned =
      edit::add_samples(empty, array({0, 0, 1, 1}, {2, 2}), std::vector<std::string>{"near", "far"}, 1);
  EXPECT_EQ(label_of(learned, {0.9f, 0.8f}), "far");
  EXPECT_EQ(label_of(empty, {0.9f, 0.8f}), "none");
  EXPECT_EQ(described(learned).neighbors->samples, 2);
}

TEST(Samples, KeepTheFileThatTheyCannotReplace) {
  test::TemporaryFolder folder;
  const std::filesystem::path path = folder.path() / "neighbors.mlmodel";
  golden("neighbors_string").save(path);
  const auto size = std::filesystem::file_size(path);
  EXPECT_EQ(message_of([&] {
              edit::add_samples(ModelSource::open(path), array({0, 0}, {1, 2}), std::vector<int64_t>{1}).save(path);
            }),
            "labels: expected texts, as the classifier has, got integers");
  EXPECT_EQ(std::filesystem::file_size(path), size);
  edit::add_samples(ModelSource::open(path), array({0, 0}, {1, 2}), std::vector<std::string>{"a"}).save(path);
  EXPECT_EQ(Model::describe(path).update->neighbors->samples, 7);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()), {}), 1);
}

}  // namespace
}  // namespace moka::edit_test
