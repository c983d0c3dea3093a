// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/shared_memory.h"
#include "plan/sequence.h"
#include "runtime/frame.h"

/// Values that cross between host and device without a copy: where a device computes in the host's memory, its regions
/// read and write the arena of the frame, and shared memory that the caller gives (base/shared_memory.h).
namespace moka::runtime {

using plan::Place;

namespace {

constexpr size_t kMostCompiled = 4;  ///< besides the current one: a caller may take turns among a few buffers

/// The places of a device that lie in the memory of a crossing's value.
class CrossingPlaces {
 public:
  explicit CrossingPlaces(const plan::Sequence& sequence) : sequence_(sequence), copied_(sequence) {
    for (size_t r = 0; r < sequence.regions.size(); r++)
      for (const plan::RegionStep& step : sequence.regions[r].steps)
        std::visit(
            [&](const auto& one) {
              for (int i : plan::reads_of(sequence, one)) used_[root(i)].push_back(r);
              for (int i : plan::writes_of(sequence, one)) {
                used_[root(i)].push_back(r);
                if (!std::is_same_v<std::decay_t<decltype(one)>, plan::Placed>) written_[root(i)].push_back(i);
              }
            },
            step);
    for (size_t r = 0; r < sequence.regions.size(); r++)
      for (const auto* list : {&sequence.regions[r].uploads, &sequence.regions[r].downloads})
        for (int i : *list) used_[root(i)].push_back(r);
  }

  /// Those of an upload, which are only read; empty: it is copied.
  std::vector<std::pair<int, size_t>> of_upload(const plan::Upload& step) const {
    const int at = sequence_.region(step.to.region).uploads[step.to.index];
    std::vector<std::pair<int, size_t>> found;
    if (!may_move(at, step.to.region) || root(at) != at) return found;
    // The host may read a result long after the region has run, when it has given the memory of the upload away.
    for (int i : sequence_.region(step.to.region).downloads)
      if (root(i) == at && is_view(i, at)) return found;
    for (size_t i = 0; i < sequence_.places.size(); i++)
      if (const int p = static_cast<int>(i); root(p) == at && is_view(p, at)) found.emplace_back(p, place(p).delta);
    return found;
  }

  /// Those of a download: all of its storage but what an upload has there.
  std::vector<std::pair<int, size_t>> of_download(const plan::Download& step) const {
    const plan::Region& region = sequence_.region(step.from.region);
    const int at = region.downloads[step.from.index], whole = root(at);
    std::vector<std::pair<int, size_t>> found;
    if (!may_move(at, step.from.region) || is_read_twice(step.from) ||
        std::count_if(region.downloads.begin(), region.downloads.end(), [&](int i) { return root(i) == whole; }) > 1)
      return found;
    const bool is_upload = std::find(region.uploads.begin(), region.uploads.end(), whole) != region.uploads.end();
    const size_t begin = place(at).delta, end = begin + plan::bytes_of(place(at));
    for (size_t i = 0; i < sequence_.places.size(); i++) {
      const int p = static_cast<int>(i);
      if (root(p) != whole || (is_upload && is_view(p, whole))) continue;
      if (place(p).delta < begin || place(p).delta + plan::bytes_of(place(p)) > end) return {};
      found.emplace_back(p, place(p).delta - begin);
    }
    return found;
  }

 private:
  const Place& place(int i) const { return sequence_.place(i); }
  int root(int i) const { return place(i).root; }

  /// Whether several steps read the result, of which one may come when the memory of the first is given away.
  bool is_read_twice(const plan::Slot& slot) const {
    return std::count_if(sequence_.steps.begin(), sequence_.steps.end(), [&](const plan::Step& step) {
             const plan::Slot* from = nullptr;
             if (const auto* down = std::get_if<plan::Download>(&step)) from = &down->from;
             if (const auto* over = std::get_if<plan::Transfer>(&step)) from = &over->from;
             return from != nullptr && from->region == slot.region && from->index == slot.index;
           }) > 1;
  }

  /// Whether the storage is the region's alone.
  bool may_move(int at, int region) const {
    if (!place(at).is<plan::InArena>() || !place(at).type.is_tensor()) return false;
    const auto used = used_.find(root(at));
    return used != used_.end() && std::all_of(used->second.begin(), used->second.end(),
                                              [&](size_t r) { return r == static_cast<size_t>(region); });
  }

  /// Whether place `p` of the same storage has the bytes of the upload `at`, and not of a result that replaced them.
  bool is_view(int p, int at) const {
    if (p == at) return true;
    std::vector<int> written;
    if (const auto found = written_.find(at); found != written_.end()) written = found->second;
    if (std::find(written.begin(), written.end(), p) != written.end()) return false;
    const auto is_written = [&](const ir::Value* v) {
      return std::any_of(written.begin(), written.end(), [&](int i) { return copied_.of(i) == v; });
    };
    const ir::Value* const whole = copied_.of(at);
    for (const ir::Value* v = copied_.of(p); v != nullptr && v != whole;) {
      const ir::Op* op = v->producer();
      if (is_written(v) || op == nullptr || op->operands().empty() || op->operands()[0].values.empty()) return false;
      v = op->operands()[0].values[0];
      if (v == whole) return true;
    }
    return copied_.of(p) == whole;
  }

