#include "compress/program.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <mutex>
#include <set>

#include "base/half.h"
#include "compress/blocks.h"
#include "compress/constants.h"
#include "compress/messages.h"
#include "format/weights/weight_store.h"

namespace moka::compress {
namespace {

using format::Message;

format::WeightStore store_of(const format::ModelSource& source) {
  std::map<std::string, Bytes> files;
  for (const auto& [name, content] : source.weights) files.emplace(name, content.joined());
  return format::WeightStore::in_memory(std::move(files));
}

int64_t count_of(const Shape& shape) {
  int64_t out = 1;
  for (const int64_t size : shape) out *= size;
  return out;
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

/// Constants with the same place, shape and axes are encoded once.
std::string key_of(const Found& found) {
  const auto axes = axes_of(found);
  std::string out = cat(found.file, "@", found.offset, axes ? cat(" ", axes->output, " ", axes->input) : "");
  for (const int64_t size : found.shape) out += cat(" ", size);
  return out;
}

Site site_of(const Found& found, bool shared) {
  return {found.name, found.uses[0].type, found.shape, found.half, shared, count_of(found.shape)};
}

struct Made {
  Outcome outcome;
  std::optional<Encoding> encoding;
};

/// Compares what was written with its source.
Status compare(const std::vector<float>& values, const std::vector<float>& decoded, bool pruned, Outcome& outcome) {
  double signal = 0, noise = 0, largest = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    const double error = static_cast<double>(decoded[i]) - values[i];
    signal += static_cast<double>(values[i]) * values[i];
    noise += error * error;
    largest = std::max(largest, std::abs(error));
    outcome.largest_error = std::max(outcome.largest_error, std::abs(static_cast<double>(values[i])));
  }
  const double peak = std::exchange(outcome.largest_error, largest);
  outcome.signal_to_noise = noise == 0 ? INFINITY : 10 * std::log10(signal / noise);
  // No form moves a value further than the range of the weight, and pruning only moves values to zero.
  constexpr double slack = 1.01;
  if (!std::isfinite(noise) || largest > peak * (pruned ? slack : 2 * slack))
    return fail(ErrorCode::internal, "weight '", outcome.site.name, "': what was written differs from it by ", largest);
  return {};
}

Result<Made> encode(const Found& found, const Site& site, const Recipe& recipe, const format::WeightStore& store) {
  Made out{{site, recipe}, std::nullopt};
  const auto axes = axes_of(found);
  const std::vector<float> values = MOKA_TRY(values_of(found, store));
  const Weight weight{found.shape, found.half, values, axes ? axes->input : 1, axes ? axes->output : 0};
  out.outcome.bytes_before = values.size() * (found.half ? 2 : 4);
  const bool joint = recipe.prune && recipe.form.index() != 0;
  std::string& skipped = out.outcome.skipped;
  if (!axes) skipped = "the operations that read it disagree about its channels";
  if (joint && found.form == Form::ios16) skipped = "joint forms need a program for iOS 18";
  if (skipped.empty() && recipe.prune) skipped = refusal(weight, *recipe.prune, found.form);
  if (const auto* linear = std::get_if<Linear>(&recipe.form); linear != nullptr && skipped.empty())
    skipped = refusal(weight, *linear, found.form);
  if (const auto* palette = std::get_if<Palette>(&recipe.form); palette != nullptr && skipped.empty()) {
    skipped = refusal(weight, *palette, found.form);
    if (joint && (palette->vector > 1 || palette->scales)) skipped = "pruned weights take no vectors and no scales";
  }
  out.outcome.bytes_after = out.outcome.bytes_before;
  if (!skipped.empty()) return out;
  const std::vector<bool> kept = recipe.prune ? kept_by(weight, *recipe.prune) : std::vector<bool>();
  if (const auto* linear = std::get_if<Linear>(&recipe.form))
    out.encoding = compress::encode(weight, *linear, found.form, kept);
  else if (const auto* palette = std::get_if<Palette>(&recipe.form))
    out.encoding = compress::encode(weight, *palette, found.form, kept);
  else
    out.encoding = encode_sparse(weight, kept, found.form);
  MOKA_TRY(compare(values, out.encoding->decoded, recipe.prune.has_value(), out.outcome));
  out.encoding->decoded = {};
  out.outcome.bytes_after = out.encoding->bytes;
  return out;
}

struct Replacement {
  const Encoding* encoding = nullptr;
  Form form = Form::ios16;
};

/// Replaces constants by name in all blocks of a function.
Status replace(const Message& model, const std::map<std::string, Replacement>& by_name, format::WeightFile& file) {
  return each(model, "MILSpec.Block", [&](Message block) -> Status {
    std::vector<Message> operations;
    bool changed = false;
    for (const Message& op : MOKA_TRY(block.children("operations"))) {
      const auto it = MOKA_TRY(text(op, "type")) == "const" ? by_name.find(MOKA_TRY(result_name(op))) : by_name.end();
      if (it == by_name.end()) {
        operations.push_back(op);
        continue;
      }
      changed = true;
      for (Message& made : MOKA_TRY(operations_of(*it->second.encoding, it->first, it->second.form, file)))
        operations.push_back(made);
    }
    if (!changed) return {};
    MOKA_TRY(block.clear("operations"));
    for (const Message& op : operations) MOKA_TRY(block.set("operations", op));
    return {};
  });
}

/// Moves what stays as it is to the new file.
Status move_blobs(const Message& model, const format::WeightStore& store, format::WeightFile& file) {
  return each(model, "MILSpec.Value.BlobFileValue", [&](Message value) -> Status {
    const std::string name = MOKA_TRY(text(value, "fileName"));
    const std::string moved = cat("@model_path/", kWeightFile);
    if (name == kNewFile) return value.set("fileName", moved);
    const auto offset = MOKA_TRY(value.values("offset"));
    const format::Blob blob = MOKA_TRY(store.blob(name, offset.empty() ? 0 : std::get<uint64_t>(offset[0])));
    MOKA_TRY(value.set("fileName", moved));
    return value.set("offset", file.add(blob.type, blob.data, blob.count));
  });
}

}  // namespace

Result<std::vector<Site>> sites_of(const format::ModelSource& source) {
  std::vector<Site> out;
  std::set<std::string> seen;
  for (const Found& found : MOKA_TRY(constants_of(source)))
    out.push_back(site_of(found, !seen.insert(key_of(found)).second));
  return out;
}

Result<std::vector<Outcome>> compress(format::ModelSource& source, const Chooser& choose, const Progress& progress) {
  const std::vector<Found> found = MOKA_TRY(constants_of(source));
  const format::WeightStore store = store_of(source);
  std::vector<Made> made(found.size());
  std::vector<size_t> work;
  std::map<std::string, size_t> first;
  for (size_t i = 0; i < found.size(); ++i) {
    const bool shared = !first.emplace(key_of(found[i]), i).second;
    made[i].outcome.site = site_of(found[i], shared);
    made[i].outcome.recipe = choose(made[i].outcome.site);
    if (!made[i].outcome.recipe.keeps() && !shared) work.push_back(i);
  }
  std::mutex mutex;
  std::optional<Error> failed;
  size_t done = 0;
  in_parallel(work.size(), [&](size_t k) {
    const size_t i = work[k];
    auto result = encode(found[i], made[i].outcome.site, made[i].outcome.recipe, store);
    std::lock_guard lock(mutex);
    if (!result.ok())
      failed = std::move(result).error();
    else
      made[i] = *std::move(result);
    if (progress) progress(++done, work.size());
  });
  if (failed) return *std::move(failed);

  std::vector<Outcome> out;
  std::vector<std::map<std::string, Replacement>> by_function;
  for (size_t i = 0; i < found.size(); ++i) {
    const size_t original = first.at(key_of(found[i]));
    if (original != i) {
      const Site site = made[i].outcome.site;
      made[i].outcome = made[original].outcome;
      made[i].outcome.site = site;
      made[i].outcome.bytes_before = made[i].outcome.bytes_after = 0;
    }
    out.push_back(made[i].outcome);
    by_function.resize(std::max(by_function.size(), found[i].function + 1));
    if (made[original].encoding)
      by_function[found[i].function][found[i].name] = {&*made[original].encoding, found[i].form};
  }
  format::WeightFile file;
  size_t function = 0;
  MOKA_TRY(each(source.specification, "MILSpec.Function", [&](const Message& message) -> Status {
    const size_t index = function++;
    return index < by_function.size() ? replace(message, by_function[index], file) : Status();
  }));
  MOKA_TRY(move_blobs(source.specification, store, file));
  for (auto it = source.weights.begin(); it != source.weights.end();)
    it = it->first.starts_with("weights/") ? source.weights.erase(it) : std::next(it);
  if (!file.empty()) source.weights[std::string(kWeightFile)] = file.content();
  return out;
}

}  // namespace moka::compress
