// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

#include "moka/error.h"

namespace moka {

/// The weights of a model under one configuration, packed for its kernels by an earlier load.
struct CachedModel {
  std::string file, model;  ///< paths
  size_t bytes = 0;
  bool usable = false;  ///< Moka can use it: its index is complete, and this build of Moka made it
};

/// The folder that ModelConfiguration::cache names; empty when it names none. Throws not_found when the user has no
/// cache folder.
MOKA_EXPORT std::string cache_folder(const std::string& cache);
/// The entries of a folder, sorted by model. A folder that does not exist has no entries.
MOKA_EXPORT std::vector<CachedModel> cached_models(const std::filesystem::path& folder);
/// Removes the files of packed weights from a folder and returns how many it removed. Models that are loaded keep
/// working. Throws io.
MOKA_EXPORT size_t clear_cache(const std::filesystem::path& folder);

}  // namespace moka
