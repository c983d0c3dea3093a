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

/// The folder that ModelConfiguration::cache stands for; empty: none. Throws not_found: the user has no folder.
MOKA_EXPORT std::string cache_folder(const std::string& cache);
/// What is kept in a folder, by model. One that does not exist is empty.
MOKA_EXPORT std::vector<CachedModel> cached_models(const std::string& folder);
/// Removes the files of packed weights from a folder and gives their number. Models that use them keep them. Throws io.
MOKA_EXPORT size_t clear_cache(const std::string& folder);

}  // namespace moka
