// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <memory>

#include "command.h"
#include "io/table.h"
#include "json.h"
#include "kernel_times.h"
#include "options.h"
#include "print.h"
#include "text.h"
#include "usage_error.h"

namespace moka::cli {
namespace {

struct TuneOptions {
  LoadOptions load;
  InputOptions input;
  std::vector<std::string> shapes;
  bool again = false, json = false;
};

/// Operations of the same shape, whose kernels have the same times.
struct Tuned {
  const PlannedOperation* first = nullptr;
  int64_t operations = 0;
  double chosen = 0, by_rule = 0;  ///< seconds for one operation
};

/// Sorted by gain in descending order.
std::vector<Tuned> tuned(const ComputePlan& plan) {
  std::map<std::string, Tuned> shapes;
  for (const PlannedOperation& operation : plan.operations) {
    if (operation.shape.empty()) continue;
    Tuned& t = shapes[operation.shape];
    if (t.first == nullptr)
      t = {&operation, 0, time_of(operation, operation.kernel), time_of(operation, operation.kernel_by_rule)};
    ++t.operations;
  }
  std::vector<Tuned> out;
  for (auto& [shape, t] : shapes) out.push_back(t);
  const auto gain = [](const Tuned& t) { return (t.by_rule - t.chosen) * static_cast<double>(t.operations); };
  std::stable_sort(out.begin(), out.end(), [&](const Tuned& a, const Tuned& b) { return gain(a) > gain(b); });
  return out;
}

struct Sums {
  double chosen = 0, by_rule = 0;
  int64_t operations = 0, changed = 0, measured = 0;
};

Sums sums_of(const std::vector<Tuned>& shapes) {
  Sums s;
  for (const Tuned& t : shapes) {
    const auto n = static_cast<double>(t.operations);
    s.chosen += n * t.chosen;
    s.by_rule += n * t.by_rule;
    s.operations += t.operations;
    if (t.first->kernel != t.first->kernel_by_rule) s.changed += t.operations;
    s.measured += t.first->chosen_by == "measured";
  }
  return s;
}

/// Operations whose measurement other processes disturbed.
int64_t disturbed_in(const ComputePlan& plan) {
  return std::count_if(plan.operations.begin(), plan.operations.end(),
                       [](const PlannedOperation& o) { return o.chosen_by == "disturbed"; });
}

std::string human(const std::vector<Tuned>& shapes, int64_t disturbed, const std::string& file) {
  using io::Align, io::Shrink;
  io::Table table({{"operation", Shrink::middle},
                   {"type", Align::left},
                   {"result", Shrink::end},
                   {"times", Shrink::drop},
                   {"chosen", Shrink::middle},
                   {"takes", Align::right},
                   {"the rules'", Shrink::middle},
                   {"takes", Align::right},
                   {"gain", Align::right}});
  for (const Tuned& t : shapes) {
    const PlannedOperation& o = *t.first;
    const bool same = o.kernel == o.kernel_by_rule;
    table.add_row({o.name, o.type, o.outputs.empty() ? "" : short_type(o.outputs[0]), std::to_string(t.operations),
                   o.kernel, format_seconds(t.chosen), same ? "" : o.kernel_by_rule,
                   same ? "" : format_seconds(t.by_rule), same ? "" : format_percent(1 - t.chosen / t.by_rule)});
  }
  const Sums s = sums_of(shapes);
  std::string out = table_text(table) + "\n";
  out += fact("measured", fmt::format("{} now, {} from the cache", plural(s.measured, "shape"),
                                      static_cast<int64_t>(shapes.size()) - s.measured));
  if (disturbed > 0)
    out += fact("disturbed", fmt::format("{} could not be timed beside what else runs here: the rules decide",
                                         plural(disturbed, "operation")));
  out += fact("changed", fmt::format("{} of {}", s.changed, plural(s.operations, "operation")));
  out +=
      fact("these take", fmt::format("{} instead of {} in sum", format_seconds(s.chosen), format_seconds(s.by_rule)));
  out += fact("cache", file);
  return out;
}

Json machine(const std::vector<Tuned>& shapes, int64_t disturbed, const std::string& file, const TuneOptions& options) {
  const Sums s = sums_of(shapes);
  Json json{{"model", options.load.path},     {"file", file},
            {"measured", s.measured},         {"disturbedOperations", disturbed},
            {"changedOperations", s.changed}, {"seconds", s.chosen},
            {"secondsByRule", s.by_rule},     {"shapes", Json::array()}};
  for (const Tuned& t : shapes) {
    Json times = Json::object();
    for (const KernelTime& k : t.first->candidates) times[k.kernel] = k.seconds;
    json["shapes"].push_back({{"shape", t.first->shape},
                              {"operation", t.first->name},
                              {"operations", t.operations},
                              {"kernel", t.first->kernel},
                              {"kernelByRule", t.first->kernel_by_rule},
                              {"chosenBy", t.first->chosen_by},
                              {"seconds", std::move(times)}});
  }
  return json;
}

/// "image=1x3x512x512": random numbers of that shape.
void add_shape(const std::string& text, const FunctionDescription& function, Features& inputs) {
  const size_t at = text.find('=');
  const auto wrong = [&](std::string_view why) { return UsageError(fmt::format("--shape {}: {}", text, why)); };
  if (at == std::string::npos) throw wrong("expected NAME=SIZExSIZE...");
  const std::string name = text.substr(0, at);
  FunctionDescription one;
  for (const FeatureDescription& f : function.inputs)
    if (f.name == name) one.inputs.push_back(f);
  if (one.inputs.empty()) throw wrong("no input of the model has this name");
  if (one.inputs[0].type != FeatureType::multi_array) throw wrong("not a MultiArray");
  std::vector<int64_t> shape;
  size_t from = at + 1;
  for (size_t i = from; i <= text.size(); ++i) {
    if (i < text.size() && text[i] != 'x' && text[i] != ',') continue;
    const auto size = parse_integer(std::string_view(text).substr(from, i - from));
    if (!size || *size < 1) throw wrong("expected sizes such as 1x3x512x512");
    shape.push_back(*size);
    from = i + 1;
  }
  one.inputs[0].array.shape = shape;
  inputs[name] = random_inputs(one, 1)[name];
}

int tune(const TuneOptions& options, const Outputs& outputs) {
  outputs.clear_place_of_cache(options.load.kernels, "MOKA_KERNEL_CACHE", FileKind::kernel_times);
  ModelConfiguration c = configuration(options.load);
  const char* variable = std::getenv("MOKA_KERNEL_CACHE");
  const std::string named = variable != nullptr ? variable : "";
  if (c.kernel_cache.empty()) c.kernel_cache = named.empty() || named == "off" ? "default" : named;
  c.measure_kernels = options.again ? MeasureKernels::all : MeasureKernels::missing;
  std::unique_ptr<io::Progress> progress = std::make_unique<io::Progress>("timing kernels", 0);
  bool is_told = isatty(STDERR_FILENO) != 0;  // by the progress
  c.measuring = [&](std::string_view) {
    if (!is_told)
      note("tune", "timing kernels takes up to a third of a second for each shape, and longer beside other work");
    is_told = true;
    if (progress) progress->advance();
  };
  const Model model = load(options.load, c);
  Features inputs;
  if (!options.input.inputs.empty()) {
    const Inputs read = read_inputs(model, options.input);
    for (const std::string& text : read.notes) note("tune", text);
    inputs = read.rows[0];
  } else if (!options.shapes.empty()) {
    inputs = model.random_inputs(options.input.seed);
    for (const std::string& text : options.shapes) add_shape(text, model.function(), inputs);
  }
  const ComputePlan plan = model.compute_plan(inputs);
  progress.reset();
  const std::vector<Tuned> shapes = tuned(plan);
  const int64_t disturbed = disturbed_in(plan);
  const std::string file = model.kernel_cache_file();
  print(options.json ? rendered(machine(shapes, disturbed, file, options)) : human(shapes, disturbed, file));
  return 0;
}

}  // namespace

Command add_tune(Arguments parent) {
  auto options = std::make_shared<TuneOptions>();
  Arguments app = parent.add_subcommand("tune", "Time the kernels that can run each operation, and save the fastest");
  add_load_options(app, options->load);
  app.add_option("--shape", options->shapes, "Tune for an input of this shape, not the default one: NAME=1x3x512x512")
      .allow_extra_args(false)
      .option_text("NAME=SHAPE");
  app.add_flag("--again", options->again, "Time also what the kernel cache has already");
  add_input_options(app, options->input);
  const auto outputs = Outputs::of(app);
  app.add_flag("--json", options->json, "Answer in JSON, times in seconds");
  app.footer(
      "Programs use these times if MOKA_KERNEL_CACHE is set to default or to the file.\n"
      "Example: moka tune Model.mlpackage --threads 1");
  return {app, "moka tune Model.mlpackage --threads 1", [options, outputs] { return tune(*options, *outputs); },
          outputs};
}

}  // namespace moka::cli
