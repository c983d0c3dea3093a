// SPDX-License-Identifier: Apache-2.0
#include "states.h"

#include <fmt/format.h>

#include <filesystem>
#include <set>

#include "answers.h"
#include "input.h"

namespace moka::cli {
namespace {

namespace fs = std::filesystem;

/// States whose names differ only in characters that file names cannot have get different files.
std::vector<std::pair<std::string, fs::path>> files_of(const State& state, const std::string& folder) {
  std::vector<std::pair<std::string, fs::path>> out;
  std::set<std::string> taken;
  for (const std::string& name : state.names()) {
    const std::string plain = safe_file_name(name);
    std::string stem = plain;
    for (int n = 2; !taken.insert(stem).second; ++n) stem = fmt::format("{}_{}", plain, n);
    out.emplace_back(name, fs::path(folder) / (stem + ".npy"));
  }
  return out;
}

}  // namespace

void read_states(State& state, const std::string& folder) {
  for (const auto& [name, file] : files_of(state, folder)) {
    const MultiArray array = read_numbers(file);
    try {
      state.write(name, array);
    } catch (const Exception& e) {
      throw UsageError(fmt::format("{}: {}", file.string(), e.what()));
    }
  }
}

std::vector<std::string> write_states(const State& state, const std::string& folder, const Outputs& to) {
  to.make_folder(folder);
  std::vector<std::string> files;
  for (const auto& [name, file] : files_of(state, folder)) {
    to.write(file, FileKind::array, encode_npy(state.read(name)));
    files.push_back(file.string());
  }
  return files;
}

}  // namespace moka::cli
