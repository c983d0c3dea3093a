// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdlib>
#include <filesystem>
#include <optional>

/// The folder of published models that some tests open. Its files are not part of the project.
///
/// A test that cannot run without it:
///   MOKA_NEEDS_MODELS(models);
///   open(*models / "net.mlpackage");
namespace moka::test {

/// The environment variable MOKA_TEST_MODELS, else the build's setting, whether it exists or not.
inline std::filesystem::path models_path() {
  const char* set = std::getenv("MOKA_TEST_MODELS");
  return set != nullptr && *set != '\0' ? set : MOKA_TEST_MODELS;
}

inline std::optional<std::filesystem::path> models_folder() {
  std::filesystem::path folder = models_path();
  std::error_code ignored;
  if (!std::filesystem::is_directory(folder, ignored)) return std::nullopt;
  return folder;
}

inline constexpr char kNoModels[] = "no folder of published models: MOKA_TEST_MODELS names one";

}  // namespace moka::test

/// Declares `name`, the folder; skips the test when it is absent.
#define MOKA_NEEDS_MODELS(name)                    \
  const auto name = ::moka::test::models_folder(); \
  if (!name) GTEST_SKIP() << ::moka::test::kNoModels
