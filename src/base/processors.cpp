// SPDX-License-Identifier: Apache-2.0
#include "base/processors.h"

#include <sched.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>

namespace moka {

namespace {

std::string text_of(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// The smallest quota among the process's control group and the groups that contain it.
std::optional<int> quota() {
  constexpr std::string_view kUnified = "0::";  // prefix of version 2, which all current systems use
  const std::string groups = text_of("/proc/self/cgroup");
  const size_t at = groups.starts_with(kUnified) ? 0 : groups.find("\n0::") + 1;
  if (groups.compare(at, kUnified.size(), kUnified) != 0) return std::nullopt;
  const size_t first = at + kUnified.size();
  std::string group = groups.substr(first, groups.find('\n', first) - first);
  std::optional<int> least;
  for (;; group.resize(group.rfind('/'))) {
    if (group == "/") group.clear();
    if (auto here = processors_of_quota(text_of("/sys/fs/cgroup" + group + "/cpu.max")))
      least = std::min(least.value_or(*here), *here);
    if (group.rfind('/') == std::string::npos) return least;
  }
}

}  // namespace

std::optional<int> processors_of_quota(std::string_view cpu_max) {
  const char* const end = cpu_max.data() + cpu_max.size();
  double quota = 0, period = 0;
  auto [after, error] = std::from_chars(cpu_max.data(), end, quota);
  if (error != std::errc() || after == end || *after != ' ') return std::nullopt;
  if (std::from_chars(after + 1, end, period).ec != std::errc() || !(quota > 0) || !(period > 0)) return std::nullopt;
  const double count = quota / period;
  return count < 1e6 ? std::optional(static_cast<int>(count) + (count > static_cast<int>(count) ? 1 : 0))
                     : std::nullopt;
}

int processors() {
  static const int count = [] {
    cpu_set_t allowed;
    const int bound = sched_getaffinity(0, sizeof allowed, &allowed) == 0
                          ? CPU_COUNT(&allowed)
                          : static_cast<int>(std::thread::hardware_concurrency());
    return std::max(1, std::min(bound, quota().value_or(bound)));
  }();
  return count;
}

}  // namespace moka
