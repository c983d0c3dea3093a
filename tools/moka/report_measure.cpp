// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <functional>
#include <iterator>
#include <numeric>
#include <optional>

#include "child.h"
#include "clock.h"
#include "io/io_error.h"
#include "io/table.h"
#include "model_facts.h"
#include "moka/compiler.h"
#include "moka/rates.h"
#include "print.h"
#include "report.h"
#include "temporary_folder.h"
#include "text.h"
#include "usage_error.h"
#include "work.h"

namespace moka::cli {
namespace {

constexpr size_t kMostPlotted = 2000, kLoads = 3;

Json statistics(std::vector<double> samples) {
  Json json{{"count", samples.size()}};
  // Samples stay in the order of time, so that a comparison sees drift. A long list keeps only every n-th sample.
  const size_t step = (samples.size() + kMostPlotted - 1) / kMostPlotted;
  Json kept = Json::array();
  for (size_t i = 0; i < samples.size(); i += std::max<size_t>(1, step)) kept.push_back(samples[i]);
  json["mean"] = std::accumulate(samples.begin(), samples.end(), 0.0) / static_cast<double>(samples.size());
  std::sort(samples.begin(), samples.end());
  json["median"] = percentile(samples, 0.5);
  json["p90"] = percentile(samples, 0.9);
  json["p99"] = percentile(samples, 0.99);
  json["minimum"] = samples.front();
  json["maximum"] = samples.back();
  json["samples"] = std::move(kept);
  return json;
}

/// "x=1x3x8" for an array input.
void reshape(Features& inputs, const FunctionDescription& function, const std::string& text, uint64_t seed) {
  const size_t at = text.find('=');
  const std::string name = text.substr(0, at);
  const auto f =
      std::find_if(function.inputs.begin(), function.inputs.end(), [&](const auto& x) { return x.name == name; });
  if (at == std::string::npos || f == function.inputs.end() || f->type != FeatureType::multi_array)
    throw UsageError(fmt::format("--shape {}: expected INPUT=1x3x224x224 with an array input of the model", text));
  FunctionDescription one = function;
  one.inputs = {*f};
  auto& shape = one.inputs[0].array.shape;
  shape.clear();
  for (size_t from = at + 1; from <= text.size();) {
    const size_t end = std::min(text.find('x', from), text.size());
    const auto size = parse_integer(std::string_view(text).substr(from, end - from));
    if (!size || *size < 1) throw UsageError(fmt::format("--shape {}: expected sizes such as 1x3x224x224", text));
    shape.push_back(*size);
    from = end + 1;
  }
  inputs[name] = random_inputs(one, seed).at(name);
}

/// The machine's peak rates with as many threads as the setting has.
Json machine_rates(const ReportSetting& setting) {
  const std::string& device = setting.load.device;
  MachineRates rates = read_rates(setting.load.rates, setting.load.threads, device);
  const bool is_known = std::any_of(rates.units.begin(), rates.units.end(), [](const auto& u) { return u.fp32 > 0; });
  if (!is_known) {
    note("report", "measuring the speed of this machine takes a second or two for each unit; 'moka rates' keeps it");
    rates = measure_rates("off", setting.load.threads, device);
  }
  Json units = Json::array();
  for (const UnitRates& u : rates.units)
    units.push_back({{"device", u.device},
                     {"unit", u.unit},
                     {"description", u.description},
                     {"fp32", u.fp32},
                     {"fp16", u.fp16},
                     {"bytesPerSecond", u.bytes},
                     {"measured", u.date}});
  return {{"units", std::move(units)}, {"from", is_known && !rates.file.empty() ? rates.file : "for this report"}};
}

void add_operations(Json& json, const ComputePlan& plan, const Model& model) {
  const auto work = work_of(plan, model);
  double sum = 0;
  const auto is_parent = [&](size_t i) {
    return i + 1 < plan.operations.size() && plan.operations[i + 1].depth > plan.operations[i].depth;
  };
  for (size_t i = 0; i < plan.operations.size(); i++)
    if (!is_parent(i)) sum += std::max(0.0, plan.operations[i].measured_seconds);
  Json operations = Json::array();
  for (size_t i = 0; i < plan.operations.size(); i++) {
    const PlannedOperation& p = plan.operations[i];
    Json o = to_json(p);
    const double seconds = std::max(0.0, p.measured_seconds);
    if (!is_parent(i) && sum > 0) o["share"] = seconds / sum;
    if (is_parent(i)) o["contains"] = true;
    if (work[i].bytes > 0) {
      o["arithmetic"] = work[i].arithmetic;
      o["bytesMoved"] = work[i].bytes;
      for (const Json& u : json["machine"]["units"]) {
        if (u["device"] != p.device) continue;
        const Roof roof = roof_of(work[i], std::max(u["fp32"].get<double>(), u["fp16"].get<double>()),
                                  u["bytesPerSecond"].get<double>());
        if (roof.seconds > 0 && seconds > 0 && u["bytesPerSecond"].get<double>() > 0)
          o["roof"] = {{"fraction", roof.seconds / seconds}, {"bound", roof.is_arithmetic ? "arithmetic" : "memory"}};
      }
    }
    operations.push_back(std::move(o));
  }
  json["plan"] = {
      {"predictionSeconds", plan.measured_seconds},      {"operationsSeconds", sum}, {"predictions", plan.predictions},
      {"operationsInSource", plan.operations_in_source}, {"folded", plan.folded},    {"complete", plan.complete}};
  json["operations"] = std::move(operations);
  json["remarks"] = Json::array();
  for (const PassRemark& r : plan.remarks) json["remarks"].push_back({{"pass", r.pass}, {"text", r.text}});
}

}  // namespace

Json measured(const ReportSetting& setting, const std::filesystem::path& folder) {
  Json json{{"name", setting.name},
            {"options",
             {{"computeUnits", setting.load.compute_units},
              {"threads", setting.load.threads},
              {"precision", setting.load.precision},
              {"device", setting.load.device},
              {"function", setting.load.function},
              {"batch", setting.batch},
              {"shapes", setting.shapes}}}};
  io::Progress progress(setting.name, 0);
  std::vector<double> loads;
  const ModelConfiguration c = configuration(setting.load);
  auto start = Clock::now();
  std::optional<Model> loaded = load(setting.load, c);
  loads.push_back(seconds_since(start));
  const uint64_t after_load = peak_memory();
  const LoadTimes times = loaded->load_times();
  for (size_t i = 1; i < kLoads && loads.front() < 10; i++) {
    loaded.reset();  // the next load would share its weights
    start = Clock::now();
    loaded.emplace(load(setting.load, c));
    loads.push_back(seconds_since(start));
    progress.advance();
  }
  const Model& model = *loaded;
  Features inputs = setting.input.inputs.empty() ? model.random_inputs(setting.input.seed)
                                                 : read_inputs(model, setting.input).rows[0];
  for (const std::string& shape : setting.shapes) reshape(inputs, model.function(), shape, setting.input.seed);
  std::optional<State> state;
  PredictionOptions options;
  if (!model.function().states.empty()) options.state = &state.emplace(model.new_state());
  Features outputs;
  start = Clock::now();
  model.predict(inputs, outputs, options);
  json["first"] = seconds_since(start);

  const std::vector<Features> batch(static_cast<size_t>(setting.batch), inputs);
  std::vector<double> steady;
  const auto begin = Clock::now();
  while (steady.size() < 10 || (seconds_since(begin) < setting.seconds && steady.size() < 1'000'000)) {
    start = Clock::now();
    if (setting.batch > 1)
      (void)model.predict_batch(batch, options);
    else
      model.predict(inputs, outputs, options);
    steady.push_back(seconds_since(start));
    progress.advance();
    if (seconds_since(begin) > 10 * setting.seconds + 10) break;
  }
  const double median = [&] {
    std::vector<double> sorted = steady;
    std::sort(sorted.begin(), sorted.end());
    return percentile(sorted, 0.5);
  }();
  json["steady"] = statistics(std::move(steady));
  const uint64_t peak = peak_memory();
  json["load"] = statistics(std::move(loads));
  json["load"]["parts"] = {{"open", times.open},
                           {"import", times.import},
                           {"passes", times.passes},
                           {"plan", times.plan},
                           {"pack", times.pack}};
  json["machine"] = setting.machine.is_null() ? machine_rates(setting) : setting.machine;
  const double single = median / static_cast<double>(setting.batch);
  const int predictions = static_cast<int>(std::clamp(setting.seconds / 2 / std::max(single, 1e-6), 3.0, 101.0)) | 1;
  const ComputePlan plan = model.compute_plan(inputs, predictions);
  uint64_t weights = 0;
  for (const auto& w : model.structure().weights) weights += w.bytes;
  json["memory"] = {{"weightBytes", weights},
                    {"packedBytes", plan.packed_bytes},
                    {"arenaBytes", plan.arena_bytes},
                    {"unsharedArenaBytes", plan.unshared_bytes},
                    {"peakBytes", peak},
                    {"peakAfterLoadBytes", after_load}};
  add_operations(json, plan, model);
  json["plan"]["coverage"] = coverage(model, inputs, options, predictions, folder);
  return json;
}

namespace {

using Work = std::function<Json(const std::filesystem::path& folder)>;

/// Runs `work` in a child process and returns its result. An exception or a signal in the child becomes {"error"}.
Json run_apart(const Work& work, const std::filesystem::path& folder) {
  const SignalsForChild signals({SIGINT, SIGTERM, SIGHUP});
  int ends[2];
  if (pipe(ends) != 0) throw io::IoError(fmt::format("a pipe cannot be made: {}", std::strerror(errno)));
  const pid_t child = fork_bound("a process that measures");
  if (child == 0) {
    signals.restore();
    close(ends[0]);
    Json json;
    try {
      json = work(folder);
    } catch (const UsageError& e) {
      json = {{"error", e.what()}, {"wrongUse", true}};
    } catch (const Exception& e) {
      json = {{"error", e.what()}, {"wrongUse", e.kind() == ErrorKind::invalid_argument}};
    } catch (const std::exception& e) {
      json = {{"error", e.what()}};
    }
    const std::string text = json.dump(-1, ' ', false, Json::error_handler_t::replace);
    for (size_t done = 0; done < text.size();) {
      const ssize_t n = write(ends[1], text.data() + done, text.size() - done);
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) break;
      done += static_cast<size_t>(n);
    }
    flush_output();
    _exit(0);
  }
  signals.set_child(child);
  close(ends[1]);
  std::string text;
  char block[65536];
  for (;;) {
    const ssize_t n = read(ends[0], block, sizeof block);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    text.append(block, static_cast<size_t>(n));
  }
  close(ends[0]);
  const int status = wait_for(child);
  if (WIFSIGNALED(status))
    return {{"error", fmt::format("the process that measured was ended by signal {} ({})", WTERMSIG(status),
                                  strsignal(WTERMSIG(status)))}};
  return Json::parse(text);
}

/// The same with a temporary folder for `work`. A signal that should end the program does so when the folder is gone.
Json apart(const Work& work) {
  Json json;
  {
    const TemporaryFolder folder("report");
    json = run_apart(work, folder.path());
  }
  if (const int signal = SignalsForChild::caught(); signal != 0) raise(signal);
  return json;
}

}  // namespace

Json measured_apart(const ReportSetting& setting) {
  Json json = apart([&](const auto& folder) { return measured(setting, folder); });
  if (!json.contains("name")) json["name"] = setting.name;
  return json;
}

Json machine_apart(const ReportSetting& setting) {
  return apart([&](const auto&) { return machine_rates(setting); });
}

Json compiled_apart(const std::string& path) {
  return apart([&](const auto& folder) -> Json {
    const auto start = Clock::now();
    try {
      compile_model(path, (folder / "report.mlmodelc").string());
    } catch (const Exception& e) {
      return {{"error", e.what()}};
    }
    return {{"seconds", seconds_since(start)}};
  });
}

}  // namespace moka::cli