  const plan::Sequence& sequence_;
  const plan::CopiedValues copied_;
  std::unordered_map<int, std::vector<size_t>> used_;  ///< by root: regions
  std::unordered_map<int, std::vector<int>> written_;  ///< by root: places that steps write
};

}  // namespace

void Frame::find_crossings() {
  const auto shares = [&](const kernel::Device* device) {
    return std::any_of(plan_->memory.devices.begin(), plan_->memory.devices.end(),
                       [&](const plan::DeviceArena& a) { return a.device == device && a.shares_host; });
  };
  if (std::none_of(sequence_.regions.begin(), sequence_.regions.end(),
                   [&](const plan::Region& r) { return shares(r.device); }))
    return;
  const CrossingPlaces places(sequence_);
  for (size_t s = 0; s < sequence_.steps.size(); s++) {
    Crossing c{s};
    if (const auto* up = std::get_if<plan::Upload>(&sequence_.steps[s])) {
      c.device = sequence_.region(up->to.region).device;
      c.bytes = plan::bytes_of(sequence_.place(sequence_.region(up->to.region).uploads[up->to.index]));
      c.is_upload = true;
      const bool is_picture = std::any_of(sequence_.pixels.begin(), sequence_.pixels.end(),
                                          [&](const auto& p) { return p.place == up->from; });
      if (shares(c.device) && !is_picture) c.places = places.of_upload(*up);
    } else if (const auto* down = std::get_if<plan::Download>(&sequence_.steps[s])) {
      c.device = sequence_.region(down->from.region).device;
      c.bytes = plan::bytes_of(sequence_.place(down->to));
      const Place& from = sequence_.place(sequence_.region(down->from.region).downloads[down->from.index]);
      if (shares(c.device) && plan::bytes_of(from) == c.bytes) c.places = places.of_download(*down);
    }
    if (!c.places.empty() && c.bytes > 0) crossings_.push_back(std::move(c));
  }
}

const Frame::Shared* Frame::shared_of(const kernel::Device& device, const std::byte* data, size_t bytes) {
  std::shared_ptr<std::byte> pages;
  std::shared_ptr<const void> memory;
  size_t size = 0;
  std::byte* const arena = arena_.get();
  if (data >= arena && data + bytes <= arena + arena_bytes_) {
    memory = pages = arena_;
    size = arena_bytes_;
  } else if (const auto found = SharedMemory::find(data, bytes); found != nullptr && found->pages() != nullptr) {
    memory = found;
    pages = found->pages();
    size = found->page_bytes();
  } else {
    return nullptr;
  }
  for (const Shared& s : shared_)
    if (s.device == &device && s.first == pages.get() && s.bytes == size) return s.buffer != nullptr ? &s : nullptr;
  auto buffer = device.memory()->share(pages, size);
  shared_.push_back({&device, memory, pages.get(), size, buffer.ok() ? std::move(*buffer) : nullptr});
  return shared_.back().buffer != nullptr ? &shared_.back() : nullptr;
}

Frame::Bound Frame::bound_of(const Crossing& c) {
  const StepData& data = steps_[c.step];
  const auto* at = static_cast<const std::byte*>(c.is_upload ? data.in[0].data : data.out[0].data);
  const size_t alignment = c.device->memory()->alignment();
  const Shared* shared = shared_of(*c.device, at, c.bytes);
  if (shared == nullptr) return {};
  const auto offset = static_cast<size_t>(at - shared->first);
  if (offset % alignment != 0) return {};
  return {shared->buffer, offset};
}

Status Frame::bind_crossings() {
  // Memory that the caller has given up goes with what is compiled for it.
  std::erase_if(shared_, [](const Shared& s) { return s.memory.expired(); });
  std::vector<Bound> now;
  for (const Crossing& c : crossings_) now.push_back(bound_of(c));
  if (std::all_of(now.begin(), now.end(), [](const Bound& b) { return b.buffer == nullptr; })) now.clear();
  if (now == bound_) return {};
  const auto is_alive = [&](const Bound& b) {
    return b.buffer == nullptr ||
           std::any_of(shared_.begin(), shared_.end(), [&](const Shared& s) { return s.buffer == b.buffer; });
  };
  if (!submissions_.empty()) compiled_.insert(compiled_.begin(), {std::move(bound_), std::move(submissions_)});
  submissions_.clear();
  command_labels_.clear();
  std::erase_if(compiled_, [&](const Compiled& c) { return !std::all_of(c.bound.begin(), c.bound.end(), is_alive); });
  bound_ = std::move(now);
  bound_places_.assign(bound_.empty() ? 0 : sequence_.places.size(), {});
  for (size_t i = 0; i < bound_.size(); i++)
    if (bound_[i].buffer != nullptr)
      for (const auto& [place, delta] : crossings_[i].places)
        bound_places_[static_cast<size_t>(place)] = {bound_[i].buffer, bound_[i].offset + delta};
  const auto before =
      std::find_if(compiled_.begin(), compiled_.end(), [&](const Compiled& c) { return c.bound == bound_; });
  if (before != compiled_.end()) {
    submissions_ = std::move(before->submissions);
    compiled_.erase(before);
  }
  while (compiled_.size() > kMostCompiled) compiled_.pop_back();
  return {};
}

bool Frame::is_shared(size_t s) const {
  if (bound_.empty()) return false;
  for (size_t i = 0; i < crossings_.size(); i++)
    if (crossings_[i].step == s) return bound_[i].buffer != nullptr;
  return false;
}

}  // namespace moka::runtime
