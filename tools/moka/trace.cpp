// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "arguments.h"
#include "command.h"
#include "text.h"
#include "trace_options.h"
#include "usage_error.h"

namespace moka::cli {
namespace {

/// "64M" in bytes.
Check size_of_ring() {
  return {[](std::string& value) -> std::string {
            constexpr std::string_view kUnits = "KMG";
            std::string digits = value;
            int shift = 0;
            const size_t unit = digits.empty() ? std::string_view::npos : kUnits.find(digits.back());
            if (unit != std::string_view::npos) {
              shift = 10 * (static_cast<int>(unit) + 1);
              digits.pop_back();
            }
            const auto count = parse_integer(digits);
            if (!count || *count < 1 || *count > (int64_t{1} << 40) >> shift)
              return fmt::format("expected a size such as 64M, got '{}'", value);
            value = std::to_string(*count << shift);
            return {};
          },
          {}};
}

int trace(const TraceOptions& options, const Outputs& outputs) {
  if (options.list_rules) return list_trace_rules(options);
  const bool is_live = options.pid > 0 || !options.socket.empty();
  if (options.list + is_live + !options.words.empty() > 1)
    throw UsageError("expected one of a command, --pid, --socket and --list, got several");
  if (!is_live && options.seconds > 0)
    throw UsageError("--seconds: a command is recorded until it ends; it belongs to --pid and --socket");
  if (options.list) return list_processes(options);
  const std::string word = options.words.empty() ? "" : options.words[0];
  const bool reads = word == "summary" || word == "conclude";
  if (!reads && has_extension(options.out, ".html"))
    throw UsageError(
        fmt::format("-o: '{}': a recording is not a page; moka trace conclude makes one of it", options.out));
  if (is_live) return trace_process(options, outputs);
  if (options.words.empty())
    throw UsageError(
        "expected a command to trace, --pid N, 'summary FILE' or 'conclude FILE', got nothing: moka trace -- python "
        "predict.py");
  if (!reads) return trace_command(options, outputs);
  if (options.words.size() != 2)
    throw UsageError(fmt::format("{}: expected one trace, got {}", word,
                                 plural(static_cast<int64_t>(options.words.size()) - 1, "file")));
  if (word == "summary") return summarize(options, options.words[1]);
  if (!options.out.empty() && !has_extension(options.out, ".html"))
    throw UsageError(fmt::format("-o: '{}': expected a page, a name that ends with .html", options.out));
  return conclude(options, outputs, options.words[1]);
}

void add_recording_options(Arguments app, TraceOptions& options) {
  app.add_option("--pid", options.pid, "Record a process that runs; it was started with MOKA_TRACE_SOCKET=1")
      .check(whole_number(1, INT32_MAX))
      .option_text("N");
  app.add_option("--socket", options.socket, "Record the process that listens at this socket").option_text("PATH");
  app.add_flag("--list", options.list, "List the processes that can be recorded, and their models");
  app.add_option("--seconds", options.seconds, "How long to record a process (default: until Enter or Ctrl-C)")
      .check(number(0.001, 1e8))
      .option_text("S");
  app.add_option("--ring", options.ring, "Keep only the newest events, as many as fit: 64M; written at the end")
      .check(size_of_ring())
      .option_text("SIZE");
  app.add_option("--last", options.last, "Keep only the events of the last seconds; written at the end")
      .check(number(0.001, 1e8))
      .option_text("S");
}

}  // namespace

Command add_trace(Arguments parent) {
  auto options = std::make_shared<TraceOptions>();
  Arguments app =
      parent.add_subcommand("trace", "Records what a program does with models, and says what it could save");
  app.add_option("COMMAND", options->words, "A command with its arguments, after --; or: summary FILE, conclude FILE")
      .option_text(" ");
  const auto outputs = Outputs::of(app);
  outputs
      ->add_option("-o,--out", options->out, {{".html", FileKind::page}, {"", FileKind::trace}},
                   "Where the trace goes (default moka.pftrace); of conclude: the page, FILE.html")
      .option_text("FILE");
  add_recording_options(app, *options);
  app.add_option("--only", options->only, "Only these rules of conclusions").delimiter(',').option_text("RULE,...");
  app.add_option("--ignore", options->ignore, "Rules to leave out").delimiter(',').option_text("RULE,...");
  app.add_option("--rules", options->rules, "A file of your own rules (JSON)").option_text("FILE");
  app.add_flag("--list-rules", options->list_rules, "List the rules");
  app.add_option("--by", options->by, "What a summary's rows are: kind (default), name, model, device or kernel")
      .check(one_of({"kind", "name", "model", "device", "kernel"}))
      .option_text("WHAT");
  app.add_flag("--json", options->json, "Answer in JSON, times in seconds");
  app.footer(
      "The exit code is the command's. MOKA_TRACE=FILE in the environment traces a program as well.\n"
      "Example: moka trace --pid 4711 --seconds 5 -o out.pftrace");
  return {app, "moka trace -- moka predict Model.mlpackage --input random",
          [options, outputs] { return trace(*options, *outputs); }, outputs};
}

}  // namespace moka::cli
