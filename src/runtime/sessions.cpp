// SPDX-License-Identifier: Apache-2.0
#include "runtime/sessions.h"

#include <algorithm>

#include "base/processors.h"
#include "base/wait.h"

namespace moka::runtime {

namespace {
/// Sessions that this thread uses: a prediction within another one must not wait for it.
thread_local int used_here = 0;
}  // namespace

Session::Session(std::shared_ptr<const plan::Plan> of, size_t inputs)
    : plan(std::move(of)),
      staging(inputs),
      string_staging(inputs),
      fitters(inputs),
      counted(plan->memory.arena_bytes) {}

size_t Session::bytes() const {
  size_t n = frame == nullptr ? 0 : frame->bytes();
  for (const auto& s : staging) n += s.capacity();
  for (const auto& f : fitters) n += f == nullptr ? 0 : f->bytes();
  return n;
}

Result<std::byte*> Session::staging_for(size_t i, const ir::Type& type) {
  const size_t bytes = MOKA_TRY(ir::storage_bytes(type.dtype(), type.shape()));
  auto& buffer = staging[i];
  if (buffer.size() < bytes + 64) buffer.resize(bytes + 64);
  const auto at = reinterpret_cast<uintptr_t>(buffer.data());
  return buffer.data() + (64 - at % 64) % 64;
}

void SessionPool::shrink(size_t bytes, size_t count, Sessions& dropped) {
  size_t drop = 0;
  while (drop < idle_.size() && (idle_bytes_ > bytes || idle_.size() - drop > count)) {
    idle_bytes_ -= idle_[drop]->counted;
    dropped.push_back(std::move(idle_[drop++]));
  }
  idle_.erase(idle_.begin(), idle_.begin() + static_cast<std::ptrdiff_t>(drop));
}

Result<std::unique_ptr<Session>> SessionPool::take(const plan::Plan& plan, const Stop* stop) {
  const size_t needed = plan.memory.arena_bytes;
  std::unique_ptr<Session> session;
  Sessions dropped;
  std::unique_lock lock(mutex_);
  auto found = idle_.rend();
  const auto may_go_on = [&] {
    found = std::find_if(idle_.rbegin(), idle_.rend(), [&](const auto& s) { return s->plan.get() == &plan; });
    return found != idle_.rend() || used_here > 0 || used_ < static_cast<size_t>(processors()) ||
           used_bytes_ + needed <= limit_;
  };
  if (!may_go_on()) {
    const trace::Span span(trace::Lane::activity, "wait for memory");
    const trace::Counted waits(trace::Counter::queue);
    MOKA_TRY(wait(released_, lock, stop, may_go_on));
  }
  if (found != idle_.rend()) {
    session = std::move(*found);
    idle_.erase(std::next(found).base());
    idle_bytes_ -= session->counted;
  }
  used_++;
  used_here++;
  used_bytes_ += session != nullptr ? session->counted : needed;
  recent_bytes_ = std::max(recent_bytes_, used_bytes_);
  if (session == nullptr) shrink(std::max(limit_, recent_bytes_) - used_bytes_, most_idle_, dropped);
  lock.unlock();
  return session;
}

void SessionPool::give_up(const plan::Plan& plan) {
  {
    const std::lock_guard lock(mutex_);
    used_bytes_ -= plan.memory.arena_bytes;
    used_--;
    used_here--;
  }
  released_.notify_all();
}

void SessionPool::give_back(std::unique_ptr<Session> session) {
  const size_t bytes = session->bytes();
  Sessions dropped;
  {
    const std::lock_guard lock(mutex_);
    used_bytes_ -= session->counted;
    used_--;
    used_here--;
    session->counted = bytes;
    idle_bytes_ += bytes;
    idle_.push_back(std::move(session));
    recent_bytes_ = std::max(used_bytes_ + bytes, recent_bytes_ - recent_bytes_ / 64);
    const size_t most = used_ == 0 ? limit_ : std::max(limit_, recent_bytes_);
    shrink(std::max(most - std::min(most, used_bytes_), bytes), most_idle_, dropped);
  }
  released_.notify_all();
}

void SessionPool::discard(std::unique_ptr<Session> session) {
  {
    const std::lock_guard lock(mutex_);
    used_bytes_ -= session->counted;
    used_--;
    used_here--;
  }
  session.reset();
  released_.notify_all();
}

bool SessionPool::drop_idle() {
  Sessions dropped;
  const std::lock_guard lock(mutex_);
  dropped.swap(idle_);
  idle_.reserve(most_idle_ + 1);
  for (const auto& s : dropped) idle_bytes_ -= s->counted;
  return !dropped.empty();
}

size_t SessionPool::bytes() {
  const std::lock_guard lock(mutex_);
  return used_bytes_ + idle_bytes_;
}

void SessionPool::keep_only(const std::vector<std::shared_ptr<const plan::Plan>>& plans) {
  Sessions dropped;
  const std::lock_guard lock(mutex_);
  for (auto& s : idle_) {
    if (std::find(plans.begin(), plans.end(), s->plan) != plans.end()) continue;
    idle_bytes_ -= s->counted;
    dropped.push_back(std::move(s));
  }
  std::erase(idle_, nullptr);
}

}  // namespace moka::runtime
