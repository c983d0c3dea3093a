// SPDX-License-Identifier: Apache-2.0
#include "report/resident.h"

#include <fstream>
#include <sstream>
#include <string>
#ifdef __GLIBC__
#include <malloc.h>
#endif

namespace moka::reporting {

namespace {

uint64_t status_bytes(const std::string& key) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (!line.starts_with(key)) continue;
    std::istringstream rest(line.substr(key.size()));
    uint64_t kibibytes = 0;
    rest >> kibibytes;
    return kibibytes * 1024;
  }
  return 0;
}

}  // namespace

uint64_t resident_memory() { return status_bytes("VmRSS:"); }

uint64_t peak_memory() { return status_bytes("VmHWM:"); }

bool reset_peak_memory() {
  std::ofstream refs("/proc/self/clear_refs");
  refs << "5" << std::flush;
  return refs.good();
}

void return_freed_memory() {
#ifdef __GLIBC__
  malloc_trim(0);
#endif
}

}  // namespace moka::reporting
