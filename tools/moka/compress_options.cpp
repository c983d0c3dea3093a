// SPDX-License-Identifier: Apache-2.0
#include "compress_options.h"

#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>
#include <cmath>

#include "options.h"
#include "print.h"
#include "text.h"
#include "usage_error.h"

namespace moka::cli {
namespace {

/// "block:32" as a word and a number.
std::pair<std::string, int64_t> split_number(const std::string& option, const std::string& text) {
  const size_t colon = text.find(':');
  if (colon == std::string::npos) return {text, 32};
  const auto number = parse_integer(text.substr(colon + 1));
  if (!number || *number < 1) throw UsageError(fmt::format("{}: expected WORD:NUMBER, got '{}'", option, text));
  return {text.substr(0, colon), *number};
}

void set_granularity(const std::string& text, WeightCompression& to) {
  if (text.empty()) return;
  const auto [word, number] = split_number("--per", text);
  if (word == "tensor") {
    to.granularity = WeightGranularity::tensor;
  } else if (word == "channel") {
    to.granularity = WeightGranularity::channel;
  } else if (word == "group") {
    to.granularity = WeightGranularity::group;
    to.group_size = number;
  } else if (word == "block") {
    to.granularity = WeightGranularity::block;
    to.block_size = number;
  } else {
    throw UsageError(fmt::format("--per: expected tensor, channel, group:N or block:N, got '{}'", text));
  }
}

/// "0.5" or "2:4".
void set_pruning(const std::string& text, const std::string& option, WeightCompression& to) {
  const size_t colon = text.find(':');
  const auto first = parse_number(text.substr(0, colon));
  const auto second = colon == std::string::npos ? std::nullopt : parse_integer(text.substr(colon + 1));
  const bool whole = first && std::trunc(*first) == *first;
  if (!first || std::isnan(*first) || (colon != std::string::npos && !(second && whole)))
    throw UsageError(fmt::format("{}: expected a fraction such as 0.5, or N:M, got '{}'", option, text));
  if (second) {
    to.n = static_cast<int64_t>(*first);
    to.m = *second;
  } else {
    to.sparsity = *first;
  }
}

constexpr std::string_view kForms =
    "half, linear8, linear4:32, palette4, palette4:16, palette4+vector4, palette4+scales, prune0.5+palette4, ...";

/// One part of a form: "linear4:32", "vector4", "prune2:4".
void add_part(const std::string& text, const std::string& option, WeightCompression& to) {
  const auto wrong = [&] { return UsageError(fmt::format("{}: expected none, {}, got '{}'", option, kForms, text)); };
  const size_t digit = std::min(text.find_first_of("0123456789."), text.size());
  const std::string word = text.substr(0, digit), rest = text.substr(digit);
  if (word == "half" && rest.empty()) {
    to.form = WeightForm::half;
  } else if (word == "scales" && rest.empty()) {
    to.per_channel_scale = true;
  } else if (word == "vector" && parse_integer(rest)) {
    to.vector_size = *parse_integer(rest);
  } else if (word == "prune") {
    set_pruning(rest, option, to);
  } else if (word == "linear" || word == "palette") {
    const bool linear = word == "linear";
    const size_t colon = rest.find(':');
    const auto bits = parse_integer(rest.substr(0, colon));
    if (!bits) throw wrong();
    to.form = linear ? WeightForm::linear : WeightForm::palette;
    to.bits = static_cast<unsigned>(*bits);
    if (colon == std::string::npos) return;
    const auto size = parse_integer(rest.substr(colon + 1));
    if (!size || *size < 1) throw UsageError(fmt::format("{}: expected FORM:SIZE, got '{}'", option, text));
    to.granularity = linear ? WeightGranularity::block : WeightGranularity::group;
    (linear ? to.block_size : to.group_size) = *size;
  } else {
    throw wrong();
  }
}

/// "linear8", "prune0.5+palette4:16", "none". `base`: what it does not say.
WeightCompression form_of(const std::string& text, WeightCompression base, const std::string& option) {
  if (text == "none") {
    WeightCompression none;
    none.form = WeightForm::unchanged;
    return none;
  }
  for (size_t at = 0; at <= text.size();) {
    const size_t plus = std::min(text.find('+', at), text.size());
    add_part(text.substr(at, plus - at), option, base);
    at = plus + 1;
  }
  return base;
}

/// "40%" of a size, or "12 MB".
size_t size_of(const std::string& text, size_t whole) {
  constexpr double percent = 100;
  const auto end = text.find_last_of("0123456789.");
  const auto value = parse_number(trimmed(std::string_view(text).substr(0, end == std::string::npos ? 0 : end + 1)));
  const std::string unit = end == std::string::npos ? "" : std::string(trimmed(text.substr(end + 1)));
  if (value && *value > 0) {
    if (unit == "%") return static_cast<size_t>(*value / percent * static_cast<double>(whole));
    for (const auto& [name, bytes] : {std::pair{"B", 1e0}, {"kB", 1e3}, {"KB", 1e3}, {"MB", 1e6}, {"GB", 1e9}})
      if (unit == name) return static_cast<size_t>(*value * bytes);
  }
  throw UsageError(fmt::format("--target-size: expected a share such as 40%, or a size such as 12MB, got '{}'", text));
}

double decibels(const std::string& text) {
  const bool has_unit = text.ends_with("dB");
  const auto value = parse_number(trimmed(text.substr(0, text.size() - (has_unit ? 2 : 0))));
  if (!value) throw UsageError(fmt::format("--max-error: expected a signal to noise such as 40dB, got '{}'", text));
  return *value;
}

WeightCompression searched_form(const std::string& text, const WeightCompression& options) {
  WeightCompression base;
  base.form = WeightForm::unchanged;
  base.symmetric = options.symmetric;
  base.is_signed = options.is_signed;
  base.mode = options.mode;
  base.sparse_block = options.sparse_block;
  if (text == "none") throw UsageError(fmt::format("--forms: expected {}, got 'none'", kForms));
  return form_of(text, base, "--forms");
}

/// "int8", "uint8:asymmetric".
ActivationCompression activations_of(const CompressOptions& options) {
  ActivationCompression out;
  const std::string& text = options.activations;
  const std::string type = text.substr(0, text.find(':'));
  const std::string kind = text.size() > type.size() ? text.substr(type.size() + 1) : "symmetric";
  if ((type != "int8" && type != "uint8") || (kind != "symmetric" && kind != "asymmetric"))
    throw UsageError(
        fmt::format("--activations: expected int8, uint8, int8:asymmetric or uint8:asymmetric, got '{}'", text));
  out.is_signed = type == "int8";
  out.symmetric = kind == "symmetric";
  out.unchanged = options.unchanged;
  if (options.input.inputs.empty())
    throw UsageError("--activations needs inputs to measure ranges on: --input NAME=VALUE, or --input random");
  return out;
}

/// As the patterns of CompressionOptions::exceptions: only "*" is special.
bool applies(const std::string& pattern, const CompressedWeight& weight) {
  constexpr std::string_view prefix = "type:";
  if (pattern.starts_with(prefix)) return weight.operation == pattern.substr(prefix.size());
  std::string escaped;
  for (const char c : pattern) {
    if (c == '?' || c == '[' || c == '\\') escaped += '\\';
    escaped += c;
  }
  return fnmatch(escaped.c_str(), weight.name.c_str(), 0) == 0;
}

}  // namespace

std::vector<Features> compression_inputs(const CompressOptions& options) {
  if (options.input.inputs.empty()) return {};
  const ModelDescription description = Model::describe(options.model);
  Inputs inputs = read_inputs(description.functions.at(0), options.input);
  for (const std::string& text : inputs.notes) note("compress", text);
  return std::move(inputs.rows);
}

CompressionOptions compression(const CompressOptions& options) {
  CompressionOptions out;
  WeightCompression& all = out.weights;
  if ((options.linear != 0) + (options.palette != 0) + (options.half ? 1 : 0) > 1)
    throw UsageError("expected one of --linear, --palette and --half, got both");
  const bool prunes = !options.prune.empty() || options.threshold >= 0;
  all.form = options.palette != 0                                     ? WeightForm::palette
             : options.linear != 0 || !(prunes || options.decompress) ? WeightForm::linear
                                                                      : WeightForm::unchanged;
  if (options.half) all.form = WeightForm::half;
  all.bits = static_cast<unsigned>(options.palette != 0 ? options.palette : options.linear != 0 ? options.linear : 8);
  all.symmetric = !options.asymmetric;
  all.is_signed = !options.is_unsigned;
  all.vector_size = options.vector;
  all.per_channel_scale = options.scales;
  all.mode = options.mode == "uniform"  ? PaletteMode::uniform
             : options.mode == "unique" ? PaletteMode::unique
                                        : PaletteMode::kmeans;
  if (all.form == WeightForm::palette) all.granularity = WeightGranularity::tensor;
  set_granularity(options.per, all);
  if (all.form == WeightForm::palette && all.granularity != WeightGranularity::tensor &&
      all.granularity != WeightGranularity::group)
    throw UsageError(fmt::format("palette: expected a granularity of tensor or group, got '{}'", options.per));
  all.threshold = options.threshold;
  all.least_sparsity = options.least_sparsity;
  all.sparse_block = options.prune_block;
  if (!options.prune.empty()) set_pruning(options.prune, "--prune", all);
  out.least_elements = options.least;
  out.decompress = options.decompress;
  if (!options.activations.empty())
    out.activations = activations_of(options);
  else if (!options.unchanged.empty())
    throw UsageError("--unchanged names operations that --activations leaves as they are");
  for (const std::string& layer : options.layers) {
    const size_t equal = layer.rfind('=');
    if (equal == std::string::npos)
      throw UsageError(fmt::format("--layer: expected WEIGHTS=FORM such as type:conv=linear8, got '{}'", layer));
    out.exceptions.emplace_back(layer.substr(0, equal), form_of(layer.substr(equal + 1), all, "--layer"));
  }
  return out;
}

CompressionSearch compression_search(const CompressOptions& options, size_t size_before) {
  if (!options.target_size.empty() && !options.max_error.empty())
    throw UsageError("expected one of --target-size and --max-error, got both");
  if (!options.activations.empty())
    throw UsageError("a search chooses forms of weights; give --activations in a second command, on its result");
  if (options.linear != 0 || options.palette != 0 || options.half || !options.prune.empty() || options.threshold >= 0 ||
      !options.per.empty() || options.vector > 1 || options.scales)
    throw UsageError(
        "--linear, --palette, --half, --prune, --threshold, --per, --vector and --scales fix what a search chooses; "
        "--forms lists what it may choose from");
  CompressionSearch out;
  if (!options.target_size.empty()) out.size = size_of(options.target_size, size_before);
  if (!options.max_error.empty()) out.signal_to_noise = decibels(options.max_error);
  const CompressionOptions all = compression(options);
  out.exceptions = all.exceptions;
  out.least_elements = all.least_elements;
  out.decompress = options.decompress;
  out.seed = options.input.seed;
  for (size_t at = 0; at < options.forms.size();) {
    const size_t comma = std::min(options.forms.find(',', at), options.forms.size());
    out.forms.push_back(searched_form(options.forms.substr(at, comma - at), all.weights));
    at = comma + 1;
  }
  return out;
}

void note_unused_layers(const CompressOptions& options, const std::vector<CompressedWeight>& weights) {
  for (const std::string& layer : options.layers) {
    const std::string pattern = layer.substr(0, layer.rfind('='));
    if (std::none_of(weights.begin(), weights.end(), [&](const CompressedWeight& w) { return applies(pattern, w); }))
      note("compress", fmt::format("--layer {}: no weight matches '{}'", layer, pattern));
  }
}

void add_compress_options(Arguments app, CompressOptions& options, Outputs& outputs) {
  app.add_option("--linear", options.linear, "Integers with scales: 8 (default) or 4 bits; in neural networks 1 to 8")
      .check(whole_number(1, 8))
      .option_text("BITS");
  app.add_option("--palette", options.palette,
                 "Indices into a table of values: 1, 2, 3, 4, 6 or 8 bits; in neural networks 1 to 8")
      .check(whole_number(1, 8))
      .option_text("BITS");
  app.add_flag("--half", options.half, "Neural networks: float16");
  app.add_option("--per", options.per,
                 "What shares a scale or a table: tensor, channel, block:N input channels (linear),\n"
                 "group:N output channels (palettes); default: channel for --linear, tensor for --palette")
      .option_text("WHAT");
  app.add_flag("--asymmetric", options.asymmetric, "Linear: the least and the greatest value use all numbers");
  app.add_flag("--unsigned", options.is_unsigned, "Linear: numbers from 0 on");
  app.add_option("--mode", options.mode, "Palettes: kmeans (default), uniform or unique")
      .check(one_of({"kmeans", "uniform", "unique"}))
      .option_text("HOW");
  app.add_option("--vector", options.vector, "Palettes: output channels that one index covers (default 1)")
      .check(whole_number(1, 64))
      .option_text("N");
  app.add_flag("--scales", options.scales, "Palettes: normalize by the largest value across the output channels");
  app.add_option("--prune", options.prune, "Set this fraction of the smallest values to zero, or N of M neighbors")
      .option_text("FRACTION|N:M");
  app.add_option("--prune-block", options.prune_block, "With a fraction: so many output channels become zero together")
      .check(whole_number(1, 1 << 20))
      .option_text("N");
  app.add_option("--threshold", options.threshold, "Set values up to this size to zero")
      .check(number(0, 1e30))
      .option_text("SIZE");
  app.add_option("--least-sparsity", options.least_sparsity,
                 "With --threshold: weights with a smaller fraction of zeros stay as they are (default 0.5)")
      .check(number(0, 1))
      .option_text("FRACTION");
  app.add_flag("--decompress", options.decompress,
               "Make floats of weights that are compressed already; with another form or a search, do it first");
  app.add_option("--layer", options.layers,
                 "Another form for some weights: a name (\"conv_*\") or type:OPERATION, and none, half, linear8,\n"
                 "palette4:16, prune0.5+palette4, ...; the last one that matches counts")
      .allow_extra_args(false)
      .option_text("WEIGHTS=FORM");
  app.add_option("--least", options.least, "Weights of up to so many elements stay as they are (default 2048)")
      .check(whole_number(0, INT64_MAX))
      .option_text("N");
  app.add_option("--activations", options.activations,
                 "Also round what conv, linear, pooling and add read and give: int8, uint8, int8:asymmetric or\n"
                 "uint8:asymmetric, by the ranges that values have for --input")
      .option_text("TYPE");
  app.add_option("--unchanged", options.unchanged,
                 "With --activations: operations that stay as they are, by name (\"head_*\") or type:add")
      .allow_extra_args(false)
      .option_text("OPERATIONS");
  app.add_option("--target-size", options.target_size,
                 "Choose forms by what they do to the outputs: the least error for a size of the model,\n"
                 "as a share (40%) or in bytes (12MB)")
      .option_text("SIZE");
  app.add_option("--max-error", options.max_error,
                 "Choose forms by what they do to the outputs: the smallest model whose every output has\n"
                 "this signal to noise (40dB), with a margin for other inputs")
      .option_text("DB");
  app.add_option("--forms", options.forms,
                 "With either: what to choose from, such as linear8,linear4:32,palette4:16,palette4+vector4,\n"
                 "prune0.5,prune2:4+linear8 (default: integers and palettes of all bits)")
      .option_text("FORM,...");
  outputs
      .add_option("--chart", options.chart, {{"", FileKind::picture}},
                  "With either: draw sizes and errors into this PNG file")
      .option_text("FILE");
  add_input_options(app, options.input);
}

}  // namespace moka::cli
