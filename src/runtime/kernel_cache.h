// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "plan/choices.h"

/// The file that remembers measured times of kernels: JSON, a section for each processor and build.
namespace moka::runtime {

/// The processor and the build that times are measured for.
struct KernelMachine {
  std::string processor, build;
};

/// The entries for `machine` in the text of a file. `others`, if given, receives the number of sections for other
/// machines. Errors: malformed (any damage invalidates the whole file), unsupported (a newer version).
Result<std::vector<plan::Measurement>> parse_kernel_cache(std::string_view text, const KernelMachine& machine,
                                                          int* others = nullptr);
/// The text of the file `before` with these entries, which replace those for the same shapes and threads. Sections of
/// other processors stay; those of other builds for this processor are dropped. `before` may be empty or damaged.
std::string merged_kernel_cache(std::string_view before, const KernelMachine& machine,
                                std::span<const plan::Measurement> entries);

/// Errors: not_found, io, malformed (more than 16 MiB).
Result<std::string> read_kernel_cache(const std::string& path);
/// Merges the entries into the file at `path`, which is replaced atomically; makes its folder. When two processes do so
/// at the same time, the entries of one may be lost. Error io.
Status update_kernel_cache(const std::string& path, const KernelMachine& machine,
                           std::span<const plan::Measurement> entries);
/// The user's file: $XDG_CACHE_HOME/moka/kernels.json, or in ~/.cache. Error not_found: neither is set.
Result<std::string> default_kernel_cache();

}  // namespace moka::runtime
