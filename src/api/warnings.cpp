// SPDX-License-Identifier: Apache-2.0
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

void Model::Impl::tell_changes() const {
  if (has_told_changes.load(std::memory_order_relaxed) || has_told_changes.exchange(true)) return;
  const passes::Remark* first = nullptr;
  size_t more = 0;
  for (const passes::Remark& remark : model->remarks()) {
    if (!remark.changes_result) continue;
    if (first == nullptr)
      first = &remark;
    else
      ++more;
  }
  if (first == nullptr) return;
  api::warn(
      cat(source->path.empty() ? "" : cat("'", source->path, "': "), first->text,
          more == 0 ? "" : cat("; ", more, more == 1 ? " other operation does" : " other operations do", " the same"),
          "; precision 'exact' keeps infinities"));
}

}  // namespace moka
