#include <cstdio>
#include <mutex>
#include <set>

#include "api/internal.h"

namespace moka {

namespace {
struct Warnings {
  std::mutex mutex;
  std::set<std::string> said;
  std::function<void(const std::string&)> handler;
};
// Never freed: threads may load models while the process ends.
Warnings& warnings() {
  static Warnings& all = *new Warnings;
  return all;
}
}  // namespace

void set_warning_handler(std::function<void(const std::string&)> handler) {
  const std::lock_guard lock(warnings().mutex);
  warnings().handler = std::move(handler);
}

void api::warn(const std::string& text) {
  std::function<void(const std::string&)> handler;
  {
    const std::lock_guard lock(warnings().mutex);
    if (!warnings().said.insert(text).second) return;
    handler = warnings().handler;
  }
  if (handler)
    handler(text);
  else
    std::fprintf(stderr, "moka: %s\n", text.c_str());
}

}  // namespace moka
