// SPDX-License-Identifier: Apache-2.0
#include "runtime/waited.h"

#include <dirent.h>

#include <cstdio>

namespace moka::runtime {

namespace {

double waited_in(const char* file_name) {
  std::FILE* file = std::fopen(file_name, "r");
  if (file == nullptr) return 0;
  unsigned long long ran = 0, delayed = 0;
  const bool is_read = std::fscanf(file, "%llu %llu", &ran, &delayed) == 2;
  std::fclose(file);
  return is_read ? 1e-9 * static_cast<double>(delayed) : 0;
}

}  // namespace

double seconds_waited(Waiting whose) {
  if (whose == Waiting::thread) return waited_in("/proc/thread-self/schedstat");
  double seconds = 0;
  DIR* folder = opendir("/proc/self/task");
  if (folder == nullptr) return 0;
  while (const dirent* entry = readdir(folder)) {
    if (entry->d_name[0] == '.') continue;
    char path[64];
    std::snprintf(path, sizeof path, "/proc/self/task/%.16s/schedstat", entry->d_name);
    seconds += waited_in(path);
  }
  closedir(folder);
  return seconds;
}

}  // namespace moka::runtime
