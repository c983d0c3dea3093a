// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "moka/output.h"

namespace moka {

/// What a long trace keeps: its newest events. They stay in memory until the trace ends. 0: no limit.
struct TraceRing {
  size_t bytes = 0;    ///< of memory; without it but with `seconds`, 256 MiB
  double seconds = 0;  ///< before the end
};

/// Records what this process does with models during the lifetime of the object, in a file for Perfetto
/// (ui.perfetto.dev) and for Chromium's tracing page. Each model has the lanes Activity, Data and Compute
/// (docs/seeing.md).
///
///   {
///     moka::Trace trace("out.pftrace");
///     model.predict(inputs);
///   }
///
/// One trace at a time. MOKA_TRACE=out.pftrace in the environment traces a whole program.
class MOKA_EXPORT Trace {
 public:
  /// "%p" in `path` stands for the process ID. The file holds everything up to a twentieth of a second ago. Throws io,
  /// invalid_argument (a trace is already being written; the path of something else).
  explicit Trace(const std::filesystem::path& path, Overwrite overwrite = Overwrite::own_kind,
                 const TraceRing& ring = {});
  Trace(Trace&&) noexcept;
  Trace& operator=(Trace&&) = delete;
  ~Trace();
  /// Ends the trace, which contains all predictions that have ended. Throws io (some events could not be written).
  void stop();
  /// The path of the file, which differs from the constructor's if another process traces to that one.
  const std::string& path() const { return path_; }

 private:
  std::string path_;
  bool is_open_ = true;
};

/// Lets other processes of the same user record this one while it runs: moka trace --pid N. Opens a socket and starts a
/// thread that waits for them. `where`: the path of the socket; a folder, where the process's number names it; empty:
/// the user's own folder, $XDG_RUNTIME_DIR/moka, or moka-UID in /tmp. Returns the path of the socket. The socket closes
/// when the process ends, and another call moves it. MOKA_TRACE_SOCKET in the environment does the same. Throws io (the
/// socket cannot be made, something else is there), invalid_argument (the path is too long for a socket).
MOKA_EXPORT std::string allow_tracing(const std::filesystem::path& where = {});

/// Records work of the program itself, for example reading a picture, on the lane Data of the process. The event lasts
/// as long as the object. Costs one branch without a trace.
class MOKA_EXPORT TraceSpan {
 public:
  /// `bytes`: how many were moved; 0: none. `reason`: why the work was necessary.
  explicit TraceSpan(std::string_view name, int64_t bytes = 0, std::string_view reason = {});
  ~TraceSpan();
  TraceSpan(const TraceSpan&) = delete;

 private:
  bool is_on_;
};

/// The slices of a trace that agree in all texts below.
struct TraceGroup {
  std::string lane;     ///< "Activity", "Data" or "Compute"
  std::string model;    ///< its track's name; empty: the process
  std::string process;  ///< its name and number
  std::string name;     ///< "predict"; the operation's; the feature's
  std::string kind;     ///< "predict"; the operation's type; "convert", "copy", "upload", "stretch", "region"
  std::string device, kernel, reason;
  int64_t count = 0;
  double total = 0, minimum = 0, maximum = 0;  ///< seconds
  int64_t bytes = 0;                           ///< sum over all slices
  double average() const { return count > 0 ? total / static_cast<double>(count) : 0; }
};

struct TraceCounter {
  std::string name, process;
  bool is_bytes = false;
  int64_t samples = 0;
  double minimum = 0, mean = 0, maximum = 0;  ///< mean: over the samples
};

struct TraceSummary {
  double seconds = 0;              ///< from the first event to the last
  int64_t unfinished = 0;          ///< slices without an end, which are not in `groups`
  std::vector<TraceGroup> groups;  ///< by lane, then most time first
  std::vector<TraceCounter> counters;
};

/// Summarizes a trace that Moka wrote. The trace may be incomplete, as when its program was killed. Throws not_found,
/// io, malformed.
MOKA_EXPORT TraceSummary summarize_trace(const std::filesystem::path& path);

}  // namespace moka
