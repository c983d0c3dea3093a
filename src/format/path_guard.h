// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "base/error.h"

namespace moka::format {

/// The real path of `relative`, resolved from the folder `base`, if it lies inside the folder `root`. `root` and `base`
/// are real paths, and `base` is `root` or inside it. `relative` uses '/' and may contain "." and "..". Errors name
/// `relative`: malformed (empty, absolute, contains a NUL, leaves `root` by ".." or a symbolic link), not_found, io.
/// Links of a snapshot in Hugging Face's cache may lead to blobs of the same repository.
Result<std::string> resolve_inside(const std::string& root, const std::string& base, std::string_view relative);

/// The same without a file system, for files in memory: normalizes `relative`. Errors: malformed as above.
Result<std::string> normalise_inside(std::string_view relative);

/// The real path of an existing file or folder. Errors: not_found, io.
Result<std::string> real_path(const std::string& path);

/// The folder against which relative paths in the file at `path` are resolved, as a real path. For a symbolic link it
/// is the folder of the target, except in a snapshot of Hugging Face's cache, where it is the folder of the link.
/// Errors: not_found, io.
Result<std::string> folder_of(const std::string& path);

}  // namespace moka::format
