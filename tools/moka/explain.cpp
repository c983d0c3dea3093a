// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <memory>
#include <optional>

#include "arguments.h"
#include "check/ranges.h"
#include "check/recordings.h"
#include "clock.h"
#include "command.h"
#include "explain_units.h"
#include "io/table.h"
#include "json.h"
#include "kernel_times.h"
#include "options.h"
#include "print.h"
#include "text.h"

namespace moka::cli {
namespace {

constexpr size_t kShown = 20;

using io::Align;
using io::Shrink;

struct ExplainOptions {
  LoadOptions load;
  InputOptions input;
  bool measure = false, all = false, json = false;
  std::vector<std::string> ranges;
  std::string stage;      ///< print this stage of the plan; empty: the report
  std::string recording;  ///< a device's, whose placement is shown beside the plan
  std::string unit;       ///< show only this unit's refusals; empty: all
  int predictions = 0;    ///< number of measured predictions; 0: as many as take about half a second
};

/// Costs of a plan: measured if possible, otherwise estimated. Control flow contains the operations inside it, so its
/// own cost is left out of sums when these are listed.
class Costs {
 public:
  Costs(const ComputePlan& plan, bool measured) : plan_(plan), measured_(measured) {
    for (size_t i = 0; i < plan.operations.size(); ++i)
      if (!is_parent(i)) total_ += of(i);
  }
  double of(size_t i) const {
    const PlannedOperation& operation = plan_.operations[i];
    return measured_ ? std::max(0.0, operation.measured_seconds) : operation.estimated_seconds;
  }
  bool is_parent(size_t i) const {
    return i + 1 < plan_.operations.size() && plan_.operations[i + 1].depth > plan_.operations[i].depth;
  }
  double share(size_t i) const { return total_ > 0 ? of(i) / total_ : 0; }
  double total() const { return total_; }

