// SPDX-License-Identifier: Apache-2.0
// moka_opdocs FOLDER: writes operations.md, operations/, linting-rules.md, trace-rules.md, models.md and
// device-support.md into FOLDER, and removes the pages of operations that no longer exist. moka_opdocs --json FILE:
// writes the operations as JSON.
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <fstream>
#include <string>

#include "opdocs/opdocs.h"

namespace {

bool write(const std::string& path, const std::string& text) {
  std::ofstream out(path, std::ios::binary);
  out << text;
  out.close();
  if (!out) std::fprintf(stderr, "moka_opdocs: cannot write %s\n", path.c_str());
  return static_cast<bool>(out);
}

}  // namespace

int main(int argc, char** argv) {
  const bool json = argc == 3 && std::string(argv[1]) == "--json";
  if (!json && argc != 2) {
    std::fprintf(stderr, "usage: moka_opdocs FOLDER | moka_opdocs --json FILE\n");
    return 2;
  }
  // Uses the instructions that every machine has, so that the documents do not depend on the machine.
  setenv("MOKA_MAX_CPU_ISA", "base", 1);
  try {
    if (json) return write(argv[2], moka::opdocs::operations_json()) ? 0 : 1;
    const std::filesystem::path folder = argv[1];
    std::filesystem::remove_all(folder / "operations");
    std::filesystem::create_directories(folder / "operations");
    const moka::opdocs::Support support = moka::opdocs::find_support(MOKA_GOLDEN_FOLDER);
    for (const auto& [name, text] : moka::opdocs::documents(support))
      if (!write(folder / name, text)) return 1;
    return write(folder / "models.md", moka::opdocs::models_markdown(support, MOKA_MODELS_FOLDER)) ? 0 : 1;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "moka_opdocs: %s\n", e.what());
    return 1;
  }
}
