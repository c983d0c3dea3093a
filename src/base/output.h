// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/output_kind.h"

/// The rule for everything that Moka writes (docs/writing.md).
namespace moka {

/// Why a file or folder is not written.
struct Refusal {
  std::string reason;     ///< names the path
  bool can_force = true;  ///< whether the user's force allows it
};

/// Nothing where `path` is absent, an empty file or folder, of the kind that is written, a device or a pipe. An
/// identity is never replaced. `inputs`: paths of files and folders from which the output is made. A path that is one
/// of them, lies in a model, or is a folder that contains an input is refused.
std::optional<Refusal> refusal(const std::string& path, OutputKind kind, const std::vector<std::string>& inputs = {});

/// Error invalid_argument where `path` is refused and `force` does not allow it.
Status check_output(const std::string& path, OutputKind kind, bool force = false,
                    const std::vector<std::string>& inputs = {});

/// The descriptor that the path of a device names, as /dev/stdout does; -1 for other paths.
int named_descriptor(const std::string& path);

}  // namespace moka
