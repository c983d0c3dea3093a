// SPDX-License-Identifier: Apache-2.0
#include "trace/present.h"

#include <algorithm>
#include <mutex>
#include <vector>

namespace moka::trace {

namespace {

constexpr std::string_view kKind = "loaded";

/// Never destroyed, because models may live while the process ends.
struct PresentModels {
  std::mutex mutex;
  std::vector<Present*> all;
};
PresentModels& present() {
  static auto& one = *new PresentModels;
  return one;
}

}  // namespace

Present::~Present() {
  if (!is_listed_) return;
  const std::lock_guard lock(present().mutex);
  std::erase(present().all, this);
}

void Present::list(std::string name, std::string path, double seconds) {
  const std::lock_guard lock(present().mutex);
  facts_ = {std::move(name), std::move(path), seconds, now()};
  if (!is_listed_) present().all.push_back(this);
  is_listed_ = true;
}

ModelId Present::model_of(const std::string& name) {
  if (const ModelId id = model_.load(); id != 0) return id;
  const std::lock_guard lock(present().mutex);
  if (model_.load() == 0) model_.store(add_model(name));
  return model_.load();
}

void each_present(const std::function<void(Present&, const Present::Facts&)>& f) {
  const std::lock_guard lock(present().mutex);
  for (Present* p : present().all) f(*p, p->facts_);
}

void record_present() {
  each_present([](Present& p, const Present::Facts& facts) {
    if (p.model() == 0) p.set_model(add_model(facts.name));
    const Use use(p.model());
    const int64_t at = now();
    slice(Lane::activity,
          label("loaded before", kKind,
                {{"path", facts.path}, {"load_ns", static_cast<int64_t>(std::min(facts.seconds, 1e6) * 1e9)}}),
          at, at);
  });
}

bool is_presence(const Event& event) {
  return event.kind == Event::Kind::slice && event.from == event.to && event.label->kind == kKind;
}

void hold_present() { present().mutex.lock(); }
void release_present() { present().mutex.unlock(); }

}  // namespace moka::trace
