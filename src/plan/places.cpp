#include "plan/arranger.h"

namespace moka::plan {

int Arranger::add_place(Place p) {
  int i = static_cast<int>(sequence_.places.size());
  if (p.root < 0) p.root = i;
  if (Object* object = std::get_if<Object>(&p.storage); object != nullptr && object->index < 0)
    object->index = static_cast<int>(sequence_.objects++);
  if (p.value != nullptr && sequence_.place_of.try_emplace(p.value, i).second)
    if (const int value = resolved_.find(p.value); value >= 0) home_[static_cast<size_t>(value)] = i;
  sequence_.places.push_back(std::move(p));
  written_by_.push_back(-1);
  return i;
}

int Arranger::add_result(int value, Layout layout) {
  const ResolvedValue& v = resolved_.at(value);
  Place p;
  p.value = v.value;
  p.type = v.type;
  p.layout = layout;
  if (is_object(v.type)) p.storage = Object{};
  return add_place(std::move(p));
}

const ir::Value* Arranger::pooled(int p) {
  const ir::Value* v = place(p).is<Constant>() ? place(p).value : nullptr;
  return v != nullptr && ConstantPool::is_constant(*v) ? v : nullptr;
}

void Arranger::add_inputs() {
  for (size_t i = 0; i < resolved_.values.size(); i++) {
    const ResolvedValue& v = resolved_.values[i];
    if (v.source != ResolvedValue::Source::input && v.source != ResolvedValue::Source::outer) continue;
    Place p;
    p.value = v.value;
    p.type = v.type;
    p.storage = External{};
    if (v.source == ResolvedValue::Source::input) {
      sequence_.inputs.push_back(add_place(std::move(p)));
    } else {
      const int outer = parent_->sequence.place_of.at(v.value);
      p.layout = parent_->sequence.place(outer).layout;
      sequence_.imports.emplace_back(add_place(std::move(p)), outer);
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
  p.storage = Constant{v.constant, nullptr};
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
  p.storage = Prepared{};
  int out = add_place(std::move(p));
  prepared_[i] = out;
  return out;
}

}  // namespace moka::plan
