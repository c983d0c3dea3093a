#include "moka/compress.h"

#include <fmt/format.h>

#include <cmath>
#include <memory>

#include "command.h"
#include "io/table.h"
#include "json.h"
#include "print.h"
#include "text.h"
#include "usage_error.h"

namespace moka::cli {
namespace {

struct Options {
  std::string model, out, per, prune, mode = "kmeans";
  std::vector<std::string> layers;
  int linear = 0, palette = 0;
  int64_t vector = 1, least = 2048, prune_block = 0;
  double threshold = -1;
  bool asymmetric = false, is_unsigned = false, scales = false, json = false;
};

/// "block:32" as a word and a number.
std::pair<std::string, int64_t> split(const std::string& option, const std::string& text) {
  const size_t colon = text.find(':');
  if (colon == std::string::npos) return {text, 32};
  const auto number = parse_integer(text.substr(colon + 1));
  if (!number || *number < 1) throw UsageError(fmt::format("{}: expected WORD:NUMBER, got '{}'", option, text));
  return {text.substr(0, colon), *number};
}

void set_granularity(const std::string& text, WeightCompression& to) {
  if (text.empty()) return;
  const auto [word, number] = split("--per", text);
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

void set_pruning(const Options& options, WeightCompression& to) {
  to.threshold = options.threshold;
  to.sparse_block = options.prune_block;
  if (options.prune.empty()) return;
  const size_t colon = options.prune.find(':');
  const auto first = parse_number(options.prune.substr(0, colon));
  const auto second = colon == std::string::npos ? std::nullopt : parse_integer(options.prune.substr(colon + 1));
  if (!first || (colon != std::string::npos && !second))
    throw UsageError(fmt::format("--prune: expected a fraction such as 0.5, or N:M, got '{}'", options.prune));
  if (second) {
    to.n = static_cast<int64_t>(*first);
    to.m = *second;
  } else {
    to.sparsity = *first;
  }
}

/// "linear8", "palette4", "none".
WeightCompression form_of(const std::string& text, WeightCompression base) {
  for (const auto& [word, form] : {std::pair{"linear", WeightForm::linear}, std::pair{"palette", WeightForm::palette}})
    if (text.starts_with(word)) {
      const auto bits = parse_integer(text.substr(std::string_view(word).size()));
      if (!bits) break;
      base.form = form;
      base.bits = static_cast<unsigned>(*bits);
      return base;
    }
  if (text != "none") throw UsageError(fmt::format("--layer: expected none, linear8, palette4, ..., got '{}'", text));
  WeightCompression none;
  none.form = WeightForm::unchanged;
  return none;
}

CompressionOptions compression(const Options& options) {
  CompressionOptions out;
  WeightCompression& all = out.weights;
  if (options.linear != 0 && options.palette != 0) throw UsageError("expected one of --linear and --palette, got both");
  const bool prunes = !options.prune.empty() || options.threshold >= 0;
  all.form = options.palette != 0             ? WeightForm::palette
             : options.linear != 0 || !prunes ? WeightForm::linear
                                              : WeightForm::unchanged;
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
  set_pruning(options, all);
  out.least_elements = options.least;
  for (const std::string& layer : options.layers) {
    const size_t equal = layer.rfind('=');
    if (equal == std::string::npos)
      throw UsageError(fmt::format("--layer: expected WEIGHTS=FORM such as type:conv=linear8, got '{}'", layer));
    out.exceptions.emplace_back(layer.substr(0, equal), form_of(layer.substr(equal + 1), all));
  }
  return out;
}

Json json_of(const CompressedWeight& w) {
  Json out{{"name", w.name}, {"operation", w.operation},      {"shape", w.shape},
           {"form", w.form}, {"bytesBefore", w.bytes_before}, {"bytesAfter", w.bytes_after}};
  out["signalToNoise"] = std::isfinite(w.signal_to_noise) ? Json(w.signal_to_noise) : Json(nullptr);
  out["largestError"] = w.largest_error;
  if (!w.skipped.empty()) out["skipped"] = w.skipped;
  return out;
}

int compress(const Options& options) {
  CompressionOptions settings = compression(options);
  const ModelSource source = ModelSource::open(options.model);
  std::unique_ptr<io::Progress> progress;
  settings.progress = [&](size_t, size_t total) {
    if (!progress) progress = std::make_unique<io::Progress>("compressing", total);
    progress->advance();
  };
  const auto [model, weights] = compress_weights(source, settings);
  progress.reset();
  model.save(options.out);
  size_t before = 0, after = 0;
  for (const CompressedWeight& w : weights) {
    before += w.bytes_before;
    after += w.bytes_after;
  }
  if (options.json) {
    Json list = Json::array();
    for (const CompressedWeight& w : weights) list.push_back(json_of(w));
    print(rendered(Json{{"written", options.out}, {"bytesBefore", before}, {"bytesAfter", after}, {"weights", list}}));
    return kFine;
  }
  io::Table table({{"weight", io::Shrink::middle},
                   {"operation"},
                   {"shape", io::Align::left},
                   {"form", io::Align::left},
                   {"before", io::Align::right},
                   {"after", io::Align::right},
                   {"SNR", io::Align::right}});
  std::string notes;
  for (const CompressedWeight& w : weights) {
    if (!w.skipped.empty()) notes += fmt::format("{}: unchanged, because {}\n", w.name, w.skipped);
    if (w.form.empty()) continue;
    table.add_row({w.name, w.operation, format_shape(w.shape), w.form,
                   format_bytes(static_cast<double>(w.bytes_before)), format_bytes(static_cast<double>(w.bytes_after)),
                   std::isfinite(w.signal_to_noise) ? fmt::format("{:.1f} dB", w.signal_to_noise) : "exact"});
  }
  print(table_text(table));
  print(notes);
  const double share = before == 0 ? 1 : static_cast<double>(after) / static_cast<double>(before);
  print(fmt::format("\nwrote {}: weights of {} in {} ({})\n", options.out, format_bytes(static_cast<double>(before)),
                    format_bytes(static_cast<double>(after)), format_percent(share)));
  return kFine;
}

}  // namespace

Command add_compress(Arguments parent) {
  auto options = std::make_shared<Options>();
  Arguments app = parent.add_subcommand("compress", "Make the weights of an ML program smaller");
  app.add_option("MODEL", options->model, "An .mlpackage").required().option_text(" ");
  app.add_option("-o,--out", options->out, "The .mlpackage to write").required().option_text("MODEL");
  app.add_option("--linear", options->linear, "Integers of 8 (default) or 4 bits with scales")
      .check(one_of({"4", "8"}))
      .option_text("BITS");
  app.add_option("--palette", options->palette, "Indices of so many bits into a table of values")
      .check(one_of({"1", "2", "3", "4", "6", "8"}))
      .option_text("BITS");
  app.add_option("--per", options->per,
                 "What shares a scale or a table: tensor, channel, block:N input channels (linear),\n"
                 "group:N output channels (palettes); default: channel for --linear, tensor for --palette")
      .option_text("WHAT");
  app.add_flag("--asymmetric", options->asymmetric, "Linear: the least and the greatest value use all numbers");
  app.add_flag("--unsigned", options->is_unsigned, "Linear: numbers from 0 on");
  app.add_option("--mode", options->mode, "Palettes: kmeans (default), uniform or unique")
      .check(one_of({"kmeans", "uniform", "unique"}))
      .option_text("HOW");
  app.add_option("--vector", options->vector, "Palettes: output channels that one index covers (default 1)")
      .check(whole_number(1, 64))
      .option_text("N");
  app.add_flag("--scales", options->scales, "Palettes: normalize by the largest value across the output channels");
  app.add_option("--prune", options->prune, "Set this fraction of the smallest values to zero, or N of M neighbors")
      .option_text("FRACTION|N:M");
  app.add_option("--prune-block", options->prune_block, "With a fraction: so many output channels become zero together")
      .check(whole_number(1, 1 << 20))
      .option_text("N");
  app.add_option("--threshold", options->threshold, "Set values up to this size to zero")
      .check(number(0, 1e30))
      .option_text("SIZE");
  app.add_option("--layer", options->layers,
                 "Another form for some weights: a name (\"conv_*\") or type:OPERATION, and none, linear8,\n"
                 "palette4, ...; the last one that matches counts")
      .allow_extra_args(false)
      .option_text("WEIGHTS=FORM");
  app.add_option("--least", options->least, "Weights of up to so many elements stay as they are (default 2048)")
      .check(whole_number(0, INT64_MAX))
      .option_text("N");
  app.add_flag("--json", options->json, "Answer in JSON");
  app.footer("Example: moka compress Net.mlpackage --palette 4 -o Small.mlpackage");
  return {app, "moka compress Net.mlpackage --palette 4 -o Small.mlpackage", [options] { return compress(*options); }};
}

}  // namespace moka::cli
