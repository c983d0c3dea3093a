// SPDX-License-Identifier: Apache-2.0
#include "moka/capture.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>

#include "answers.h"
#include "arguments.h"
#include "command.h"
#include "io/table.h"
#include "moka/files.h"
#include "options.h"
#include "print.h"
#include "text.h"
#include "usage_error.h"

namespace moka::cli {
namespace {

namespace fs = std::filesystem;

struct CaptureArguments {
  LoadOptions load;
  InputOptions input;
  std::string page, values, filter;
  int predictions = 11;
  bool all = false, json = false;
};

constexpr size_t kShownCommands = 20;

std::string name_of(const CapturedCommand& c) {
  std::string out;
  for (const CapturedOperation& o : c.operations) out += (out.empty() ? "" : " + ") + o.name;
  for (const std::string& f : c.fused) out += (out.empty() ? "" : " + ") + f;
  for (const CapturedBuffer& b : c.buffers)
    if (out.empty()) out = b.value;
  return out.empty() ? c.kind : out;
}

std::string size_text(const std::array<uint32_t, 3>& n) {
  return n[0] == 0 ? std::string() : fmt::format("{}x{}x{}", n[0], n[1], n[2]);
}

/// A submission, a wait and control flow contain the time of others.
bool contains_others(const CapturedCommand& c) { return c.kind == "submit" || c.kind == "wait" || c.kind == "control"; }

double seconds_of(const CapturedCommand& c) { return c.time && !contains_others(c) ? c.time->median : 0; }

std::string devices_text(const Capture& capture) {
  std::string out;
  for (const CapturedDevice& d : capture.devices)
    out += fact(d.name, d.has_timestamps
                            ? fmt::format("{}; times by {}, one tick is {}, {} between two with nothing between",
                                          d.description, d.has_queries ? "timestamp queries" : "the host's clock",
                                          format_seconds(d.resolution), format_seconds(d.overhead))
                            : d.description + "; its queue has no timestamps, so its commands have no times");
  return out;
}

std::string capture_text(const Capture& capture, const CaptureArguments& options) {
  std::string out =
      fact("prediction", fmt::format("{}, captured {} (medians of {})", format_seconds(capture.prediction),
                                     format_seconds(capture.captured), plural(capture.predictions, "prediction"))) +
      devices_text(capture);
  std::vector<std::pair<size_t, const CapturedCommand*>> shown;
  for (size_t i = 0; i < capture.commands.size(); ++i) {
    const CapturedCommand& c = capture.commands[i];
    std::string row = name_of(c) + " " + c.kind + " " + c.code + " " + c.device;
    for (const std::string& k : c.kernels) row += " " + k;
    if (row.find(options.filter) != std::string::npos) shown.emplace_back(i, &c);
  }
  const size_t count = shown.size();
  if (!options.all) {
    std::stable_sort(shown.begin(), shown.end(),
                     [](const auto& a, const auto& b) { return seconds_of(*a.second) > seconds_of(*b.second); });
    shown.resize(std::min(count, kShownCommands));
  }
  io::Table table({{"#", io::Align::right},
                   {"command", io::Shrink::middle},
                   {"kind", io::Align::left},
                   {"kernel", io::Shrink::middle},
                   {"shader", io::Align::left},
                   {"workgroups", io::Align::left},
                   {"of", io::Align::left},
                   {"time", io::Align::right}});
  for (const auto& [i, c] : shown)
    table.add_row({std::to_string(i + 1), name_of(*c), c->kind, c->kernels.empty() ? "" : c->kernels.back(), c->code,
                   size_text(c->groups), c->threads > 0 ? plural(c->threads, "thread") : size_text(c->group_size),
                   c->time ? format_seconds(c->time->median) : ""});
  out += "\n" + table_text(table);
  if (shown.size() < count) out += dim(fmt::format("\nand {} more: --all shows them in order\n", count - shown.size()));
  return out;
}

/// Writes the contents of buffers, and names them as the page refers to them.
class ValueFiles {
 public:
  ValueFiles(const CaptureArguments& options, const Outputs& outputs) : folder_(options.values), outputs_(outputs) {
    outputs_.make_folder(options.values);
    if (options.page.empty()) return;
    std::error_code none;
    const fs::path beside = fs::path(options.page).parent_path();
    shown_ = fs::relative(folder_, beside.empty() ? "." : beside, none);
  }
  std::string write(size_t command, const CapturedBuffer& b, size_t buffer, const MultiArray& array) const {
    const std::string& name = b.value.empty() ? b.name : b.value;
    const std::string file =
        fmt::format("{:04}_{}{}.npy", command + 1, buffer, name.empty() ? "" : "_" + safe_file_name(name));
    outputs_.write(folder_ / file, FileKind::array, encode_npy(array));
    return ((shown_.empty() ? folder_ : shown_) / file).string();
  }

