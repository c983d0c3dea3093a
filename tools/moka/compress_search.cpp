// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <cmath>
#include <memory>

#include "compress_options.h"
#include "draw/curve.h"
#include "io/table.h"
#include "print.h"
#include "size_curve.h"
#include "text.h"
#include "usage_error.h"

namespace moka::cli {
namespace {

size_t size_of(const ModelSource& source) {
  size_t out = source.specification().serialize().size();
  for (const std::string& name : source.weight_files()) out += static_cast<size_t>(source.weight_file(name).count());
  return out;
}

Curve curve_of(const SearchedModel& found) {
  Curve out;
  for (const CompressionPoint& p : found.curve)
    out.points.push_back({static_cast<double>(p.size), p.expected, p.measured.value_or(NAN)});
  out.chosen_size = static_cast<double>(found.size_after);
  out.chosen = found.signal_to_noise;
  return out;
}

Json json_of(const SearchedModel& found, const CompressOptions& options) {
  Json out{{"written", options.out},
           {"sizeBefore", found.size_before},
           {"sizeAfter", found.size_after},
           {"signalToNoise", decibels_json(found.signal_to_noise)},
           {"bound", decibels_json(found.bound)},
           {"measuredInputs", found.measured_inputs},
           {"checkedInputs", found.checked_inputs},
           {"separateInputs", found.separate},
           {"secondsBefore", found.seconds_before},
           {"secondsAfter", found.seconds_after}};
  Json weights = Json::array(), curve = Json::array(), sensitivity = Json::array();
  for (const CompressedWeight& w : found.weights) weights.push_back(to_json(w));
  for (const CompressionPoint& p : found.curve) {
    Json point{{"size", p.size}, {"expected", decibels_json(p.expected)}};
    if (p.measured) point["measured"] = decibels_json(*p.measured);
    curve.push_back(point);
  }
  for (const WeightSensitivity& w : found.sensitivity) {
    Json trials = Json::array();
    for (const WeightTrial& t : w.trials)
      trials.push_back(Json{{"form", t.form}, {"bytes", t.bytes}, {"signalToNoise", decibels_json(t.signal_to_noise)}});
    sensitivity.push_back(Json{{"name", w.name}, {"trials", trials}});
  }
  out["weights"] = weights;
  out["curve"] = curve;
  out["sensitivity"] = sensitivity;
  return out;
}

std::string summary(const SearchedModel& found, const CompressOptions& options) {
  const double share = static_cast<double>(found.size_after) / static_cast<double>(found.size_before);
  std::string out =
      fact("size", fmt::format("{} of {} ({})", format_bytes(static_cast<double>(found.size_after)),
                               format_bytes(static_cast<double>(found.size_before)), format_percent(share)));
  const std::string inputs = plural(static_cast<int64_t>(found.checked_inputs), "input");
  out += fact("error", fmt::format("{} in the worst of {}{}", decibels_text(found.signal_to_noise), inputs,
                                   found.separate ? ", which did not measure the weights" : ""));
  out += fact("bound", fmt::format("{} for other inputs like these", decibels_text(found.bound)));
  out += fact("prediction", fmt::format("{} before, {} after", format_seconds(found.seconds_before),
                                        format_seconds(found.seconds_after)));
  return out + fact("written", options.out);
}

}  // namespace

int compress_by_search(const CompressOptions& options, const Outputs& outputs) {
  const ModelSource source = ModelSource::open(options.model);
  CompressionSearch search = compression_search(options, size_of(source));
  search.inputs = compression_inputs(options);
  std::unique_ptr<io::Progress> progress;
  search.progress = [&](std::string_view what, size_t done, size_t total) {
    if (done > 0 && total > 0 && progress) return progress->advance();
    progress = nullptr;
    progress = std::make_unique<io::Progress>(std::string(what), total);
  };
  const SearchedModel found = search_compression(source, search);
  progress.reset();
  found.model.save(options.out, outputs.overwrite());
  note_unused_layers(options, found.weights);
  if (!options.chart.empty())
    outputs.write(options.chart, FileKind::picture, encode_png(draw_plot(plot_of(curve_of(found)))));
  if (options.json) {
    print(rendered(json_of(found, options)));
    return kFine;
  }
  print(weights_text(found.weights) + "\n" + curve_text(curve_of(found)) + "\n" + summary(found, options));
  return kFine;
}

}  // namespace moka::cli
