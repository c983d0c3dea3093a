// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <numeric>
#include <optional>

#include "arguments.h"
#include "bench_stream.h"
#include "clock.h"
#include "command.h"
#include "energy.h"
#include "io/table.h"
#include "json.h"
#include "model_facts.h"
#include "options.h"
#include "print.h"
#include "text.h"
#include "usage_error.h"

namespace moka::cli {
namespace {

constexpr size_t kMostSamples = 1'000'000;

struct BenchOptions {
  LoadOptions load;
  InputOptions input;
  int64_t iterations = 0;
  double seconds = 0;
  bool stream = false;
  bool json = false;
};

struct Measured {
  double load = 0, first = 0;
  std::vector<double> steady;  ///< seconds of each prediction after the first, sorted
  double mean = 0;
  uint64_t memory_loaded = 0, memory = 0;
  Energy energy;  ///< of a prediction
};

/// Writes outputs into the values of the previous prediction, which saves allocations.
Measured measure(const Model& model, const Features& inputs, const BenchOptions& options) {
  Measured result;
  result.memory_loaded = peak_memory();
  std::optional<State> state;
  if (!model.function().states.empty()) state = model.new_state();
  PredictionOptions prediction;
  if (state) prediction.state = &*state;
  Features outputs;
  auto start = Clock::now();
  model.predict(inputs, outputs, prediction);
  result.first = seconds_since(start);

  const auto most = options.iterations ? static_cast<size_t>(options.iterations) : kMostSamples;
  const double limit = options.seconds > 0 ? options.seconds : options.iterations ? 0 : 3;
  io::Progress progress("predicting", options.iterations ? most : 0);
  EnergyMeter meter;
  const auto begin = Clock::now();
  while (result.steady.size() < most && (result.steady.empty() || limit == 0 || seconds_since(begin) < limit)) {
    start = Clock::now();
    model.predict(inputs, outputs, prediction);
    result.steady.push_back(seconds_since(start));
    progress.advance();
    meter.poll();
  }
  result.energy = meter.taken();
  for (EnergyPart& part : result.energy.parts) part.joules /= static_cast<double>(result.steady.size());
  result.mean =
      std::accumulate(result.steady.begin(), result.steady.end(), 0.0) / static_cast<double>(result.steady.size());
  std::sort(result.steady.begin(), result.steady.end());
  result.memory = peak_memory();
  return result;
}

std::string load_text(const LoadTimes& times) {
  io::Table table(
      {{"load", io::Align::left}, {"time", io::Align::right}, {"share", io::Align::right}, {"", io::Shrink::drop}});
  const double named = times.open + times.import + times.passes + times.plan + times.pack;
  const auto add = [&](const char* name, double seconds) {
    const double share = times.total > 0 ? seconds / times.total : 0;
    table.add_row({name, format_seconds(seconds), format_percent(share), bar(share, 30)});
  };
  add("open file", times.open);
  add("import", times.import);
  add("passes", times.passes);
  add("plan", times.plan);
  add("prepare kernels", times.pack);
  if (times.total - named > 0.005 * times.total) add("other", times.total - named);
  table.add_rule();
  table.add_row({"all", format_seconds(times.total)});
  return table_text(table);
}

std::string human(const Measured& measured, const LoadTimes& times) {
  io::Table table({{"prediction", io::Align::left}, {"time", io::Align::right}, {"", io::Shrink::drop}});
  const double most = std::max(measured.first, measured.steady.back());
  const auto add = [&](const char* name, double seconds) {
    table.add_row({name, format_seconds(seconds), bar(seconds / most, 30)});
  };
  add("first", measured.first);
  table.add_rule();
  add("mean", measured.mean);
  add("min", measured.steady.front());
  add("p50", percentile(measured.steady, 0.5));
  add("p90", percentile(measured.steady, 0.9));
  add("p99", percentile(measured.steady, 0.99));
  add("max", measured.steady.back());
  std::string out = load_text(times) + "\n" + table_text(table) + "\n";
  out += fact("predictions",
              fmt::format("{} after the first, {} a second", format_count(static_cast<int64_t>(measured.steady.size())),
                          format_number(1 / std::max(measured.mean, 1e-12))));
  out += fact("packed", packed_text(times.packed_bytes, times.cached_bytes));
  if (measured.memory)
    out += fact("peak memory", fmt::format("{} ({} after loading)", format_bytes(static_cast<double>(measured.memory)),
                                           format_bytes(static_cast<double>(measured.memory_loaded))));
  out += fact("energy", energy_text(measured.energy));
  return out;
}

Json machine(const Measured& m, const LoadTimes& t, const BenchOptions& options) {
  return {{"model", options.load.path},
          {"load",
           {{"open", t.open},
            {"import", t.import},
            {"passes", t.passes},
            {"plan", t.plan},
            {"pack", t.pack},
            {"total", t.total},
            {"packedBytes", t.packed_bytes},
            {"cachedBytes", t.cached_bytes}}},
          {"first", m.first},
          {"predictions", m.steady.size()},
          {"steady",
           {{"mean", m.mean},
            {"min", m.steady.front()},
            {"p50", percentile(m.steady, 0.5)},
            {"p90", percentile(m.steady, 0.9)},
            {"p99", percentile(m.steady, 0.99)},
            {"max", m.steady.back()}}},
          {"energy", energy_json(m.energy)},
          {"peakMemoryBytes", m.memory},
          {"peakMemoryAfterLoadBytes", m.memory_loaded}};
}

std::string human(const StreamRates& rates) {
  io::Table table({{"stage", io::Align::left}, {"a second", io::Align::right}, {"", io::Shrink::drop}});
  const double most = std::max({rates.reading, rates.predicting, rates.stream});
  const auto add = [&](const char* name, double rate) {
    table.add_row({name, format_number(rate), bar(rate / most, 30)});
  };
  add("reading inputs alone", rates.reading);
  add("predicting alone", rates.predicting);
  table.add_rule();
  add("both as a stream", rates.stream);
  return table_text(table) + "\n" +
         fact("stream", fmt::format("{} of the slower stage's rate, over {} predictions", format_percent(rates.share()),
                                    format_count(static_cast<int64_t>(rates.predictions))));
}

Json machine(const StreamRates& r, const BenchOptions& options) {
  return {{"model", options.load.path},
          {"stream",
           {{"reading", r.reading},
            {"predicting", r.predicting},
            {"stream", r.stream},
            {"share", r.share()},
            {"predictions", r.predictions}}}};
}

int bench_stream(const BenchOptions& options) {
  if (options.input.inputs.empty())
    throw UsageError("--stream reads inputs anew for each prediction: --input is missing");
  const Model model = load(options.load, configuration(options.load));
  for (const std::string& text : read_inputs(model, options.input).notes) note("bench", text);
  const StreamRates rates = measure_stream(model, options.input, options.seconds > 0 ? options.seconds : 3);
  print(options.json ? rendered(machine(rates, options)) : human(rates));
  return 0;
}

int bench(const BenchOptions& options) {
  if (options.stream) return bench_stream(options);
  const Model model = load(options.load, configuration(options.load));
  Features inputs;
  if (options.input.inputs.empty()) {
    inputs = model.random_inputs(options.input.seed);
  } else {
    const Inputs read = read_inputs(model, options.input);
    for (const std::string& text : read.notes) note("bench", text);
    inputs = read.rows[0];
  }
  const Measured measured = measure(model, inputs, options);
  print(options.json ? rendered(machine(measured, model.load_times(), options)) : human(measured, model.load_times()));
  return 0;
}

}  // namespace

Command add_bench(Arguments parent) {
  auto options = std::make_shared<BenchOptions>();
  Arguments app = parent.add_subcommand("bench", "Time loading and predicting, and measure memory");
  add_load_options(app, options->load);
  app.add_option("-n,--iterations", options->iterations, "Predictions after the first")
      .check(whole_number(1, static_cast<int64_t>(kMostSamples)))
      .option_text("N");
  app.add_option("--seconds", options->seconds, "Predict for so long (default 3, or until --iterations)")
      .check(number(0.001, 86400))
      .option_text("S");
  add_input_options(app, options->input);
  app.add_flag(
      "--stream", options->stream,
      "Read --input again for each prediction while others run; prints the rates of both stages and of the stream");
  app.add_flag("--json", options->json, "Answer in JSON, times in seconds");
  app.footer(
      "Without --input random values of the model's default shapes are used.\n"
      "Example: moka bench Model.mlpackage --threads 1 --iterations 100");
  return {app, "moka bench Model.mlpackage --threads 1 --iterations 100", [options] { return bench(*options); }};
}

}  // namespace moka::cli
