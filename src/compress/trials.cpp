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

Trials::Trials(Message specification, std::vector<Found> found, format::WeightStore store)
    : specification_(std::move(specification)), found_(std::move(found)), store_(std::move(store)) {
  std::set<std::string> seen;
  for (const Found& f : found_) sites_.push_back(site_of(f, !seen.insert(key_of(f)).second));
}

Result<Trials> Trials::of(const format::ModelSource& source) {
  format::ModelSource own = source;
  own.specification = source.specification.copy();
  std::vector<Found> found = MOKA_TRY(constants_of(own));
  return Trials(std::move(own.specification), std::move(found), store_of(own));
}

Result<Made> Trials::encode(size_t site, const Recipe& recipe) const {
  return encode_site(found_[site], sites_[site], recipe, store_);
}

Result<Trials::Changed> Trials::with(size_t site, std::span<const float> values) const {
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
