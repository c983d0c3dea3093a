// SPDX-License-Identifier: Apache-2.0
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <mutex>

#include "custom/layer.h"

namespace moka {

namespace {

std::atomic<bool>& checking() {
  static std::atomic<bool> on = [] {
    const char* value = std::getenv("MOKA_CHECK_LAYERS");
    return value != nullptr && std::string_view(value) == "1";
  }();
  return on;
}

constexpr unsigned char kMark = 0xa5;

/// A buffer between two inaccessible pages. The unused bytes of its own pages hold marks, which reveal small overruns.
class Guarded {
 public:
  Guarded() = default;
  Guarded(const Guarded&) = delete;
  Guarded(Guarded&& o) noexcept
      : base_(std::exchange(o.base_, nullptr)), mapped_(o.mapped_), page_(o.page_), begin_(o.begin_), size_(o.size_) {}
  ~Guarded() {
    if (base_ != nullptr) ::munmap(base_, mapped_);
  }

  static Result<Guarded> make(size_t size) {
    Guarded g;
    g.page_ = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
    // With a page of marks on each side, a small overrun gives an error instead of killing the process.
    const size_t inner = (size + g.page_ - 1) / g.page_ * g.page_ + 2 * g.page_;
    g.mapped_ = inner + 2 * g.page_;
    void* p = ::mmap(nullptr, g.mapped_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) return fail(ErrorCode::out_of_budget, "checking a layer: no room for ", size, " bytes");
    g.base_ = static_cast<unsigned char*>(p);
    std::memset(g.base_, kMark, g.mapped_);
    ::mprotect(g.base_, g.page_, PROT_NONE);
    ::mprotect(g.base_ + g.mapped_ - g.page_, g.page_, PROT_NONE);
    g.begin_ = 2 * g.page_;
    g.size_ = size;
    return g;
  }

  unsigned char* data() const { return base_ + begin_; }
  /// Bytes from the data to the nearest mark that was written over; 0: none was.
  ptrdiff_t touched() const {
    for (size_t i = begin_ + size_; i < mapped_ - page_; i++)
      if (base_[i] != kMark) return static_cast<ptrdiff_t>(i - begin_ - size_) + 1;
    for (size_t i = begin_; i > page_; i--)
      if (base_[i - 1] != kMark) return static_cast<ptrdiff_t>(i) - 1 - static_cast<ptrdiff_t>(begin_);
    return 0;
  }

 private:
  unsigned char* base_ = nullptr;
  size_t mapped_ = 0, page_ = 0, begin_ = 0, size_ = 0;
};

size_t byte_count(const ArrayView& v) { return static_cast<size_t>(v.count) * size_of(v.type); }

}  // namespace

void set_check_layers(bool on) { checking() = on; }

namespace custom {

bool checks_layers() { return checking().load(std::memory_order_relaxed); }

Status evaluate_guarded(const std::string& what, const LayerCall& call,
                        const std::function<Status(const LayerCall&)>& evaluate) {
  // Threads that compute tiles of the same outputs take turns.
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  std::vector<Guarded> memory;
  std::vector<ArrayView> in(call.inputs.begin(), call.inputs.end()), out(call.outputs.begin(), call.outputs.end());
  for (auto* list : {&in, &out})
    for (ArrayView& v : *list) {
      memory.push_back(MOKA_TRY(Guarded::make(byte_count(v))));
      if (byte_count(v) > 0) std::memcpy(memory.back().data(), v.data, byte_count(v));
      v.data = memory.back().data();
    }
  LayerCall guarded_call = call;
  guarded_call.inputs = in;
  guarded_call.outputs = out;
  MOKA_TRY(evaluate(guarded_call));
  for (size_t i = 0; i < memory.size(); i++) {
    const std::string array = i < in.size() ? cat("input ", i) : cat("output ", i - in.size());
    if (const ptrdiff_t at = memory[i].touched(); at != 0)
      return fail(ErrorCode::data, what, ", evaluate: it wrote ", at > 0 ? at : -at,
                  at > 0 ? " bytes behind the end of " : " bytes before the beginning of ", array);
    if (i < in.size() && std::memcmp(memory[i].data(), call.inputs[i].data, byte_count(in[i])) != 0)
      return fail(ErrorCode::data, what, ", evaluate: it changed ", array);
  }
  for (size_t i = 0; i < out.size(); i++)
    if (byte_count(out[i]) > 0) std::memcpy(call.outputs[i].data, out[i].data, byte_count(out[i]));
  return {};
}

}  // namespace custom

}  // namespace moka
