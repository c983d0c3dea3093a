#include "plan/arranger.h"

namespace moka::plan {

int Arranger::add_place(Place p) {
  int i = static_cast<int>(plan_->places.size());
  if (p.root < 0) p.root = i;
  if (p.storage == Storage::object && p.object < 0) p.object = static_cast<int>(plan_->objects++);
  if (p.value != nullptr && plan_->place_of.try_emplace(p.value, i).second)
    if (const int value = resolved_.find(p.value); value >= 0) home_[static_cast<size_t>(value)] = i;
  plan_->places.push_back(std::move(p));
  return i;
}

int Arranger::add_result(int value, Layout layout) {
  const ResolvedValue& v = resolved_.at(value);
  Place p;
  p.value = v.value;
  p.type = v.type;
  p.layout = layout;
  p.storage = is_object(v.type) ? Storage::object : Storage::arena;
  return add_place(std::move(p));
}

const ir::Value* Arranger::pooled(int p) {
  const ir::Value* v = place(p).storage == Storage::constant ? place(p).value : nullptr;
  return v != nullptr && ConstantPool::is_constant(*v) ? v : nullptr;
}

void Arranger::add_inputs() {
  for (size_t i = 0; i < resolved_.values.size(); i++) {
    const ResolvedValue& v = resolved_.values[i];
    if (v.source != ResolvedValue::Source::input && v.source != ResolvedValue::Source::outer) continue;
    Place p;
    p.value = v.value;
    p.type = v.type;
    p.storage = Storage::external;
    if (v.source == ResolvedValue::Source::input) {
      plan_->inputs.push_back(add_place(std::move(p)));
    } else {
      const int outer = plan_->parent->place_of.at(v.value);
      p.layout = plan_->parent->places[static_cast<size_t>(outer)].layout;
      plan_->imports.emplace_back(add_place(std::move(p)), outer);
    }
  }
}

int Arranger::home(int value) {
  const int there = home_[static_cast<size_t>(value)];
  if (there >= 0) return there;
  const ResolvedValue& v = resolved_.at(value);
  Place p;
  p.value = v.value;
  p.type = v.type;
  p.storage = Storage::constant;
  p.constant = v.constant;
  return add_place(std::move(p));
}

std::vector<int> Arranger::homes(std::span<const int> values) {
  std::vector<int> out;
  for (int v : values) out.push_back(home(v));
  return out;
}

int Arranger::prepared(int i) {
  if (auto it = prepared_.find(i); it != prepared_.end()) return it->second;
  Place p;
  p.type = place(i).type;
  p.storage = Storage::prepared;
  int out = add_place(std::move(p));
  prepared_[i] = out;
  return out;
}

}  // namespace moka::plan
