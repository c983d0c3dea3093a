// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "moka/conclusions.h"
#include "outputs.h"

namespace moka::cli {

struct TraceOptions {
  std::vector<std::string> words;
  std::string out, by = "kind", socket, rules;
  std::string ring;  ///< in bytes, after parsing
  std::vector<std::string> only, ignore;
  int64_t pid = 0;
  double seconds = 0, last = 0;  ///< 0: not given
  bool json = false, list = false, list_rules = false;
};

/// Where a trace goes that no option names.
inline constexpr const char* kUsualTrace = "moka.pftrace";

ConclusionOptions conclusion_options(const TraceOptions& options);

/// Runs a command with MOKA_TRACE. Returns its exit code.
int trace_command(const TraceOptions& options, const Outputs& outputs);
/// Records a process that runs.
int trace_process(const TraceOptions& options, const Outputs& outputs);
/// Prints the processes that can be recorded.
int list_processes(const TraceOptions& options);
/// Prints the summary of a trace and its conclusions, or with `out` makes their page.
int summarize(const TraceOptions& options, const std::string& trace);
int conclude(const TraceOptions& options, const Outputs& outputs, const std::string& trace);
int list_trace_rules(const TraceOptions& options);

/// The conclusions in the terminal; empty where there are none.
std::string conclusions_text(const TraceConclusions& conclusions);

}  // namespace moka::cli
