#include <algorithm>

#include "plan/plan.h"

namespace moka::plan {

namespace {

class Sharer {
 public:
  explicit Sharer(Plan& plan) : plan_(plan), places_(plan.places) {}

  void join() {
    for (size_t s = plan_.steps.size(); s-- > 0;) {
      Step& step = plan_.steps[s];
      if (step.kind != Step::Kind::run || step.choice->joins.empty()) continue;
      size_t there = 0;
      for (const kernel::Part& j : step.choice->joins) {
        const int i = step.in[static_cast<size_t>(j.in)];
        if (place(i).storage != Storage::arena || place(i).root != i || !place(i).type.is_tensor()) continue;
        place_in(place(i), place(step.out[0]), j.offset);
        there++;
      }
      if (there == step.choice->joins.size()) step.kind = Step::Kind::placed;
    }
    flatten();
  }

  void take_over() {
    for (size_t s = 0; s < plan_.steps.size(); s++) {
      const Step& step = plan_.steps[s];
      if (step.kind == Step::Kind::loop)
        for (size_t i = 0; i < step.out.size(); i++) take_list(static_cast<int>(s), step.in[i], step.out[i]);
      if (step.kind != Step::Kind::run || step.choice->in_place < 0 || step.out.size() != 1) continue;
      if (place(step.out[0]).type.is_list()) {
        take_list(static_cast<int>(s), step.in[static_cast<size_t>(step.choice->in_place)], step.out[0]);
        continue;
      }
      const Origin in = origin(step.in[static_cast<size_t>(step.choice->in_place)]);
      const int out = step.out[0];
      if (origin(out).root != out) continue;
      if (std::count_if(step.in.begin(), step.in.end(), [&](int i) { return origin(i).root == in.root; }) > 1) continue;
      Place &a = place(in.root), &b = place(out);
      if (a.storage != Storage::arena || b.storage != Storage::arena || a.last != static_cast<int>(s) ||
          a.bytes < in.delta + b.bytes)
        continue;
      b.root = in.root;
      b.delta = in.delta;
      a.last = std::max(a.last, b.last);
    }
    flatten();
  }

  /// Computes the new content of a state in the memory of the state if nothing reads the old content afterwards.
  void keep_in_states() {
    for (size_t s = 0; s < plan_.steps.size(); s++) {
      Step& step = plan_.steps[s];
      if (!is_state_store(plan_, step)) continue;
      const Origin given = origin(step.in[0]);
      const int state = origin(step.out[0]).root;
      Place &from = place(given.root), &to = place(state);
      if (from.storage != Storage::arena || from.device != to.device || given.delta != 0 ||
          !from.layout.is_row_major() || from.bytes != place(step.in[0]).bytes)
        continue;
      const Step& first = plan_.steps[static_cast<size_t>(from.first)];
      const auto reads = [&](int i) { return origin(i).root == state; };
      const bool updates = first.kind == Step::Kind::run && first.choice->in_place >= 0 &&
                           reads(first.in[static_cast<size_t>(first.choice->in_place)]) &&
                           std::count_if(first.in.begin(), first.in.end(), reads) == 1;
      if (to.last > from.first || (to.last == from.first && !updates)) continue;
      from.root = state;
      from.storage = to.storage;
      step.kind = Step::Kind::placed;
      std::erase(plan_.regions[static_cast<size_t>(step.region)].steps, static_cast<int>(s));
      to.last = std::max(to.last, from.last);
    }
    flatten();
  }

 private:
  struct Origin {
    int root;
    size_t delta;
  };

  /// A list that has no reader after step `s` becomes its result. Filling a list then copies none of its elements.
  void take_list(int s, int in, int out) {
    if (!place(out).type.is_list() || place(out).root != out || place(out).storage != Storage::object) return;
    const int root = origin(in).root;
    Place& a = place(root);
    if (a.last != s) return;
    const auto& inputs = plan_.steps[static_cast<size_t>(s)].in;
    if (std::count_if(inputs.begin(), inputs.end(), [&](int i) { return origin(i).root == root; }) > 1) return;
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