 private:
  const ComputePlan& plan_;
  bool measured_;
  double total_ = 0;
};

/// The operation and the operations that it also computes.
std::string named(const PlannedOperation& operation) {
  if (operation.fused.empty()) return operation.name;
  if (operation.fused.size() == 1) return operation.name + " +" + operation.fused[0];
  return fmt::format("{} +{} fused", operation.name, operation.fused.size());
}

std::string operations_text(const ComputePlan& plan, const Costs& costs, const ExplainOptions& options) {
  std::vector<size_t> shown;
  for (size_t i = 0; i < plan.operations.size(); ++i) shown.push_back(i);
  const bool cut = !options.all && shown.size() > kShown;
  if (cut) {
    std::erase_if(shown, [&](size_t i) { return costs.is_parent(i); });
    std::stable_sort(shown.begin(), shown.end(), [&](size_t a, size_t b) { return costs.of(a) > costs.of(b); });
    shown.resize(std::min(kShown, shown.size()));
  }
  std::vector<io::Table::Column> columns{
      {"#", Align::right},      {"operation", Shrink::middle},
      {"type", Shrink::middle}, {options.measure ? "measured" : "estimated", Align::right},
      {"share", Align::right},  {"kernel", Shrink::end},
      {"device", Shrink::drop}, {"result", Shrink::drop},
      {"", Shrink::drop}};
  if (options.all) columns.back() = {"refused by", Shrink::wrap};
  io::Table table(std::move(columns));
  for (size_t i : shown) {
    const PlannedOperation& operation = plan.operations[i];
    const size_t indent = cut ? 0 : 2 * static_cast<size_t>(std::clamp(operation.depth, 0, 16));
    std::string kernel = operation.kernel;
    if (!operation.note.empty()) kernel = kernel.empty() ? operation.note : kernel + " (" + operation.note + ")";
    std::string result;
    for (const std::string& type : operation.outputs) result += (result.empty() ? "" : ", ") + short_type(type);
    table.add_row({std::to_string(i + 1), std::string(indent, ' ') + named(operation), operation.type,
                   format_seconds(costs.of(i)) + (operation.runs > 1 ? fmt::format(" / {} runs", operation.runs) : ""),
                   format_percent(costs.share(i)), kernel, operation.device, result,
                   options.all ? fmt::format("{}", fmt::join(operation.refusals, "; ")) : bar(costs.share(i), 16)});
  }
  std::string out = "\n" + table_text(table);
  if (cut)
    out += dim(fmt::format("the {} most expensive of {}; --all shows every one in order", shown.size(),
                           plural(static_cast<int64_t>(plan.operations.size()), "operation"))) +
           "\n";
  return out;
}

using Key = std::function<std::string(const PlannedOperation&)>;
struct Group {
  std::string name;
  int64_t operations = 0;
  double seconds = 0;
};

std::vector<Group> grouped(const ComputePlan& plan, const Costs& costs, const Key& key) {
  std::map<std::string, Group> groups;
  for (size_t i = 0; i < plan.operations.size(); ++i) {
    Group& group = groups[key(plan.operations[i])];
    ++group.operations;
    if (!costs.is_parent(i)) group.seconds += costs.of(i);
  }
  std::vector<Group> out;
  for (auto& [name, group] : groups) out.push_back({name, group.operations, group.seconds});
  std::stable_sort(out.begin(), out.end(), [](const auto& a, const auto& b) { return a.seconds > b.seconds; });
  return out;
}

std::string groups_text(std::string_view title, const std::vector<Group>& groups, double total, size_t most) {
  io::Table table({{std::string(title), Shrink::middle},
                   {"operations", Align::right},
                   {"time", Align::right},
                   {"share", Align::right},
                   {"", Shrink::drop}});
  for (size_t i = 0; i < std::min(most, groups.size()); ++i) {
    const double share = total > 0 ? groups[i].seconds / total : 0;
    table.add_row({groups[i].name, format_count(groups[i].operations), format_seconds(groups[i].seconds),
                   format_percent(share), bar(share, 30)});
  }
  std::string out = "\n" + table_text(table);
  if (groups.size() > most) out += dim(fmt::format("and {} more; --all shows them", groups.size() - most)) + "\n";
  return out;
}

struct Refusal {
  std::string text;
  std::vector<std::string> operations;
};

/// One entry for each "device: reason", sorted by number of operations.
std::vector<Refusal> refusals(const ComputePlan& plan) {
  std::map<std::string, std::vector<std::string>> reasons;
  for (const auto& operation : plan.operations)
    for (const std::string& reason : operation.refusals) reasons[reason].push_back(operation.name);
  std::vector<Refusal> out;
  for (auto& [text, names] : reasons) out.push_back({text, std::move(names)});
  std::stable_sort(out.begin(), out.end(),
                   [](const auto& a, const auto& b) { return a.operations.size() > b.operations.size(); });
  return out;
}

std::string refusals_text(const ComputePlan& plan, bool all) {
  const auto list = refusals(plan);
  if (list.empty()) return {};
  const size_t most = all ? list.size() : 10;
  io::Table table({{"refused", Shrink::wrap}, {"operations", Align::right}, {"for example", Shrink::middle}});
  for (size_t i = 0; i < std::min(most, list.size()); ++i)
    table.add_row({list[i].text, format_count(static_cast<int64_t>(list[i].operations.size())), list[i].operations[0]});
  std::string out = "\n" + table_text(table);
  if (list.size() > most) out += dim(fmt::format("and {} more reasons; --all shows them", list.size() - most)) + "\n";
  return out;
}

std::string remarks_text(const ComputePlan& plan, bool all) {
  std::map<std::string, std::vector<std::string>> passes;
  for (const PassRemark& remark : plan.remarks) passes[remark.pass].push_back(remark.text);
  if (passes.empty()) return {};
  std::string out = "\n" + bold("what the passes did") + "\n";
  const size_t most = all ? SIZE_MAX : 3;
  for (const auto& [pass, texts] : passes) {
    out += fmt::format("  {}  {}\n", pass, dim(plural(static_cast<int64_t>(texts.size()), "time")));
    for (size_t i = 0; i < std::min(most, texts.size()); ++i) out += paragraph(texts[i], 4);
    if (texts.size() > most) out += dim(fmt::format("    and {} more", texts.size() - most)) + "\n";
  }
  return out;
}

std::string memory_text(const ComputePlan& plan) {
  const auto bytes = [](size_t n) { return format_bytes(static_cast<double>(n)); };
  std::string arena = bytes(plan.arena_bytes);
  if (plan.unshared_bytes > plan.arena_bytes)
    arena += fmt::format(
        " ({} without sharing, {} saved)", bytes(plan.unshared_bytes),
        format_percent(1 - static_cast<double>(plan.arena_bytes) / static_cast<double>(plan.unshared_bytes)));
  const MemoryUse& m = plan.memory;
  return fact("values", arena) + fact("packed", packed_text(plan.packed_bytes, plan.cached_bytes)) +
         fact("memory",
              fmt::format("{}: {} mapped weights, {} packed, {} other constants, {} arenas, {} heap", bytes(m.total()),
                          bytes(m.mapped), bytes(m.packed), bytes(m.constants), bytes(m.arenas), bytes(m.heap)));
}

std::string human(const ComputePlan& plan, const ExplainOptions& options) {
  const Costs costs(plan, options.measure);
  std::string out = fact("operations", fmt::format("{} planned, {} in the model, {} folded into constants",
                                                   format_count(static_cast<int64_t>(plan.operations.size())),
                                                   format_count(static_cast<int64_t>(plan.operations_in_source)),
                                                   format_count(static_cast<int64_t>(plan.folded))));
  out += memory_text(plan);
  out += fact("estimated", format_seconds(Costs(plan, false).total()));
  if (options.measure)
    out += fact("measured", fmt::format("{} a prediction; {} the sum of its operations, timed apart (medians of {})",
                                        format_seconds(std::max(0.0, plan.measured_seconds)),
                                        format_seconds(costs.total()), plural(plan.predictions, "prediction")));
  if (!plan.complete)
    out +=
        fact("incomplete", "shapes that depend on values are known only after a prediction: --measure shows the rest");
  out += groups_text("device", grouped(plan, costs, [](const auto& o) { return o.device; }), costs.total(), SIZE_MAX);
  out += groups_text("type", grouped(plan, costs, [](const auto& o) { return o.type; }), costs.total(),
                     options.all ? SIZE_MAX : 10);
  out += operations_text(plan, costs, options);
  out += pins_text(plan) + units_text(plan, options.all);
  out += kernel_times_text(plan, options.all);
  out += refusals_text(plan, options.all) + remarks_text(plan, options.all);
  return out;
}

Json groups_json(const std::vector<Group>& groups) {
  Json json = Json::array();
  for (const auto& group : groups)
    json.push_back({{"name", group.name}, {"operations", group.operations}, {"seconds", group.seconds}});
  return json;
}

Json machine(const ComputePlan& plan, const ExplainOptions& options) {
  const Costs costs(plan, options.measure);
  Json json{{"model", options.load.path},
            {"operationsInSource", plan.operations_in_source},
            {"folded", plan.folded},
            {"memory",
             {{"arenaBytes", plan.arena_bytes},
              {"unsharedBytes", plan.unshared_bytes},
              {"packedBytes", plan.packed_bytes},
              {"cachedBytes", plan.cached_bytes},
              {"mappedBytes", plan.memory.mapped},
              {"constantBytes", plan.memory.constants},
              {"sessionBytes", plan.memory.arenas},
              {"heapBytes", plan.memory.heap},
              {"totalBytes", plan.memory.total()}}},
            {"estimatedSeconds", Costs(plan, false).total()}};
  json["complete"] = plan.complete;
  if (options.measure) {
    json["measuredSeconds"] = plan.measured_seconds;
    json["measuredOperationsSeconds"] = costs.total();
    json["predictions"] = plan.predictions;
  }
  json["devices"] = groups_json(grouped(plan, costs, [](const auto& o) { return o.device; }));
  json["types"] = groups_json(grouped(plan, costs, [](const auto& o) { return o.type; }));
  add_units(plan, json);
  if (!options.unit.empty()) add_off_unit(plan, options.unit, json);
  json["operations"] = Json::array();
  for (const auto& operation : plan.operations) json["operations"].push_back(to_json(operation));
  json["remarks"] = Json::array();
  for (const auto& remark : plan.remarks) json["remarks"].push_back({{"pass", remark.pass}, {"text", remark.text}});
  return json;
}

/// How many predictions to measure: an odd number, so that the median is one of them.
int predictions_of(const Model& model, const Features& inputs, const ExplainOptions& options) {
  if (options.predictions > 0) return options.predictions;
  constexpr double kSeconds = 0.5;
  std::optional<State> state;
  PredictionOptions prediction;
  if (!model.function().states.empty()) prediction.state = &state.emplace(model.new_state());
  model.predict(inputs, prediction);  // includes work that happens only once
  const auto start = Clock::now();
  model.predict(inputs, prediction);
  const double seconds = seconds_since(start);
  return static_cast<int>(std::clamp(kSeconds / 2 / std::max(seconds, 1e-6), 3.0, 51.0)) | 1;
}

constexpr std::array<std::pair<const char*, PlanStage>, 4> kStages{{{"resolve", PlanStage::resolve},
                                                                    {"claim", PlanStage::claim},
                                                                    {"arrange", PlanStage::arrange},
                                                                    {"memory", PlanStage::memory}}};

int explain_stage(const Model& model, const Features& inputs, const ExplainOptions& options) {
  const auto stage =
      std::find_if(kStages.begin(), kStages.end(), [&](const auto& s) { return s.first == options.stage; });
  const std::string text = model.plan_text(stage->second, inputs);
  print(options.json ? rendered(Json{{"model", options.load.path}, {"stage", options.stage}, {"text", text}}) : text);
  return 0;
}

struct RecordedPlacement {
  DeviceRecording recording;
  const RecordedSetting* setting = nullptr;  ///< of `recording`
  Placement placement;
};

RecordedPlacement recorded_placement(const Model& model, const ComputePlan& plan, ComputeUnits units,
                                     const ExplainOptions& options) {
  RecordedPlacement out{read_device_recording(options.recording), nullptr, {}};
  out.setting = &recorded_plan(out.recording, options.recording, units, ComputeUnits::all);
  out.placement =
      compare_placement(plan, model.structure(), *out.setting, options.unit.empty() ? "neuralEngine" : options.unit);
  return out;
}

int explain(const ExplainOptions& options) {
  if (!options.stage.empty() && options.measure) throw UsageError("--stage plans only; it does not go with --measure");
  ModelConfiguration c = configuration(options.load);
  if (options.unit == "gpu") c.compute_units = ComputeUnits::cpu_and_gpu;
  if (options.unit == "neuralEngine") {
    c.compute_units = ComputeUnits::cpu_and_neural_engine;
    // Core ML places the operations of the model, casts and reshapes among them, and not those that Moka's passes make.
    c.optimize = false;
    c.precision = Precision::exact;
    c.reuse_buffers = false;  // a reshape is an operation, not a view
  }
  const Model model = load(options.load, c);
  Features inputs;
  if (!options.input.inputs.empty()) {
    const Inputs read = read_inputs(model, options.input);
    for (const std::string& text : read.notes) note("explain", text);
    inputs = read.rows[0];
  } else if (options.measure) {
    inputs = model.random_inputs(options.input.seed);
  }
  if (!options.stage.empty()) return explain_stage(model, inputs, options);
  std::map<std::string, std::pair<double, double>> ranges;
  for (const std::string& text : options.ranges) {
    const NumberRange range = parse_range(text);
    ranges.insert({range.name, {range.low, range.high}});
  }
  const int predictions = options.measure ? predictions_of(model, inputs, options) : 0;
  const ComputePlan plan = model.compute_plan(inputs, predictions, {}, ranges);
  std::optional<RecordedPlacement> recorded;
  if (!options.recording.empty()) recorded = recorded_placement(model, plan, c.compute_units, options);
  if (options.json) {
    Json json = machine(plan, options);
    if (recorded) add_placement(recorded->placement, recorded->recording, *recorded->setting, json);
    print(rendered(json));
    return 0;
  }
  std::string text = options.unit.empty() ? human(plan, options) : off_unit_text(plan, options.unit);
  if (recorded)
    text += options.unit.empty()
                ? placement_text(recorded->placement, recorded->recording, *recorded->setting, options.all)
                : preview_text(recorded->placement, recorded->recording, *recorded->setting, options.unit);
  print(text);
  return 0;
}

}  // namespace

Command add_explain(Arguments parent) {
  auto options = std::make_shared<ExplainOptions>();
  Arguments app =
      parent.add_subcommand("explain", "Show where every operation runs and why, its cost, and what was optimized");
  add_load_options(app, options->load);
  const Option measure =
      app.add_flag("--measure", options->measure, "Predict several times; times are the medians of these predictions");
  app.add_option("--predictions", options->predictions, "How many --measure takes (default: half a second's, 3 to 51)")
      .check(whole_number(1, 1'000'000))
      .needs(measure)
      .option_text("N");
  app.add_option("--unit", options->unit, "Only what stays off this unit and why: cpu, gpu or neuralEngine")
      .check(one_of({"cpu", "gpu", "neuralEngine"}))
      .option_text("UNIT");
  app.add_option("--recording", options->recording,
                 "A device's recording (moka record): where Core ML places operations, and with --unit where the\n"
                 "preview of that unit is wrong")
      .option_text("FILE.json");
  app.add_option("--stage", options->stage,
                 "One stage of the plan: resolve (types, constants), claim (what each device offers, and the choice), "
                 "arrange (steps) or memory")
      .check(one_of({"resolve", "claim", "arrange", "memory"}))
      .option_text("STAGE");
  app.add_option("--range", options->ranges, "The numbers of an array input: which ones a narrower integer type lacks")
      .allow_extra_args(false)
      .option_text("NAME=LOW:HIGH");
  app.add_flag("--all", options->all, "Every operation, reason and remark, in order");
  add_input_options(app, options->input);
  app.add_flag("--json", options->json, "Answer in JSON");
  app.footer(
      "Without --input the plan is for the model's default shapes. Without --measure nothing is predicted.\n"
      "Example: moka explain Model.mlpackage --measure");
  return {app, "moka explain Model.mlpackage --measure", [options] { return explain(*options); }};
}

}  // namespace moka::cli
