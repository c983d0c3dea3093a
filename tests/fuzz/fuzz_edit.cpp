// SPDX-License-Identifier: Apache-2.0
// Input: a byte that chooses an edit, and a specification (.mlmodel) to be edited and written.
#include <cstdint>
#include <span>

#include "compress/upgrade.h"
#include "editing/cut.h"
#include "editing/features.h"
#include "editing/functions.h"
#include "editing/image.h"
#include "editing/inline.h"
#include "editing/join.h"
#include "editing/labels.h"
#include "editing/normalize.h"
#include "editing/rename.h"
#include "editing/strip.h"
#include "editing/training_inputs.h"
#include "editing/types.h"
#include "editing/updatable.h"
#include "editing/version.h"
#include "update/nearest_neighbors.h"

namespace {

using namespace moka::editing;
using moka::Status;
using moka::format::ModelSource;

constexpr float numbers[] = {1, 2};

/// Makes the first layer updatable.
Status mark(ModelSource& source) {
  const std::string kind = MOKA_TRY(kind_of(source.specification));
  if (kind.empty()) return {};
  std::vector<std::string> names;
  if (is_network(kind)) {
    const Message content = MOKA_TRY(source.specification.child(kind));
    for (const Message& layer : MOKA_TRY(content.children("layers"))) names = {MOKA_TRY(text_of(layer, "name"))};
  }
  MOKA_TRY(make_updatable(source.specification, names));
  for (const char* loss : {"mse", "cross-entropy"}) (void)set_loss(source, {loss, "", "loss"}).ok();
  MOKA_TRY(set_optimizer(source.specification, "adam"));
  MOKA_TRY(set_parameter(source.specification, "epochs", {3}));
  return check_update(source);
}

/// Applies an edit to the first input or output.
Status edit(ModelSource& source, uint8_t choice) {
  Message& model = source.specification;
  std::string input, output;
  for (const Feature& f : MOKA_TRY(features(MOKA_TRY(interfaces(model)).at(0)))) (f.is_input ? input : output) = f.name;
  const std::string& name = choice & 1 ? input : output;
  constexpr uint8_t edits = 16;
  switch ((choice >> 1) % edits) {
    case 0: return rename_features(model, {{name, "a"}}, Side::any);
    case 1: return set_element(model, name, "float16", Side::any);
    case 2: return set_image(source, name, {}, Side::any);
    case 3: return normalize(model, input, {1}, {2}, std::nullopt);
    case 4: return set_labels(model, std::vector<std::string>{"a", "b"}, "", "label", "probabilities");
    case 5: return remove_labels(model);
    case 6: return cut(source, {}, {output});
    case 7: return strip_weights(source, 1);
    case 8: MOKA_TRY(moka::compress::upgrade_forms(source)); return set_target(model, "ios26");
    case 9: return append(source, "a", ModelSource{model.copy()}, "b");
    case 10: MOKA_TRY(moka::compress::unify_forms(source)); return inline_pipeline(source);
    case 11: return mark(source);
    case 12: return set_parameter(model, "numberOfNeighbors", {choice & 1 ? 2.0 : 0.0});
    case 13: return moka::update::add_samples(source, numbers, 2, std::vector<std::string>{"a"}, 1);
    case 14: return moka::update::add_samples(source, numbers, 2, std::vector<int64_t>{4}, std::nullopt);
    default: return add_function(source, "second", ModelSource{model.copy()}, "");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  auto bytes = moka::Bytes::copy_of(std::as_bytes(std::span(data + 1, size - 1)));
  auto message = Message::parse("Model", bytes);
  if (!message.ok() || !message->copy().decode_all().ok()) return 0;
  ModelSource source{*message};
  const auto training = TrainingInputs::of(source.specification);
  if (edit(source, data[0]).ok() && training.ok() && training->follow(source.specification).ok())
    (void)source.specification.serialize().ok();
  return 0;
}
