#include <algorithm>

#include "plan/plan.h"

namespace moka::plan {

namespace {

class Sharer {
 public:
  explicit Sharer(Plan& plan) : plan_(plan), places_(plan.places) {}

  void join() {
    for (size_t s = plan_.steps.size(); s-- > 0;) {
      join(plan_.steps[s]);
      if (const Launch* launch = std::get_if<Launch>(&plan_.steps[s])) {
        auto& steps = plan_.regions[static_cast<size_t>(launch->region)].steps;
        for (size_t i = steps.size(); i-- > 0;) join(steps[i]);
      }
    }
    flatten();
  }

  void take_over() {
    for_each_step(plan_, [&]<class One>(int s, const One& step, int) {
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
    for_each_step(plan_, [&]<class One>(int, const One& step, int) {
      runs.push_back(nullptr);
      if constexpr (std::is_same_v<One, Run>) runs.back() = &step;
    });
    std::vector<const DeviceConvert*> done;
    for_each_step(plan_, [&]<class One>(int, const One& step, int) {
      if constexpr (std::is_same_v<One, DeviceConvert>)
        if (is_state_store(plan_, step) && keep_in_state(step, runs)) done.push_back(&step);
    });
    for (Region& r : plan_.regions)
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
      if (place(i).storage != Storage::arena || place(i).root != i || !place(i).type.is_tensor()) continue;
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
    if (a.storage != Storage::arena || b.storage != Storage::arena || a.last != s || a.bytes < in.delta + b.bytes)
      return;
    b.root = in.root;
    b.delta = in.delta;
    a.last = std::max(a.last, b.last);
  }

  /// False: the store is still needed.
  bool keep_in_state(const DeviceConvert& store, std::span<const Run* const> runs) {
    const Origin given = origin(store.from);
    const int state = origin(store.to).root;
    Place &from = place(given.root), &to = place(state);
    if (from.storage != Storage::arena || from.device != to.device || given.delta != 0 || !from.layout.is_row_major() ||
        from.bytes != place(store.from).bytes)
      return false;
    const Run* first = runs[static_cast<size_t>(from.first)];
    const auto reads = [&](int i) { return origin(i).root == state; };
    const bool updates = first != nullptr && first->choice->in_place >= 0 &&
                         reads(first->in[static_cast<size_t>(first->choice->in_place)]) &&
                         std::count_if(first->in.begin(), first->in.end(), reads) == 1;
    if (to.last > from.first || (to.last == from.first && !updates)) return false;
    from.root = state;
    from.storage = to.storage;
    to.last = std::max(to.last, from.last);
    return true;
  }

  /// A list that has no reader after step `s` becomes its result. Filling a list then copies none of its elements.
  void take_list(int s, const Call& step, int in, int out) {
    if (!place(out).type.is_list() || place(out).root != out || place(out).storage != Storage::object) return;
    const int root = origin(in).root;
    Place& a = place(root);
    if (a.last != s) return;
    if (std::count_if(step.in.begin(), step.in.end(), [&](int i) { return origin(i).root == root; }) > 1) return;
    if (a.storage == Storage::external) {
      // A loop owns its variables, but a variable that is passed on in another one's place still has a reader.
      const auto variable = std::find(plan_.inputs.begin(), plan_.inputs.end(), root);
      if (!plan_.own_outputs || variable == plan_.inputs.end()) return;
      for (size_t k = 0; k < plan_.outputs.size(); k++)
        if (origin(plan_.outputs[k]).root == out && plan_.inputs[k] != *variable) return;
    } else if (a.storage != Storage::object) {
      return;
    }
    Place& b = place(out);
    b.storage = a.storage;
    b.object = a.object;
    b.root = root;
    a.last = std::max(a.last, b.last);
  }

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
    }
  }

  Plan& plan_;
  std::vector<Place>& places_;
};

}  // namespace

void place_in(Place& part, const Place& whole, size_t offset) {
  part.storage = whole.storage;
  part.root = whole.root;
  part.delta = whole.delta + offset;
}

void place_parts(Plan& plan) { Sharer(plan).join(); }

void share_in_place(Plan& plan) {
  Sharer sharer(plan);
  sharer.take_over();
  sharer.keep_in_states();
}

}  // namespace moka::plan
