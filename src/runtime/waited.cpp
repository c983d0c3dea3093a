#include "runtime/waited.h"

#include <dirent.h>

#include <cstdio>

namespace moka::runtime {

double seconds_waited() {
  double seconds = 0;
  DIR* folder = opendir("/proc/self/task");
  if (folder == nullptr) return 0;
  while (const dirent* entry = readdir(folder)) {
    if (entry->d_name[0] == '.') continue;
    char path[64];
    std::snprintf(path, sizeof path, "/proc/self/task/%.16s/schedstat", entry->d_name);
    if (std::FILE* file = std::fopen(path, "r"); file != nullptr) {
      unsigned long long ran = 0, delayed = 0;
      if (std::fscanf(file, "%llu %llu", &ran, &delayed) == 2) seconds += 1e-9 * static_cast<double>(delayed);
      std::fclose(file);
    }
  }
  closedir(folder);
  return seconds;
}

}  // namespace moka::runtime
