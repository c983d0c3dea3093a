// SPDX-License-Identifier: Apache-2.0
#include "moka/compress.h"

#include <fmt/format.h>

#include <cmath>
#include <memory>

#include "command.h"
#include "compress_options.h"
#include "io/table.h"
#include "json.h"
#include "print.h"
#include "text.h"
#include "usage_error.h"

namespace moka::cli {
namespace {

constexpr const char* kNotFinite = "not finite";

void add_activations(const CompressedModel& made, Json& to) {
  if (!made.signal_to_noise) return;
  Json list = Json::array();
  for (const CompressedActivation& a : made.activations)
    list.push_back(Json{{"name", a.name},
                        {"least", a.least},
                        {"greatest", a.greatest},
                        {"scale", a.scale},
                        {"zeroPoint", a.zero_point}});
  to["activations"] = list;
  to["signalToNoise"] = decibels_json(*made.signal_to_noise);
}

std::string activations_text(const CompressedModel& made) {
  if (made.activations.empty()) return "";
  io::Table table({{"value", io::Shrink::middle},
                   {"least", io::Align::right},
                   {"greatest", io::Align::right},
                   {"scale", io::Align::right},
                   {"zero", io::Align::right}});
  for (const CompressedActivation& a : made.activations)
    table.add_row({a.name, fmt::format("{:.4g}", a.least), fmt::format("{:.4g}", a.greatest),
                   fmt::format("{:.4g}", a.scale), std::to_string(a.zero_point)});
  return "\n" + table_text(table);
}

int64_t elements_of(const CompressedWeight& w) {
  int64_t count = 1;
  for (int64_t size : w.shape) count *= size;
  return count;
}

/// Says why the copy equals the model, where the weights themselves do not say it.
void note_nothing_done(const CompressOptions& options, const std::vector<CompressedWeight>& weights) {
  const CompressedWeight* largest = nullptr;
  for (const CompressedWeight& w : weights) {
    if (!w.form.empty() || !w.skipped.empty()) return;
    if (largest == nullptr || elements_of(w) > elements_of(*largest)) largest = &w;
  }
  if (largest == nullptr)
    note("compress", "nothing was compressed: the model has no weights that this can be done with");
  else if (elements_of(*largest) <= options.least)
    note("compress",
         fmt::format("nothing was compressed: no weight has more than {} elements (--least), the largest, '{}', "
                     "has {}",
                     options.least, largest->name, elements_of(*largest)));
}

int compress(const CompressOptions& options, const Outputs& outputs) {
  if (options.searches()) return compress_by_search(options, outputs);
  if (!options.forms.empty() || !options.chart.empty())
    throw UsageError("--forms and --chart need a search: --target-size or --max-error");
  CompressionOptions settings = compression(options);
  const ModelSource source = ModelSource::open(options.model);
  std::unique_ptr<io::Progress> progress;
  if (settings.activations) {
    settings.activations->inputs = compression_inputs(options);
    settings.activations->progress = [&](size_t done, size_t total) {
      if (done == 0) progress = std::make_unique<io::Progress>("measuring ranges", total);
      progress->advance();
    };
  } else if (!options.input.inputs.empty()) {
    throw UsageError("--input is for --activations, --target-size and --max-error");
  }
  settings.progress = [&](size_t done, size_t total) {
    if (done == 1) progress = std::make_unique<io::Progress>("compressing", total);
    progress->advance();
  };
  const CompressedModel made = compress_weights(source, settings);
  progress.reset();
  made.model.save(options.out, outputs.overwrite());
  note_unused_layers(options, made.weights);
  if (!options.decompress && !settings.activations) note_nothing_done(options, made.weights);
  size_t before = 0, after = 0;
  for (const CompressedWeight& w : made.weights) {
    before += w.bytes_before;
    after += w.bytes_after;
  }
  if (options.json) {
    Json list = Json::array();
    for (const CompressedWeight& w : made.weights) list.push_back(to_json(w));
    Json out{{"written", options.out}, {"bytesBefore", before}, {"bytesAfter", after}, {"weights", list}};
    add_activations(made, out);
    print(rendered(out));
    return kFine;
  }
  print(weights_text(made.weights) + activations_text(made));
  const double share = before == 0 ? 1 : static_cast<double>(after) / static_cast<double>(before);
  print(fmt::format("\nwrote {}: weights of {} in {} ({})\n", options.out, format_bytes(static_cast<double>(before)),
                    format_bytes(static_cast<double>(after)), format_percent(share)));
  if (made.signal_to_noise)
    print(fmt::format("{} in integers; outputs: {} in the worst of {}\n",
                      plural(static_cast<int64_t>(made.activations.size()), "value"),
                      decibels_text(*made.signal_to_noise),
                      plural(static_cast<int64_t>(settings.activations->inputs.size()), "input")));
  return kFine;
}

}  // namespace

std::string decibels_text(double value) {
  if (value == INFINITY) return "exact";
  return std::isfinite(value) ? fmt::format("{:.1f} dB", value) : kNotFinite;
}

Json decibels_json(double value) {
  return std::isfinite(value) || value == INFINITY ? finite_or_null(value) : Json(kNotFinite);
}

Json to_json(const CompressedWeight& w) {
  Json out{{"name", w.name}, {"operation", w.operation},      {"shape", w.shape},
           {"form", w.form}, {"bytesBefore", w.bytes_before}, {"bytesAfter", w.bytes_after}};
  out["signalToNoise"] = decibels_json(w.signal_to_noise);
  out["largestError"] = w.largest_error;
  if (!w.skipped.empty()) out["skipped"] = w.skipped;
  return out;
}

std::string weights_text(const std::vector<CompressedWeight>& weights) {
  io::Table table({{"weight", io::Shrink::middle},
                   {"operation"},
                   {"shape", io::Align::left},
                   {"form", io::Align::left},
                   {"before", io::Align::right},
                   {"after", io::Align::right},
                   {"SNR", io::Align::right}});
  std::string notes;
  bool compressed = false, changed = false;
  for (const CompressedWeight& w : weights) {
    compressed = compressed || w.is_compressed_already;
    if (!w.skipped.empty()) notes += fmt::format("{}: unchanged, because {}\n", w.name, w.skipped);
    if (w.form.empty()) continue;
    changed = true;
    table.add_row({w.name, w.operation, format_shape(w.shape), w.form,
                   format_bytes(static_cast<double>(w.bytes_before)), format_bytes(static_cast<double>(w.bytes_after)),
                   decibels_text(w.signal_to_noise)});
  }
  if (compressed) notes += "--decompress expands compressed weights first\n";
  return (changed ? table_text(table) : "") + notes;
}

Command add_compress(Arguments parent) {
  auto options = std::make_shared<CompressOptions>();
  Arguments app = parent.add_subcommand("compress", "Make the weights of an ML program or a neural network smaller");
  app.add_option("MODEL", options->model, "An .mlpackage or .mlmodel").required().option_text(" ");
  const auto outputs = Outputs::of(app);
  outputs
      ->add_option("-o,--out", options->out, {kSpecificationName, kPackageName}, "The .mlpackage or .mlmodel to write")
      .required()
      .option_text("MODEL");
  add_compress_options(app, *options, *outputs);
  app.add_flag("--json", options->json, "Answer in JSON");
  app.footer("Example: moka compress Net.mlpackage --palette 4 -o Small.mlpackage");
  return {app, "moka compress Net.mlpackage --palette 4 -o Small.mlpackage",
          [options, outputs] { return compress(*options, *outputs); }, outputs};
}

}  // namespace moka::cli
