// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>

#include "base/error.h"

namespace moka::runtime {

/// What identifies a model by what its files hold, wherever they are:
///
///   ModelContent content = MOKA_TRY(content_of_model("Net.mlpackage", cache_folder));
///   content.digest   // the same for every copy of the model
struct ModelContent {
  std::string digest;
  /// By FilePlace::content: the file's name in the model's folder; "" for a model that is one file.
  std::map<std::string, std::string> files;
};

/// Reads all files of the model at `path`, a file or a folder. The result is kept in `folder`, so later calls read no
/// file that has not changed. Errors: not_found, io (also of a file that changes meanwhile), unsupported (a folder with
/// more than 4096 files).
Result<ModelContent> content_of_model(const std::string& path, const std::string& folder);

/// The ending of the names of files that content_of_model() keeps.
constexpr std::string_view kContentEnding = ".content";

}  // namespace moka::runtime
