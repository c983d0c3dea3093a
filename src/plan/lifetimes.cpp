// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <climits>

#include "kernel/device.h"
#include "kernel/memory.h"
#include "plan/resolve.h"
#include "plan/sequence.h"

namespace moka::plan {

namespace {

class Lifetimes {
 public:
  explicit Lifetimes(const Sequence& sequence)
      : sequence_(sequence), lives_(sequence.places.size()), first_(sequence.regions.size()) {}

  std::vector<Lifetime> find() {
    int region = -1;  // whose steps are visited
    for_each_step(sequence_, [&]<class One>(int s, const One& step, int r) {
      if (r >= 0 && r != region) first_[static_cast<size_t>(r)] = s;
      region = r;
      for (int i : reads_of(sequence_, step)) touch(i, s);
      if constexpr (std::is_same_v<One, DeviceConvert>) {
        // Storing to a state does not extend its lifetime: the state is only read before.
        if (!is_state_store(sequence_, step)) touch(step.to, s);
      } else {
        for (int i : writes_of(sequence_, step)) touch(i, s);
      }
      keep_while_regions_run(s, step);
    });
    for (const Region& r : sequence_.regions) keep_for_joined(r);
    keep_what_is_shared();
    const int end = count_steps(sequence_);
    for (int i : sequence_.outputs) touch(i, end);
    if (sequence_.is_complete()) return std::move(lives_);
    for (int i : call_of(*sequence_.pending)->in) touch(i, end);
    for (const ir::Value* v : used_from(*sequence_.block, sequence_.pending_op()))
      if (auto it = sequence_.place_of.find(v); it != sequence_.place_of.end()) touch(it->second, end);
    return std::move(lives_);
  }

 private:
  void touch(int i, int step) {
    Lifetime& life = lives_[static_cast<size_t>(sequence_.place(i).root)];
    life.first = std::min(life.first, step);
    life.last = std::max(life.last, step);
  }

  template <class One>
  void keep_while_regions_run(int s, const One& step) {
    if constexpr (std::is_same_v<One, Launch>) {
      const Region& r = sequence_.region(step.region);
      if (r.steps.empty()) first_[static_cast<size_t>(step.region)] = s;
      for (int i : r.uploads) touch(i, first_[static_cast<size_t>(step.region)]);
      for (int i : r.downloads) touch(i, s);
      running_.push_back(step.region);
    } else if constexpr (std::is_same_v<One, Wait>) {
      // A queue runs its regions in order, so regions before a finished one are finished too.
      std::erase_if(running_, [&](int r) {
        return r <= step.region && sequence_.region(r).device == sequence_.region(step.region).device;
      });
    } else if constexpr (std::is_same_v<One, Upload> || std::is_same_v<One, Transfer>) {
      // When host and device share memory, an upload is written at once, while other regions may still run.
      const Region& to = sequence_.region(step.to.region);
      for (int r : running_)
        if (sequence_.region(r).device == to.device) touch(to.uploads[step.to.index], first_[static_cast<size_t>(r)]);
    }
  }

  /// A device that computes in the host's memory reads uploads and writes downloads there while a region runs.
  void keep_what_is_shared() {
    std::vector<std::vector<int>> downloads(sequence_.regions.size()), uploads(sequence_.regions.size());
    const auto shares = [&](int r) { return sequence_.region(r).device->memory()->share_alignment() != 0; };
    for (const Step& step : sequence_.steps) {
      if (const Upload* up = std::get_if<Upload>(&step); up != nullptr && shares(up->to.region))
        uploads[static_cast<size_t>(up->to.region)].push_back(up->from);
      if (const Download* down = std::get_if<Download>(&step); down != nullptr && shares(down->from.region))
        downloads[static_cast<size_t>(down->from.region)].push_back(down->to);
    }
    std::vector<int> unfinished;
    const auto finish = [&](int r, int s) {
      for (int i : uploads[static_cast<size_t>(r)]) touch(i, s);
    };
    for_each_step(sequence_, [&]<class One>(int s, const One& step, int) {
      if constexpr (std::is_same_v<One, Launch>) {
        for (int i : downloads[static_cast<size_t>(step.region)]) touch(i, s);
        unfinished.push_back(step.region);
      } else if constexpr (std::is_same_v<One, Wait>) {
        std::erase_if(unfinished, [&](int r) {
          const bool is_done = r <= step.region && sequence_.region(r).device == sequence_.region(step.region).device;
          if (is_done) finish(r, s);
          return is_done;
        });
      }
    });
    for (int r : unfinished) finish(r, count_steps(sequence_));
  }

  /// A device that computes an operation while its result is read needs its inputs until then.
  void keep_for_joined(const Region& r) {
    struct Reader {
      int number;
      const kernel::KernelChoice* choice;
    };
    const int first = first_[static_cast<size_t>(&r - sequence_.regions.data())];
    std::unordered_map<int, Reader> reader;  // by place: the last one
    const auto visit = [&](auto&& of) {
      for (size_t k = 0; k < r.steps.size(); k++) {
        const int s = first + static_cast<int>(k);
        if (const Run* run = std::get_if<Run>(&r.steps[k]))
          of(s, std::span(run->in), std::span(run->out), *run->choice);
        else if (const DeviceConvert* convert = std::get_if<DeviceConvert>(&r.steps[k]))
          of(s, std::span(&convert->from, 1), std::span(&convert->to, 1), *convert->choice);
      }
    };
    visit([&](int s, std::span<const int> in, std::span<const int>, const kernel::KernelChoice& choice) {
      for (int i : in) reader[i] = {s, &choice};
    });
    visit([&](int s, std::span<const int> in, std::span<const int> out, const kernel::KernelChoice& choice) {
      const auto at = out.size() == 1 ? reader.find(out[0]) : reader.end();
      if (at == reader.end() || at->second.number <= s) return;
      if (!r.device->may_join(choice, *at->second.choice)) return;
      for (int i : in) touch(i, at->second.number);
    });
  }

  const Sequence& sequence_;
  std::vector<Lifetime> lives_;
  std::vector<int> first_;    ///< by region: the number of its first step
  std::vector<int> running_;  ///< regions
};

}  // namespace

std::vector<Lifetime> lifetimes(const Sequence& sequence) { return Lifetimes(sequence).find(); }

}  // namespace moka::plan
