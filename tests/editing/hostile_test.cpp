// SPDX-License-Identifier: Apache-2.0
#include <functional>
#include <random>

#include "edit_util.h"

namespace moka::edit_test {
namespace {

using Edit = std::function<ModelSource(const ModelSource&)>;

const std::vector<Edit> kEdits = {
    [](const ModelSource& m) {
      return edit::rename_features(m, {{"x", "a"}, {"y", "middle"}});
    },
    [](const ModelSource& m) {
      return edit::rename_operations(m, {{"dense", "a"}});
    },
    [](const ModelSource& m) {
      return edit::rename_values(m, {{"middle", "a"}});
    },
    [](const ModelSource& m) { return edit::set_type(m, "x", "float16"); },
    [](const ModelSource& m) { return edit::set_type(m, "y", "int32"); },
    [](const ModelSource& m) { return edit::set_image(m, "x", {ColorSpace::grayscale}); },
    [](const ModelSource& m) { return edit::normalize(m, "x", {1}, {2}); },
    [](const ModelSource& m) {
      return edit::set_labels(m, std::vector<std::string>{"a", "b", "c"});
    },
    [](const ModelSource& m) { return edit::remove_labels(m); },
    [](const ModelSource& m) { return edit::cut(m, {}, {"middle"}); },
    [](const ModelSource& m) { return edit::cut(m, {"middle"}, {}); },
    [](const ModelSource& m) { return edit::bisect_into_pipeline(m); },
    [](const ModelSource& m) {
      return edit::set_sizes(m, {{"x", {{{1, 1}, {2, 8}}, {}}}});
    },
    [](const ModelSource& m) { return edit::strip_weights(m, 1); },
    [](const ModelSource& m) { return edit::set_target(m, "ios26"); },
    [](const ModelSource& m) { return edit::append(m, "a", m, "b"); },
    [](const ModelSource& m) { return edit::inline_pipeline(m); },
    [](const ModelSource& m) { return edit::extract_stage(m, "0"); },
    [](const ModelSource& m) { return edit::add_function(m, "second", m); },
    [](const ModelSource& m) { return edit::extract_function(m, "main"); },
    [](const ModelSource& m) { return edit::set_default_function(m, "main"); },
    [](const ModelSource& m) { return edit::describe_feature(m, "x", "text"); },
};

/// Damages a copy of the model and applies every edit. Only Exception may be thrown.
void damage(const ModelSource& model, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<std::byte> bytes = model.specification().serialize();
  const int changes = 1 + static_cast<int>(random() % 4);
  for (int i = 0; i < changes; ++i) {
    const size_t at = random() % bytes.size();
    switch (random() % 4) {
      case 0: bytes[at] = static_cast<std::byte>(random()); break;
      case 1: bytes[at] ^= static_cast<std::byte>(1u << random() % 8); break;
      case 2: bytes.erase(bytes.begin() + static_cast<std::ptrdiff_t>(at)); break;
      default: bytes.insert(bytes.begin() + static_cast<std::ptrdiff_t>(at), static_cast<std::byte>(random()));
    }
  }
  if (random() % 8 == 0) bytes.resize(random() % bytes.size());
  for (size_t i = 0; i < kEdits.size(); ++i) {
    try {
      ModelSource damaged(Message::parse("Model", bytes));
      for (const std::string& file : model.weight_files()) damaged.set_weight_file(file, model.weight_file(file));
      edit::check(kEdits[i](damaged));
    } catch (const Exception& e) {
      EXPECT_NE(e.kind(), ErrorKind::internal) << "edit " << i << ", seed " << seed << ": " << e.what();
    } catch (const std::exception& e) {
      ADD_FAILURE() << "edit " << i << ", seed " << seed << ": " << e.what();
    }
  }
}

TEST(Hostile, DamagedModelsAreErrors) {
  constexpr unsigned rounds = 400;
  const ModelSource classifier = edit::set_labels(program(), std::vector<std::string>{"a", "b", "c"});
  const ModelSource pipeline =
      edit::join({{"one", program()}, {"two", edit::rename_features(program(), {{"x", "a"}, {"y", "b"}})}});
  const ModelSource functions = edit::add_function(program(), "second", program());
  for (unsigned seed = 0; seed < rounds; ++seed)
    for (const ModelSource& model : {program(), network(), classifier, pipeline, functions}) damage(model, seed);
}

TEST(Hostile, EditsOfEditsAreSound) {
  // Two edits in a row either give a model that imports, or are refused.
  for (const ModelSource& model : {program(), network()})
    for (const Edit& first : kEdits)
      for (const Edit& second : kEdits) {
        try {
          const ModelSource once = first(model);
          edit::check(once);
          const ModelSource twice = second(once);
          EXPECT_EQ(message_of([&] { edit::check(twice); }), "");
        } catch (const Exception&) {
        }
      }
}

}  // namespace
}  // namespace moka::edit_test