 private:
  const fs::path folder_;
  fs::path shown_;
  const Outputs& outputs_;
};

/// The file beside the page; empty: the page goes to no file. Throws UsageError for a page that has its name.
fs::path json_beside(const std::string& page) {
  std::error_code none;
  if (page.empty() || (fs::exists(page, none) && !fs::is_regular_file(page, none))) return {};
  const fs::path path = fs::path(page).replace_extension(".json");
  if (path == fs::path(page))
    throw UsageError(fmt::format("-o {}: expected the name of a page, beside which the JSON goes: {}", page,
                                 fs::path(page).replace_extension(".html").string()));
  return path;
}

int capture(const CaptureArguments& options, const Outputs& outputs) {
  const fs::path json_path = json_beside(options.page);
  if (!options.page.empty()) outputs.check(options.page, FileKind::page);
  if (!json_path.empty()) outputs.check(json_path.string(), FileKind::capture);
  const Model model = load(options.load, configuration(options.load));
  Features inputs = model.random_inputs(options.input.seed);
  if (!options.input.inputs.empty()) {
    const Inputs read = read_inputs(model, options.input);
    for (const std::string& text : read.notes) note("capture", text);
    if (read.batch) throw UsageError("--input: expected the inputs of one prediction, got a table");
    inputs = read.rows[0];
  }
  CaptureOptions settings;
  settings.predictions = options.predictions;
  std::unique_ptr<ValueFiles> files;
  if (!options.values.empty()) {
    settings.values = true;
    files = std::make_unique<ValueFiles>(options, outputs);
    settings.on_value = [&](const CapturedCommand&, size_t command, const CapturedBuffer& b, size_t buffer,
                            const MultiArray& array) { return files->write(command, b, buffer, array); };
  }
  Capture made = model.capture(inputs, settings);
  made.model = options.load.path;
  if (!options.page.empty()) outputs.write(options.page, FileKind::page, capture_page(made));
  if (!json_path.empty()) outputs.write(json_path, FileKind::capture, to_json(made));
  print(options.json ? to_json(made) : capture_text(made, options));
  return kFine;
}

}  // namespace

Command add_capture(Arguments parent) {
  auto options = std::make_shared<CaptureArguments>();
  Arguments app =
      parent.add_subcommand("capture", "Every dispatch and kernel of a prediction: time, parameters, buffers");
  add_load_options(app, options->load);
  add_input_options(app, options->input);
  app.add_option("--predictions", options->predictions, "How many predictions are measured (default 11)")
      .check(whole_number(1, 1'000'000))
      .option_text("N");
  const auto outputs = Outputs::of(app);
  outputs
      ->add_option("-o,--out", options->page, {{"", FileKind::page}},
                   "Write one HTML page that needs no network, and the JSON beside it")
      .option_text("FILE.html");
  outputs
      ->add_option("--values", options->values, {{"", FileKind::folder}},
                   "Also run command by command, and write what each buffer holds after its command here, as .npy")
      .option_text("DIR");
  app.add_option("--filter", options->filter, "Only commands whose row in the terminal holds this text")
      .option_text("TEXT");
  app.add_flag("--all", options->all, "Every command in the terminal, in order; else the slowest");
  app.add_flag("--json", options->json, "Answer in JSON, times in seconds");
  app.footer(
      "Without --input the inputs are random.\n"
      "Example: moka capture Model.mlpackage --device vulkan -o capture.html");
  return {app, "moka capture Model.mlpackage -o capture.html",
          [options, outputs] { return capture(*options, *outputs); }, outputs};
}

}  // namespace moka::cli
