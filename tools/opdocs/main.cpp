// moka_opdocs FOLDER: writes operations.md and device-support.md into FOLDER.
// moka_opdocs --json FILE: writes the operations as JSON.
#include <cstdio>
#include <cstdlib>
#include <exception>
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
  // The least that every machine has: the documents do not depend on where they are made.
  setenv("MOKA_MAX_CPU_ISA", "base", 1);
  try {
    if (json) return write(argv[2], moka::opdocs::operations_json()) ? 0 : 1;
    const std::string folder = argv[1];
    return write(folder + "/operations.md", moka::opdocs::operations_markdown()) &&
                   write(folder + "/device-support.md", moka::opdocs::support_markdown(MOKA_GOLDEN_FOLDER))
               ? 0
               : 1;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "moka_opdocs: %s\n", e.what());
    return 1;
  }
}
