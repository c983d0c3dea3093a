// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/memory.h"
#include "runtime/frame.h"

namespace moka::runtime {

using plan::Place;
using plan::Plan;

namespace {
const ir::Type& storage_type(const ir::Type& t) { return t.is_state() ? t.element() : t; }
}  // namespace

Result<std::unique_ptr<Frame>> Frame::make(std::shared_ptr<const Plan> plan, Frame* parent, ExecContext& context) {
  std::unique_ptr<Frame> f(new Frame(std::move(plan), parent, context));
  MOKA_TRY(f->set_up());
  return f;
}

Frame::~Frame() {
  if (charged_ > 0) context_.options->budget->give_back(charged_);
}

size_t Frame::bytes() const {
  size_t n = plan_->memory.arena_bytes;
  for (const auto& child : children_) n += child->bytes();
  return n;
}

void* Frame::object_data(const ir::Type& type, Object& object) {
  if (type.is_list()) return &object.list;
  if (type.is_dict()) return &object.dict;
  object.strings.resize(static_cast<size_t>(type.shape().count()));
  return object.strings.data();
}

Status Frame::set_up() {
  const auto& places = sequence_.places;
  size_t bytes = plan_->memory.arena_bytes;
  if (context_.options->budget) {
    MOKA_TRY(context_.options->budget->take(bytes, "the arena"));
    charged_ = bytes;
  }
  arena_bytes_ = bytes + 64;
  const auto& devices = plan_->memory.devices;
  const bool shares = std::any_of(devices.begin(), devices.end(), [](const auto& a) { return a.shares_host; });
  arena_ = shares ? allocate_pages(arena_bytes_) : allocate_large(arena_bytes_);
  if (arena_ == nullptr) return fail(ErrorCode::out_of_budget, "no memory for an arena of ", bytes, " bytes");
  objects_.resize(sequence_.objects);
  views_.resize(places.size());
  patches_.resize(places.size());
  find_placeable();
  for (size_t i = 0; i < places.size(); i++) {
    const Place& p = places[i];
    const ir::Type& t = storage_type(p.type);
    ir::TensorView& v = views_[i];
    if (t.is_tensor()) {
      v.dtype = t.dtype();
      v.shape = t.shape();
    }
    if (p.is<plan::InArena>() && p.device == nullptr) {
      v.data = arena_.get() + plan_->memory.places[i].offset;
    } else if (const auto* object = std::get_if<plan::Object>(&p.storage)) {
      v.data = object_data(p.type, objects_[static_cast<size_t>(object->index)]);
    } else if (const auto* constant = std::get_if<plan::Constant>(&p.storage); constant != nullptr && t.is_tensor()) {
      v.data = constant->tensor.view().data;
    } else if (constant != nullptr) {
      constants_.push_back(MOKA_TRY(ir::runtime_value(*p.value->constant())));
      v.data = constants_.back().view().data;
    }
    follow_root(p, &v);
  }
  steps_.resize(sequence_.steps.size());
  region_steps_.resize(sequence_.regions.size());
  for (size_t r = 0; r < region_steps_.size(); r++) region_steps_[r].resize(sequence_.regions[r].steps.size());
  const auto fill_step = [&](StepData& data, const auto& step) {
    fill(data, plan::reads_of(sequence_, step), plan::writes_of(sequence_, step), plan::call_of(step));
  };
  std::vector<StepData*> by_number;
  for (size_t s = 0; s < steps_.size(); s++) {
    if (const auto* launch = std::get_if<plan::Launch>(&sequence_.steps[s]))
      for (StepData& inner : region_steps_[static_cast<size_t>(launch->region)]) by_number.push_back(&inner);
    by_number.push_back(&steps_[s]);
  }
  plan::for_each_step(sequence_, [&](int n, const auto& step, int) {
    StepData& data = *by_number[static_cast<size_t>(n)];
    data.scratch = plan_->memory.steps[static_cast<size_t>(n)];
    fill_step(data, step);
  });
  if (sequence_.pending) std::visit([&](const auto& step) { fill_step(pending_, step); }, *sequence_.pending);
  find_teams();
  return set_up_devices();
}

/// From a step that shares its work to the last one, before one that has blocks.
void Frame::find_teams() {
  const auto& steps = sequence_.steps;
  team_ends_.assign(steps.size(), 0);
  size_t first = steps.size();
  for (size_t s = 0; s < steps.size(); s++) {
    if (plan::control_of(steps[s]) != nullptr) {
      first = steps.size();
      continue;
    }
    bool shares = false;
    if (const plan::Run* run = std::get_if<plan::Run>(&steps[s]))
      shares = run->threads > 1 && (run->choice->internally_parallel || run->choice->tiles > 1);
    else if (const plan::Convert* convert = std::get_if<plan::Convert>(&steps[s]))
      shares = convert->threads > 1;
    if (!shares) continue;
    first = std::min(first, s);
    team_ends_[first] = s + 1;
  }
}

void Frame::fill(StepData& data, std::span<const int> in, std::span<const int> out, const plan::Call* call) {
  auto take = [&](std::vector<ir::TensorView>& to, std::span<const int> from) {
    for (int i : from) to.push_back(views_[static_cast<size_t>(i)]);
    for (size_t k = 0; k < from.size(); k++) {
      const Place& p = sequence_.place(from[k]);
      follow_root(p, &to[k]);
    }
  };
  data.in.reserve(in.size());
  data.out.reserve(out.size());
  take(data.in, in);
  take(data.out, out);
  if (call == nullptr) return;
  for (size_t k = 0; k < in.size(); k++) data.args.push_back({&sequence_.place(in[k]).type, &data.in[k]});
  data.call.emplace(call->op->version(), call->op->name, data.args, call->first_arg);
  data.call->op = call->op;
  data.call->random = &context_.random;
}

void Frame::follow_root(const Place& p, ir::TensorView* view) {
  if (p.is<plan::External>() || (p.is<plan::InArena>() && is_placeable(p.root)))
    patches_[static_cast<size_t>(p.root)].push_back({view, p.delta});
}

void Frame::find_placeable() {
  placeable_.assign(sequence_.places.size(), false);
  placeable_outputs_.assign(sequence_.outputs.size(), false);
  if (!sequence_.is_complete()) return;
  for (size_t i = 0; i < sequence_.outputs.size(); i++) {
    const Place& p = sequence_.place(sequence_.outputs[i]);
    if (!p.is<plan::InArena>() || !p.type.is_tensor() || !p.layout.is_row_major()) continue;
    const Place& root = sequence_.place(p.root);
    auto bytes = ir::storage_bytes(p.type.dtype(), p.type.shape());
    const bool alone = root.is<plan::InArena>() && root.layout.is_row_major() && p.delta == 0 && bytes.ok() &&
                       *bytes == plan::bytes_of(root) && !is_placeable(p.root);
    placeable_outputs_[i] = alone;
    if (alone) placeable_[static_cast<size_t>(p.root)] = true;
  }
}

const ir::TensorView* Frame::placeable_output(size_t i) const {
  return i < placeable_outputs_.size() && placeable_outputs_[i] ? &views_[static_cast<size_t>(sequence_.outputs[i])]
                                                                : nullptr;
}

void Frame::place_output(size_t i, void* data) {
  const int place = sequence_.outputs[i];
  const auto root = static_cast<size_t>(sequence_.place(place).root);
  set_external(place, data != nullptr ? data : arena_.get() + plan_->memory.places[root].offset);
}

void Frame::set_external(int place, void* data) {
  auto& targets = patches_[static_cast<size_t>(sequence_.place(place).root)];
  auto at = [&](const Patch& p) { return static_cast<std::byte*>(data) + p.delta; };
  if (targets.empty() || targets.front().view->data == at(targets.front())) return;
  for (const Patch& p : targets) p.view->data = at(p);
}

void Frame::import_values() {
  for (auto [mine, theirs] : sequence_.imports) set_external(mine, parent_->views_[static_cast<size_t>(theirs)].data);
}

}  // namespace moka::runtime
