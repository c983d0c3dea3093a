// SPDX-License-Identifier: Apache-2.0
#include "plan/settle.h"

#include <algorithm>
#include <set>

namespace moka::plan {

Settler::Settler(Draft& draft, const PlanOptions& options) : draft_(draft), options_(options) {
  sequence_.block = draft.values.block;
  sequence_.own_outputs = draft.values.own_outputs;
  sequence_.imports = draft.values.imports;
  settled_.reserve(draft.values.places.size());
}

int Settler::add_place(Place p) {
  const int i = static_cast<int>(sequence_.places.size());
  if (p.root < 0) p.root = i;
  if (Object* object = std::get_if<Object>(&p.storage); object != nullptr && p.root == i)
    object->index = static_cast<int>(sequence_.objects++);
  sequence_.places.push_back(std::move(p));
  written_by_.push_back(-1);
  return i;
}

void Settler::settle_until(size_t end) {
  for (size_t i = settled_.size(); i < end; i++) {
    Place p = std::move(draft_.values.places[i]);
    if (p.root == static_cast<int>(i)) {
      p.root = -1;
    } else {
      const Place& root = place(settled(p.root));
      p.root = root.root;
      p.delta += root.delta;
      if (!p.is<Constant>()) p.storage = root.storage;
    }
    settled_.push_back(add_place(std::move(p)));
  }
}

void Settler::settle(std::vector<int>& draft_places) const {
  for (int& i : draft_places) i = settled(i);
}

template <class Kind>
void Settler::add_call(Kind step) {
  settle(step.in);
  settle(step.out);
  const Device* memory = step.device->memory() != nullptr ? step.device : nullptr;
  const bool is_open = open_ >= 0 && region(open_).device == memory;
  if (memory == nullptr || !is_open)
    add_step(std::move(step));
  else
    region(open_).steps.emplace_back(std::move(step));
}

template <class Kind>
void Settler::add_control(Kind step) {
  settle(step.in);
  settle(step.out);
  add_step(std::move(step));
}

Status Settler::settle(Draft::Entry& entry) {
  if (const Relocate* relocate = std::get_if<Relocate>(&entry.step)) {
    settle_until(static_cast<size_t>(relocate->to));
    const Place& to = draft_.values.place(relocate->to);
    settled_.push_back(MOKA_TRY(place_at(settled(relocate->from), {to.device, to.layout})));
    return {};
  }
  settle_until(entry.places);
  if (Run* run = std::get_if<Run>(&entry.step)) {
    if (run->device->memory() != nullptr) {
      const int r = region_of(*run->device);
      for (int i : run->out) writer_of(settled(i)) = r;
    }
    add_call(std::move(*run));
  } else if (Placed* placed = std::get_if<Placed>(&entry.step)) {
    add_call(std::move(*placed));
  } else {
    close_region();
    if (Cond* cond = std::get_if<Cond>(&entry.step)) add_control(std::move(*cond));
    if (Loop* loop = std::get_if<Loop>(&entry.step)) add_control(std::move(*loop));
  }
  return {};
}

Status Settler::finish_outputs() {
  // The old content of states is read before the states are written.
  for (int i : sequence_.outputs)
    if (place(i).device != nullptr && place(i).is<External>()) MOKA_TRY(on_host(i));
  MOKA_TRY(write_states(true));
  std::set<int> taken;
  for (size_t k = 0; k < sequence_.outputs.size(); k++) {
    int& i = sequence_.outputs[k];
    if (place(i).type.is_tensor()) i = MOKA_TRY(on_host(i));
    const Place& root = place(place(i).root);
    const bool object = is_object(place(i).type);
    // A list that a loop passes on unchanged stays in place.
    const bool stays = object && k < sequence_.inputs.size() && place(i).root == sequence_.inputs[k];
    if (!sequence_.own_outputs || stays || (!root.is<External>() && taken.insert(place(i).root).second)) continue;
    Place apart;
    apart.type = place(i).type;
    if (object) apart.storage = Object{};
    const int from = i;
    i = add_place(std::move(apart));
    add_step(Convert{from, i});
  }
  return write_states(false);
}

Status Settler::download_all() {
  close_region();
  for (int i = 0; i < static_cast<int>(sequence_.places.size()); i++) {
    const Place& p = place(i);
    if (p.device != nullptr && p.is<InArena>() && p.value != nullptr && p.value->producer() != nullptr)
      MOKA_TRY(place_at(i, {nullptr, p.layout}));
  }
  return {};
}

void Settler::find_planes() {
  const auto is_read = [&](int input) {
    const auto reads = [&](int i) { return place(i).root == input; };
    bool found = !sequence_.is_complete() || std::any_of(sequence_.outputs.begin(), sequence_.outputs.end(), reads);
    for_each_step(sequence_, [&]<class One>(int, const One& step, int) {
      const auto in = reads_of(sequence_, step);
      found |= std::is_base_of_v<Control, One> || std::any_of(in.begin(), in.end(), reads);
    });
    return found;
  };
  for (PixelInput& p : sequence_.pixels) p.planes_read = is_read(sequence_.inputs[p.input]);
}

Result<Sequence> Settler::run() {
  Sequence& values = draft_.values;
  for (int i : values.inputs) settle_until(static_cast<size_t>(i) + 1);
  sequence_.inputs = values.inputs;
  settle(sequence_.inputs);
  for (Draft::Entry& entry : draft_.steps) MOKA_TRY(settle(entry));
  settle_until(values.places.size());
  for (auto& [mine, theirs] : sequence_.imports) mine = settled(mine);
  for (const auto& [value, i] : values.place_of) sequence_.place_of[value] = settled(i);
  for (const auto& [state, given] : draft_.given) given_[settled(state)] = settled(given);
  sequence_.outputs = std::move(values.outputs);
  settle(sequence_.outputs);
  sequence_.pending = std::move(values.pending);
  if (sequence_.pending) {
    std::visit([&](auto& step) { settle(step.in); }, *sequence_.pending);
    MOKA_TRY(write_states(false));
  }
  if (options_.observed) MOKA_TRY(download_all());
  if (sequence_.is_complete()) MOKA_TRY(finish_outputs());
  close_region();
  if (options_.reuse_buffers) {
    place_parts(sequence_);
    share_in_place(sequence_);
  }
  find_planes();
  return std::move(sequence_);
}

Result<Arranged> arrange(const Resolved& resolved, const Claims& claims, const Assignment& assignment,
                         const Plan* parent, const PlanOptions& options, bool own_outputs) {
  Draft draft = MOKA_TRY(Drafter(resolved, claims, assignment, parent, options, own_outputs).run());
  Sequence sequence = MOKA_TRY(Settler(draft, options).run());
  return Arranged{std::move(sequence), std::move(draft.preparations)};
}

}  // namespace moka::plan
