// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "plan/sequence.h"

namespace moka::plan {

namespace {

class Sharer {
 public:
  explicit Sharer(Sequence& sequence) : sequence_(sequence), places_(sequence.places) {}

  void join() {
    for (size_t s = sequence_.steps.size(); s-- > 0;) {
      join(sequence_.steps[s]);
      if (const Launch* launch = std::get_if<Launch>(&sequence_.steps[s])) {
        auto& steps = sequence_.regions[static_cast<size_t>(launch->region)].steps;
        for (size_t i = steps.size(); i-- > 0;) join(steps[i]);
      }
    }
    flatten();
  }

  void take_over() {
    lives_ = lifetimes(sequence_);
    for_each_step(sequence_, [&]<class One>(int s, const One& step, int) {
      if constexpr (std::is_same_v<One, Loop>)
        for (size_t i = 0; i < step.out.size(); i++) take_list(s, step, step.in[i], step.out[i]);
      if constexpr (std::is_same_v<One, Run>)
        if (step.choice->in_place >= 0 && step.out.size() == 1) take_input(s, step);
    });
    flatten();
  }

  /// Computes the new content of a state in the memory of the state if nothing reads the old content afterwards.
  void keep_in_states() {
    std::vector<const Run*> runs;  // by number of the step
    for_each_step(sequence_, [&]<class One>(int, const One& step, int) {
      runs.push_back(nullptr);
      if constexpr (std::is_same_v<One, Run>) runs.back() = &step;
    });
    std::vector<const DeviceConvert*> done;
    for_each_step(sequence_, [&]<class One>(int, const One& step, int) {
      if constexpr (std::is_same_v<One, DeviceConvert>)
        if (is_state_store(sequence_, step) && keep_in_state(step, runs)) done.push_back(&step);
    });
    for (Region& r : sequence_.regions)
      std::erase_if(r.steps, [&](const RegionStep& step) {
        return std::find(done.begin(), done.end(), std::get_if<DeviceConvert>(&step)) != done.end();
      });
    flatten();
  }

 private:
  struct Origin {
    int root;
    size_t delta;
  };

  template <class AnyStep>
  void join(AnyStep& step) {
    Run* const run = std::get_if<Run>(&step);
    if (run == nullptr || run->choice->joins.empty()) return;
    size_t there = 0;
    for (const kernel::Part& j : run->choice->joins) {
      const int i = run->in[static_cast<size_t>(j.in)];
      if (!place(i).is<InArena>() || place(i).root != i || !place(i).type.is_tensor()) continue;
      place_in(place(i), place(run->out[0]), j.offset);
      there++;
    }
    if (there != run->choice->joins.size()) return;
    KernelCall call = std::move(*run);
    step = Placed{std::move(call)};
  }

  /// The result of step `s` takes over the storage of an input that nothing reads later.
  void take_input(int s, const Run& step) {
    const int i = step.in[static_cast<size_t>(step.choice->in_place)], out = step.out[0];
    if (place(out).type.is_list()) return take_list(s, step, i, out);
    const Origin in = origin(i);
    if (origin(out).root != out) return;
    if (std::count_if(step.in.begin(), step.in.end(), [&](int k) { return origin(k).root == in.root; }) > 1) return;
    Place &a = place(in.root), &b = place(out);
    if (!a.is<InArena>() || !b.is<InArena>() || life(in.root).last != s || bytes_of(a) < in.delta + bytes_of(b)) return;
    b.root = in.root;
    b.delta = in.delta;
    outlive(in.root, out);
  }

  /// False: the store is still needed.
  bool keep_in_state(const DeviceConvert& store, std::span<const Run* const> runs) {
    const Origin given = origin(store.from);
    const int state = origin(store.to).root;
    Place &from = place(given.root), &to = place(state);
    if (!from.is<InArena>() || from.device != to.device || given.delta != 0 || !from.layout.is_row_major() ||
        bytes_of(from) != bytes_of(place(store.from)))
      return false;
    const int begin = life(given.root).first;
    const Run* first = runs[static_cast<size_t>(begin)];
    const auto reads = [&](int i) { return origin(i).root == state; };
    const bool updates = first != nullptr && first->choice->in_place >= 0 &&
                         reads(first->in[static_cast<size_t>(first->choice->in_place)]) &&
                         std::count_if(first->in.begin(), first->in.end(), reads) == 1;
    const int last = life(state).last;
    if (last > begin || (last == begin && !updates)) return false;
    from.root = state;
    from.storage = to.storage;
    outlive(state, given.root);
    return true;
  }

  /// A list that has no reader after step `s` becomes its result. Filling a list then copies none of its elements.
  void take_list(int s, const Call& step, int in, int out) {
    if (!place(out).type.is_list() || place(out).root != out || !place(out).is<Object>()) return;
    const int root = origin(in).root;
    Place& a = place(root);
    if (life(root).last != s) return;
    if (std::count_if(step.in.begin(), step.in.end(), [&](int i) { return origin(i).root == root; }) > 1) return;
    if (a.is<External>()) {
      // A loop owns its variables, but a variable that is passed on in another one's place still has a reader.
      const auto variable = std::find(sequence_.inputs.begin(), sequence_.inputs.end(), root);
      if (!sequence_.own_outputs || variable == sequence_.inputs.end()) return;
      for (size_t k = 0; k < sequence_.outputs.size(); k++)
        if (origin(sequence_.outputs[k]).root == out && sequence_.inputs[k] != *variable) return;
    } else if (!a.is<Object>()) {
      return;
    }
    Place& b = place(out);
    b.storage = a.storage;
    b.root = root;
    outlive(root, out);
  }

  Lifetime& life(int root) { return lives_[static_cast<size_t>(root)]; }
  /// `root` now lives as long as `other`, which it holds.
  void outlive(int root, int other) { life(root).last = std::max(life(root).last, life(other).last); }
  Place& place(int i) { return places_[static_cast<size_t>(i)]; }

  Origin origin(int i) {
    size_t delta = 0;
    for (; place(i).root != i; i = place(i).root) delta += place(i).delta;
    return {i, delta};
  }

  void flatten() {
    for (size_t i = 0; i < places_.size(); i++) {
      const Origin o = origin(static_cast<int>(i));
      places_[i].root = o.root;
      places_[i].delta = o.delta;
      if (places_[i].is<InArena>()) places_[i].storage = place(o.root).storage;
    }
  }

  Sequence& sequence_;
  std::vector<Place>& places_;
  std::vector<Lifetime> lives_;  ///< of roots, kept up to date
};

}  // namespace

void place_in(Place& part, const Place& whole, size_t offset) {
  part.storage = whole.storage;
  part.root = whole.root;
  part.delta = whole.delta + offset;
}

void place_parts(Sequence& sequence) { Sharer(sequence).join(); }

void share_in_place(Sequence& sequence) {
  Sharer sharer(sequence);
  sharer.take_over();
  sharer.keep_in_states();
}

}  // namespace moka::plan
