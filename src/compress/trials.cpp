// SPDX-License-Identifier: Apache-2.0
#include "compress/trials.h"

#include <set>

#include "compress/blocks.h"
#include "compress/messages.h"
#include "format/weights/weight_file.h"

namespace moka::compress {

using format::Message;

namespace {

/// Makes a constant refer to a place in a weight file.
Status refer(const Found& found, const std::string& file, uint64_t offset) {
  const auto value = MOKA_TRY(find(found.operation, "attributes", "val"));
  Message blob = MOKA_TRY(value->child("blobFileValue"));
  MOKA_TRY(blob.set("fileName", file));
  return blob.set("offset", offset);
}

}  // namespace

Trials::Trials(Message specification, std::vector<Found> found, std::vector<NetworkWeight> networks,
               format::WeightStore store)
    : specification_(std::move(specification)),
      found_(std::move(found)),
      networks_(std::move(networks)),
      store_(std::move(store)) {
  std::set<std::string> seen;
  for (const Found& f : found_) sites_.push_back(site_of(f, !seen.insert(key_of(f)).second));
  for (const NetworkWeight& w : networks_) sites_.push_back(site_of(w));
}

Result<Trials> Trials::of(const format::ModelSource& source) {
  format::ModelSource own = source;
  own.specification = source.specification.copy();
  std::vector<Found> found = MOKA_TRY(constants_of(own));
  std::vector<NetworkWeight> networks = MOKA_TRY(network_weights_of(own.specification));
  return Trials(std::move(own.specification), std::move(found), std::move(networks), store_of(own));
}

Result<Trials::Tried> Trials::encode(size_t site, const Recipe& recipe) const {
  const auto tried = [](auto made) {
    Tried out{std::move(made.outcome), std::nullopt};
    if (made.encoding) out.values = std::move(made.encoding->decoded);
    return out;
  };
  if (is_network(site)) return tried(MOKA_TRY(encode_network_weight(networks_[site - found_.size()], recipe)));
  return tried(MOKA_TRY(encode_site(found_[site], sites_[site], recipe, store_)));
}

Result<Trials::Changed> Trials::with_network_weight(const NetworkWeight& weight, std::span<const float> values) const {
  const std::string_view field = weight.half ? "float16Value" : "floatValue";
  Message params = weight.params;
  const Bytes original = MOKA_TRY(params.packed(field));
  MOKA_TRY(params.set_packed("floatValue", Bytes::copy_of(std::as_bytes(values))));
  if (weight.half) MOKA_TRY(params.clear(field));
  auto bytes = specification_.serialize();
  if (weight.half) MOKA_TRY(params.clear("floatValue"));
  MOKA_TRY(params.set_packed(field, original));
  return Changed{MOKA_TRY(std::move(bytes)).joined(), {}};
}

Result<Trials::Changed> Trials::with(size_t site, std::span<const float> values) const {
  if (is_network(site)) return with_network_weight(networks_[site - found_.size()], values);
  format::WeightFile file;
  const uint64_t offset = file.add(float_type(found_[site].half), store(values, found_[site].half), values.size());
  const std::string key = key_of(found_[site]);
  for (const Found& f : found_)
    if (key_of(f) == key) MOKA_TRY(refer(f, cat("@model_path/", kTriedFile), offset));
  auto bytes = specification_.serialize();
  for (const Found& f : found_)
    if (key_of(f) == key) MOKA_TRY(refer(f, f.file, f.offset));
  return Changed{MOKA_TRY(std::move(bytes)).joined(), file.content().joined()};
}

Result<Bytes> Trials::unchanged() const { return MOKA_TRY(specification_.serialize()).joined(); }

}  // namespace moka::compress
