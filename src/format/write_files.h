// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>

#include "base/output.h"
#include "format/message/rope.h"

namespace moka::format {

/// Files by name, relative to a folder.
using FileContents = std::map<std::string, Rope>;

FileContents ropes_of(const std::map<std::string, Bytes>& files);

/// Writes a new file, piece by piece. Error io.
Status write_file(const std::string& path, Rope content);

/// Writes a file, or a folder, next to `path` and moves it there when it is complete, so the old content may be part of
/// the new one. Follows symbolic links. Errors: invalid_argument (as check_output), io.
Status replace_file(Rope content, const std::string& path, OutputKind kind, bool force = false,
                    const std::vector<std::string>& inputs = {});
Status replace_folder(FileContents files, const std::string& path, OutputKind kind, bool force = false,
                      const std::vector<std::string>& inputs = {});

}  // namespace moka::format
