// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "moka/report.h"

/// `moka report --on`: reports of other machines, over ssh.
namespace moka::cli {

/// What is run on each host.
struct ReportOn {
  std::vector<std::string> hosts;    ///< as ssh takes them
  std::string ssh;                   ///< a program and its arguments; empty: MOKA_SSH, else "ssh"
  std::string model;                 ///< a file or folder, which is copied
  std::vector<std::string> inputs;   ///< values of --input, whose files are copied
  std::vector<std::string> options;  ///< of `moka report`, without those that name files
};

/// Throws UsageError for a host, an ssh program or an input that cannot be used, and IoError for what cannot be copied.
void check_hosts(const ReportOn& on);
/// Copies this program with its libraries, the model and the inputs into a new folder of the host, runs it there and
/// removes the folder. The settings' names begin with the host. A host that fails has one setting, with a `failure`.
/// A signal that ended it ends this process.
Report report_on(const std::string& host, const ReportOn& on);

}  // namespace moka::cli
