#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "moka/error.h"

namespace moka {

/// The weights of a model under one configuration, packed for its kernels by an earlier load.
struct CachedModel {
  std::string file, model;  ///< paths
  size_t bytes = 0;
  bool usable = false;  ///< whole as far as its index tells, and made by this build
};

/// The folder that ModelConfiguration::cache means; empty: none. Throws not_found when the user has no such folder.
MOKA_EXPORT std::string cache_folder(const std::string& cache);
/// The entries of a folder, by model. A folder that does not exist has none.
MOKA_EXPORT std::vector<CachedModel> cached_models(const std::string& folder);
/// Removes the files of packed weights from a folder and returns how many there were. Loaded models keep what they use.
/// Throws io.
MOKA_EXPORT size_t clear_cache(const std::string& folder);

}  // namespace moka
