#include "plan/planner.h"

namespace moka::plan {

int Planner::add_place(Place p) {
  int i = static_cast<int>(plan_->places.size());
  if (p.root < 0) p.root = i;
  if (p.storage == Storage::object && p.object < 0) p.object = static_cast<int>(plan_->objects++);
  if (p.value != nullptr && !plan_->place_of.contains(p.value)) plan_->place_of[p.value] = i;
  plan_->places.push_back(std::move(p));
  return i;
}

int Planner::add_result(const ir::Value* v, const ir::Type& type, Layout layout) {
  Place p;
  p.value = v;
  p.type = type;
  p.layout = layout;
  p.storage = is_object(type) ? Storage::object : Storage::arena;
  return add_place(std::move(p));
}

void Planner::add_step(Step s, size_t scratch) {
  plan_->steps.push_back(std::move(s));
  scratch_.push_back(scratch);
}

const ir::Value* Planner::pooled(int p) {
  const ir::Value* v = place(p).storage == Storage::constant ? place(p).value : nullptr;
  return v != nullptr && ConstantPool::is_constant(*v) ? v : nullptr;
}

Result<int> Planner::find(const ir::Value* v) {
  if (auto it = plan_->place_of.find(v); it != plan_->place_of.end()) return it->second;
  Place p;
  p.value = v;
  if (v->constant() != nullptr) {
    p.type = v->constant()->type;
    p.storage = Storage::constant;
    p.constant = v->constant()->tensor;
    return add_place(std::move(p));
  }
  if (plan_->parent != nullptr) {
    if (auto it = plan_->parent->place_of.find(v); it != plan_->parent->place_of.end()) {
      const Place& outer = plan_->parent->places[static_cast<size_t>(it->second)];
      p.type = outer.type;
      p.layout = outer.layout;
      if (outer.storage == Storage::constant) {
        p.storage = Storage::constant;
        p.constant = outer.constant;
        return add_place(std::move(p));
      }
      p.storage = Storage::external;
      int i = add_place(std::move(p));
      plan_->imports.emplace_back(i, it->second);
      return i;
    }
  }
  return fail(ErrorCode::internal, "'", v->name, "' is used before it is planned");
}

Status Planner::import_all(std::span<const ir::Value* const> values) {
  for (const ir::Value* v : values)
    if (v->constant() == nullptr) MOKA_TRY(find(v));
  return {};
}

std::vector<const ir::Value*> used_from(const ir::Block& block, const ir::Op& from) {
  std::vector<const ir::Value*> out;
  bool behind = false;
  for (const auto& op : block.ops()) {
    behind |= op.get() == &from;
    if (!behind) continue;
    for (const ir::Operand& o : op->operands()) out.insert(out.end(), o.values.begin(), o.values.end());
    for (size_t b = 0; b < op->block_count(); b++)
      for (const ir::Value* v : free_values(*op->block(b))) out.push_back(v);
  }
  out.insert(out.end(), block.outputs().begin(), block.outputs().end());
  return out;
}

Status Planner::import_later(const ir::Op& from) {
  for (const ir::Value* v : used_from(block_, from))
    if (v->constant() == nullptr && plan_->parent->place_of.contains(v)) MOKA_TRY(find(v));
  return {};
}

int Planner::prepared(int i) {
  if (auto it = prepared_.find(i); it != prepared_.end()) return it->second;
  Place p;
  p.type = place(i).type;
  p.storage = Storage::prepared;
  int out = add_place(std::move(p));
  prepared_[i] = out;
  return out;
}

Result<std::vector<int>> Planner::operands(const ir::Op& op, std::vector<uint32_t>& first) {
  std::vector<int> in;
  size_t params = op.version().params.size();
  first.assign(params + 1, 0);
  auto operand = op.operands().begin();
  for (size_t p = 0; p < params; p++) {
    first[p] = static_cast<uint32_t>(in.size());
    if (operand == op.operands().end() || operand->param != static_cast<int>(p)) continue;
    for (const ir::Value* v : operand->values) in.push_back(MOKA_TRY(find(v)));
    ++operand;
  }
  first.back() = static_cast<uint32_t>(in.size());
  return in;
}

CallArgs Planner::call_args(std::span<const int> in, const Device* device) {
  CallArgs c;
  c.views.reserve(in.size());
  c.constant = std::make_unique<bool[]>(in.size() + 1);
  for (size_t i = 0; i < in.size(); i++) {
    const Place& p = place(in[i]);
    const ir::TensorView* view = nullptr;
    if (p.storage == Storage::constant && !p.constant.empty_handle()) {
      c.views.push_back(p.constant.view());
      view = &c.views.back();
    }
    c.args.push_back({&p.type, view});
    c.constant[i] = p.storage == Storage::constant;
    c.all_known &= view != nullptr;
    c.all_shapes_known &= p.type.is_tensor() && p.type.is_concrete();
    c.all_constant &= c.constant[i] && p.type.is_tensor();  // only tensors are folded
    c.layouts.push_back(p.device == device ? p.layout : Layout{});
  }
  return c;
}

Status Planner::fold(const ir::Op& op, std::span<const int> in, const std::vector<ir::Type>& types) {
  CallArgs c = call_args(in);
  std::vector<ir::TensorView> shapes;  // shapes of operands whose elements are not read
  shapes.reserve(in.size());
  for (auto& [type, view] : c.args)
    if (view == nullptr) view = &shapes.emplace_back(ir::TensorView{type->dtype(), type->shape(), nullptr});
  std::vector<uint32_t> first;
  MOKA_TRY(operands(op, first));
  ir::OpCall call(op.version(), op.name, c.args, first);
  call.op = &op;
  std::vector<Place> results;
  std::vector<ir::TensorView> views;
  for (size_t i = 0; i < types.size(); i++) {
    Place p;
    p.value = op.output(i);
    p.type = types[i];
    p.storage = Storage::constant;
    p.constant = MOKA_TRY(ir::Tensor::zeros(types[i].dtype(), types[i].shape()));
    views.push_back(p.constant.view());
    results.push_back(std::move(p));
  }
  MOKA_TRY(op.version().reference(call, views));
  for (Place& p : results) add_place(std::move(p));
  return {};
}

}  // namespace moka::plan
