#pragma once

#include <map>
#include <string>

#include "base/error.h"
#include "format/message/rope.h"

namespace moka::format {

/// Files by name, relative to a folder.
using FileContents = std::map<std::string, Rope>;

/// Writes a file, piece by piece. Error io.
Status write_file(const std::string& path, Rope content);

/// Makes `folder`, which must not exist or be empty, with these files. Removes what was written before an error.
/// Errors: invalid_argument (the folder holds something), io.
Status write_folder(FileContents files, const std::string& folder);
Status write_folder(const std::map<std::string, Bytes>& files, const std::string& folder);

/// Writes a file, or a folder, next to `path` and moves it there when it is complete, so the old content may be part of
/// the new one. Follows symbolic links. Errors: invalid_argument (`path` is neither absent nor a regular file, or for
/// replace_package, neither absent nor a package nor an empty folder), io.
Status replace_file(Rope content, const std::string& path);
Status replace_package(FileContents files, const std::string& path);

}  // namespace moka::format
