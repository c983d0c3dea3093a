// SPDX-License-Identifier: Apache-2.0
#include "compress/encode_site.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/half.h"
#include "compress/blocks.h"

namespace moka::compress {

int64_t count_of(const Shape& shape) {
  int64_t out = 1;
  for (const int64_t size : shape) out *= size;
  return out;
}

std::string refusal(std::span<const float> values) {
  const bool finite = std::all_of(values.begin(), values.end(), [](float v) { return std::isfinite(v); });
  return finite ? "" : "it has values that are not finite";
}

namespace {

/// Whether blocks and n of m neighbors can be pruned: in weights of conv and linear, as in coremltools.
bool has_structure(const Found& found) {
  return std::all_of(found.uses.begin(), found.uses.end(), [](const Use& use) {
    return (use.type == "conv" || use.type == "linear") && use.parameter == "weight";
  });
}

}  // namespace

format::WeightStore store_of(const format::ModelSource& source) {
  return format::WeightStore::in_memory(format::joined(source.weights));
}

Result<std::vector<float>> values_of(const Found& found, const format::WeightStore& store) {
  const format::Blob blob = MOKA_TRY(store.blob(found.file, found.offset));
  const auto count = static_cast<uint64_t>(count_of(found.shape));
  if (blob.count != count || blob.type != float_type(found.half))
    return fail(ErrorCode::malformed, "weight '", found.name, "': expected ", count, " elements of type ",
                to_string(float_type(found.half)), ", got ", blob.count, " of type ", to_string(blob.type));
  std::vector<float> out(count);
  if (!found.half) std::memcpy(out.data(), blob.data.data(), count * sizeof(float));
  for (size_t i = 0; found.half && i < count; ++i) {
    uint16_t bits = 0;
    std::memcpy(&bits, blob.data.data() + i * sizeof bits, sizeof bits);
    out[i] = half::to_float(bits);
  }
  return out;
}

std::string key_of(const Found& found) {
  const auto axes = axes_of(found);
  const char* form = found.form == Form::ios18 ? " ios18" : " ios16";
  std::string out = cat(found.file, "@", found.offset, form, axes ? cat(" ", axes->output, " ", axes->input) : "");
  for (const int64_t size : found.shape) out += cat(" ", size);
  return out;
}

Site site_of(const Found& found, bool shared) {
  return {found.name, found.uses[0].type, found.shape, found.half, shared, count_of(found.shape)};
}

void compare(const std::vector<float>& values, const std::vector<float>& decoded, bool pruned, Outcome& outcome) {
  double signal = 0, noise = 0, largest = 0, peak = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    const double error = static_cast<double>(decoded[i]) - values[i];
    signal += static_cast<double>(values[i]) * values[i];
    noise += error * error;
    largest = std::max(largest, std::abs(error));
    peak = std::max(peak, std::abs(static_cast<double>(values[i])));
  }
  // No form moves a value further than the range of the weight, and pruning only moves values to zero.
  constexpr double slack = 1.01;
  if (!std::isfinite(noise) || largest > peak * (pruned ? slack : 2 * slack)) {
    outcome.skipped = cat("this form differs from it by up to ", largest);
    return;
  }
  outcome.largest_error = largest;
  outcome.signal_to_noise = noise == 0 ? INFINITY : 10 * std::log10(signal / noise);
}

Result<Made> encode_site(const Found& found, const Site& site, const Recipe& recipe, const format::WeightStore& store) {
  Made out{{site, recipe}, std::nullopt};
  const auto axes = axes_of(found);
  const std::vector<float> values = MOKA_TRY(values_of(found, store));
  const Weight weight{found.shape, found.half, values, axes ? axes->input : 1, axes ? axes->output : 0};
  out.outcome.bytes_before = bytes_of(site);
  const bool joint = recipe.prune && recipe.form.index() != 0;
  std::string& skipped = out.outcome.skipped;
  if (!axes) skipped = "the operations that read it disagree about its channels";
  if (std::holds_alternative<Half>(recipe.form)) skipped = "an ML program fixes the type of its weights";
  if (joint && found.form == Form::ios16) skipped = "joint forms need a program for iOS 18";
  if (skipped.empty()) skipped = refusal(values);
  if (skipped.empty() && recipe.prune) skipped = refusal(weight, *recipe.prune, found.form);
  if (const auto* linear = std::get_if<Linear>(&recipe.form); linear != nullptr && skipped.empty())
    skipped = refusal(weight, *linear, found.form);
  if (const auto* palette = std::get_if<Palette>(&recipe.form); palette != nullptr && skipped.empty()) {
    skipped = refusal(weight, *palette, found.form);
    if (joint && (palette->vector > 1 || palette->scales)) skipped = "pruned weights take no vectors and no scales";
  }
  if (recipe.prune && (recipe.prune->m > 0 || recipe.prune->block > 0) && skipped.empty() && !has_structure(found))
    skipped = "blocks and N:M are for weights of conv and linear";
  std::vector<bool> kept;
  if (recipe.prune && skipped.empty()) {
    kept = kept_by(weight, *recipe.prune);
    skipped = refusal(kept, *recipe.prune);
  }
  out.outcome.bytes_after = out.outcome.bytes_before;
  if (!skipped.empty()) return out;
  if (const auto* linear = std::get_if<Linear>(&recipe.form))
    out.encoding = compress::encode(weight, *linear, found.form, kept);
  else if (const auto* palette = std::get_if<Palette>(&recipe.form))
    out.encoding = compress::encode(weight, *palette, found.form, kept);
  else
    out.encoding = encode_sparse(weight, kept, found.form);
  compare(values, out.encoding->decoded, recipe.prune.has_value(), out.outcome);
  if (skipped.empty())
    out.outcome.bytes_after = out.encoding->bytes;
  else
    out.encoding.reset();
  return out;
}

}  // namespace moka::compress
