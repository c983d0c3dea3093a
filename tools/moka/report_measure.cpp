// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <functional>

#include "child.h"
#include "io/io_error.h"
#include "io/table.h"
#include "print.h"
#include "report.h"
#include "temporary_folder.h"
#include "usage_error.h"

namespace moka::cli {
namespace {

/// Ends the process: writes the report to `end`. Temporary files of the process lie in `folder`, which its parent
/// removes, also when a signal ends the process.
[[noreturn]] void measure_and_exit(const std::function<Report()>& work, const std::string& folder, int end) {
  setenv("TMPDIR", folder.c_str(), 1);
  const std::string text = to_json(work());
  for (size_t done = 0; done < text.size();) {
    const ssize_t n = write(end, text.data() + done, text.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    done += static_cast<size_t>(n);
  }
  flush_output();
  _exit(0);
}

std::string read_all(int end) {
  std::string text;
  char block[65536];
  for (;;) {
    const ssize_t n = read(end, block, sizeof block);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return text;
    text.append(block, static_cast<size_t>(n));
  }
}

/// The end of a child process by a signal.
struct Ended {
  std::string text;
};

/// Runs `work`, which does not throw, in a child process and returns its result. Throws Ended.
Report run_apart(const std::function<Report()>& work, const std::string& folder) {
  const SignalsForChild signals({SIGINT, SIGTERM, SIGHUP});
  int ends[2];
  if (pipe(ends) != 0) throw io::IoError(fmt::format("a pipe cannot be made: {}", std::strerror(errno)));
  const pid_t child = fork_bound("a process that measures");
  if (child == 0) {
    signals.restore();
    close(ends[0]);
    measure_and_exit(work, folder, ends[1]);
  }
  signals.set_child(child);
  close(ends[1]);
  const std::string text = read_all(ends[0]);
  close(ends[0]);
  const int status = wait_for(child);
  if (WIFSIGNALED(status))
    throw Ended{fmt::format("the process that measured was ended by signal {} ({})", WTERMSIG(status),
                            strsignal(WTERMSIG(status)))};
  return parse_report(text);
}

/// The same with a temporary folder. A signal that should end the program does so when the folder is gone.
Report apart(const std::function<Report()>& work, const std::function<Report(const std::string&)>& ended) {
  Report report;
  {
    const TemporaryFolder folder("report");
    try {
      report = run_apart(work, folder.path().string());
    } catch (const Ended& e) {
      report = ended(e.text);
    }
  }
  if (const int signal = SignalsForChild::caught(); signal != 0) raise(signal);
  return report;
}

MeasuredSetting failed(const std::string& name, ErrorKind kind, const std::string& why) {
  MeasuredSetting out;
  out.name = name;
  out.failure = Failure{kind, why};
  return out;
}

Report with_setting(MeasuredSetting setting) {
  Report out;
  out.settings.push_back(std::move(setting));
  return out;
}

/// Calls what reads options and files. Its failures are those of the setting.
template <class Act>
auto as_failure(const Act& act) {
  try {
    return act();
  } catch (const UsageError& e) {
    throw Exception(ErrorKind::invalid_argument, e.what());
  } catch (const io::IoError& e) {
    throw Exception(ErrorKind::io, e.what());
  }
}

Report measure_here(const MeasuredModel& model, ReportSetting setting) {
  io::Progress progress(setting.name, 0);
  ReportOptions options;
  options.progress = [&](const ReportProgress& p) {
    if (p.stage == "rates")
      note("report", "measuring the speed of this machine takes a second or two for each unit; 'moka rates' keeps it");
    else
      progress.advance();
  };
  if (!model.input.inputs.empty())
    setting.make_inputs = [&](const Model& loaded) {
      return as_failure([&] { return read_inputs(loaded, model.input).rows[0]; });
    };
  LoadOptions how = model.load;
  how.function = setting.configuration.function_name;  // a function that is asked for and absent is wrong use
  const auto load_model = [&](const ModelConfiguration& c) { return as_failure([&] { return load(how, c); }); };
  return measure_report({}, load_model, {setting}, options);
}

}  // namespace

MeasuredSetting measured_apart(const MeasuredModel& model, const ReportSetting& setting) {
  const auto work = [&] {
    try {
      return measure_here(model, setting);
    } catch (const Exception& e) {
      return with_setting(failed(setting.name, e.kind(), e.what()));
    } catch (const std::exception& e) {
      return with_setting(failed(setting.name, ErrorKind::internal, e.what()));
    }
  };
  Report report =
      apart(work, [&](const std::string& why) { return with_setting(failed(setting.name, ErrorKind::internal, why)); });
  return std::move(report.settings.at(0));
}

ReportCompilation compiled_apart(const std::string& path) {
  const auto failure = [](const std::string& why) {
    Report out;
    out.compilation = ReportCompilation{0, why};
    return out;
  };
  const auto work = [&] {
    try {
      return measure_report(path, {});
    } catch (const std::exception& e) {
      return failure(e.what());
    }
  };
  return apart(work, failure).compilation.value_or(ReportCompilation());
}

}  // namespace moka::cli
