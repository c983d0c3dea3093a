#pragma once

#include <cstdlib>
#include <filesystem>
#include <optional>

namespace moka::test {

/// The folder of real models: the environment variable MOKA_TEST_MODELS, else the build's setting; nullopt when absent.
inline std::optional<std::filesystem::path> models_folder() {
  const char* set = std::getenv("MOKA_TEST_MODELS");
  std::filesystem::path folder = set != nullptr ? set : MOKA_TEST_MODELS;
  std::error_code ignored;
  if (!std::filesystem::is_directory(folder, ignored)) return std::nullopt;
  return folder;
}

}  // namespace moka::test
