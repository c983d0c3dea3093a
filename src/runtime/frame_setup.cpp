#include <algorithm>

#include "base/memory.h"
#include "runtime/frame.h"

namespace moka::runtime {

using plan::Place;
using plan::Plan;
using plan::Step;
using plan::Storage;

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
  size_t n = plan_->arena_bytes;
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
  const auto& places = plan_->places;
  size_t bytes = plan_->arena_bytes;
  if (context_.options->budget) {
    MOKA_TRY(context_.options->budget->take(bytes, "the arena"));
    charged_ = bytes;
  }
  arena_ = allocate_large(bytes + 64);
  if (arena_ == nullptr) return fail(ErrorCode::out_of_budget, "no memory for an arena of ", bytes, " bytes");
  objects_.resize(plan_->objects);
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
    switch (p.storage) {
      case Storage::arena:
        if (p.device == nullptr) v.data = arena_.get() + p.offset;
        break;
      case Storage::constant:
        if (t.is_tensor()) {
          v.data = p.constant.view().data;
        } else {
          constants_.push_back(MOKA_TRY(ir::runtime_value(*p.value->constant())));
          v.data = constants_.back().view().data;
        }
        break;
      case Storage::object: v.data = object_data(p.type, objects_[static_cast<size_t>(p.object)]); break;
      case Storage::external:
      case Storage::prepared: break;
    }
    follow_root(p, &v);
  }
  steps_.resize(plan_->steps.size());
  for (size_t s = 0; s < steps_.size(); s++) fill(steps_[s], plan_->steps[s]);
  if (plan_->pending != nullptr) fill(pending_, plan_->pending_step);
  find_teams();
  return set_up_devices();
}

/// From a step that shares its work to the last one, before one that has blocks.
void Frame::find_teams() {
  const auto& steps = plan_->steps;
  team_ends_.assign(steps.size(), 0);
  size_t first = steps.size();
  for (size_t s = 0; s < steps.size(); s++) {
    const Step& step = steps[s];
    const kernel::KernelChoice* c = step.kind == Step::Kind::run ? &*step.choice : nullptr;
    if (step.region >= 0) continue;
    if (step.kind == Step::Kind::cond || step.kind == Step::Kind::loop) {
      first = steps.size();
    } else if (step.threads > 1 &&
               (c != nullptr ? c->internally_parallel || c->tiles > 1 : step.kind == Step::Kind::convert)) {
      first = std::min(first, s);
      team_ends_[first] = s + 1;
    }
  }
}

void Frame::fill(StepData& data, const Step& step) {
  auto take = [&](std::vector<ir::TensorView>& to, const std::vector<int>& from) {
    for (int i : from) to.push_back(views_[static_cast<size_t>(i)]);
    for (size_t k = 0; k < from.size(); k++) {
      const Place& p = plan_->places[static_cast<size_t>(from[k])];
      follow_root(p, &to[k]);
    }
  };
  data.in.reserve(step.in.size());
  data.out.reserve(step.out.size());
  take(data.in, step.in);
  take(data.out, step.out);
  for (size_t k = 0; k < step.in.size(); k++)
    data.args.push_back({&plan_->places[static_cast<size_t>(step.in[k])].type, &data.in[k]});
  if (step.op != nullptr) {
    data.call.emplace(step.op->version(), step.op->name, data.args, step.first_arg);
    data.call->op = step.op;
    data.call->random = &context_.random;
  }
}

void Frame::follow_root(const Place& p, ir::TensorView* view) {
  if (p.storage == Storage::external || (p.storage == Storage::arena && is_placeable(p.root)))
    patches_[static_cast<size_t>(p.root)].push_back({view, p.delta});
}

void Frame::find_placeable() {
  placeable_.assign(plan_->places.size(), false);
  placeable_outputs_.assign(plan_->outputs.size(), false);
  if (plan_->pending != nullptr) return;
  for (size_t i = 0; i < plan_->outputs.size(); i++) {
    const Place& p = plan_->places[static_cast<size_t>(plan_->outputs[i])];
    if (p.storage != Storage::arena || !p.type.is_tensor() || !p.layout.is_row_major()) continue;
    const Place& root = plan_->places[static_cast<size_t>(p.root)];
    auto bytes = ir::storage_bytes(p.type.dtype(), p.type.shape());
    const bool alone = root.storage == Storage::arena && root.layout.is_row_major() && p.delta == 0 && bytes.ok() &&
                       *bytes == root.bytes && !is_placeable(p.root);
    placeable_outputs_[i] = alone;
    if (alone) placeable_[static_cast<size_t>(p.root)] = true;
  }
}

const ir::TensorView* Frame::placeable_output(size_t i) const {
  return i < placeable_outputs_.size() && placeable_outputs_[i] ? &views_[static_cast<size_t>(plan_->outputs[i])]
                                                                : nullptr;
}

void Frame::place_output(size_t i, void* data) {
  const int place = plan_->outputs[i];
  const Place& root = plan_->places[static_cast<size_t>(plan_->places[static_cast<size_t>(place)].root)];
  set_external(place, data != nullptr ? data : arena_.get() + root.offset);
}

void Frame::set_external(int place, void* data) {
  auto& targets = patches_[static_cast<size_t>(plan_->places[static_cast<size_t>(place)].root)];
  auto at = [&](const Patch& p) { return static_cast<std::byte*>(data) + p.delta; };
  if (targets.empty() || targets.front().view->data == at(targets.front())) return;
  for (const Patch& p : targets) p.view->data = at(p);
}

void Frame::import_values() {
  for (auto [mine, theirs] : plan_->imports) set_external(mine, parent_->views_[static_cast<size_t>(theirs)].data);
}

}  // namespace moka::runtime
