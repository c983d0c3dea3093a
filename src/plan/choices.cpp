// SPDX-License-Identifier: Apache-2.0
#include "plan/choices.h"

namespace moka::plan {

namespace {

constexpr int64_t kShown = 16;

/// The value of a parameter that controls the computation; empty if the parameter is data.
std::string setting(const ir::TensorView& v) {
  if (v.count() > kShown || ir::is_float(v.dtype)) return {};
  std::string text;
  for (int64_t i = 0; i < v.count(); i++) {
    if (i > 0) text += ',';
    if (v.dtype == ir::DType::string)
      text += v.as<std::string>()[i];
    else
      text += std::to_string(ir::load_i64(v, i));
  }
  return v.shape.rank() == 0 ? text : cat("[", text, "]");
}

std::string type_text(const ir::Type& t) {
  if (!t.is_tensor()) return cat(t);
  std::string text = cat(t.dtype(), "[");
  for (int i = 0; i < t.shape().rank(); i++) text += cat(i > 0 ? "," : "", t.shape()[i]);
  return text + "]";
}

std::string storage_text(const kernel::StoredConstant& s, const ir::Type& declared) {
  std::string text;
  if (s.elements.dtype() != declared.dtype()) text += cat(" as ", s.elements.dtype());
  if (!s.table.empty_handle()) text += cat(" by table ", s.table.shape());
  if (!s.scale.empty_handle()) text += cat(" by scale ", s.scale.shape());
  if (!s.offset.empty_handle()) text += " by offset";
  if (s.in_network_format) text += " of a network";
  return text;
}

}  // namespace

std::string_view to_string(ChosenBy by) {
  switch (by) {
    case ChosenBy::rule: return "rule";
    case ChosenBy::pin: return "pin";
    case ChosenBy::cache: return "cache";
    case ChosenBy::measured: return "measured";
    case ChosenBy::disturbed: return "disturbed";
  }
  return "?";
}

std::string shape_text(const kernel::MatchCall& m) {
  const ir::OpVersion& version = m.call.version();
  std::string text = version.def->name;
  for (const ir::ParamDef& p : version.params) {
    const auto args = m.call.args(p.name);
    for (size_t k = 0; k < args.size(); k++) {
      const auto at = static_cast<size_t>(m.call.arg_index(p.name)) + k;
      text += cat(" ", p.name, "=");
      if (const ir::TensorView* v = args[k].value; v != nullptr)
        if (const std::string value = setting(*v); !value.empty()) {
          text += value;
          continue;
        }
      if (m.constant_args[at]) text += "const ";
      text += type_text(*args[k].type);
      if (!m.layouts[at].is_row_major()) text += cat("/", kernel::to_string(m.layouts[at]));
      if (m.constant_args[at])
        if (auto stored = m.stored_in_any_format(static_cast<int>(at))) text += storage_text(*stored, *args[k].type);
    }
  }
  for (const ir::Epilogue& e : m.epilogue) text += cat(" +", e.op);
  return text;
}

void KernelChoices::add(Measurement m) {
  std::lock_guard lock(mutex_);
  auto key = std::pair(m.shape, m.threads);
  known_.try_emplace(std::move(key), Known{std::move(m), false});
}

std::optional<Measurement> KernelChoices::find(const std::string& shape, int threads) const {
  std::lock_guard lock(mutex_);
  auto it = known_.find(std::pair(shape, threads));
  if (it == known_.end()) return std::nullopt;
  return it->second.measurement;
}

bool KernelChoices::wants(const std::string& shape, int threads) const {
  if (measure == Measure::no) return false;
  std::lock_guard lock(mutex_);
  auto it = known_.find(std::pair(shape, threads));
  return it == known_.end() || (measure == Measure::all && !it->second.now);
}

void KernelChoices::measured(Measurement m) {
  std::lock_guard lock(mutex_);
  new_.push_back(m);
  auto key = std::pair(m.shape, m.threads);
  known_.insert_or_assign(std::move(key), Known{std::move(m), true});
  has_measured_ = true;
}

std::vector<Measurement> KernelChoices::take_measured() {
  std::lock_guard lock(mutex_);
  has_measured_ = false;
  return std::exchange(new_, {});
}

}  // namespace moka::plan
