#include "linting/bounds.h"

#include <algorithm>
#include <cmath>

#include "ir/op_def.h"

namespace moka::linting {
namespace {

/// Larger constants have no bounds, because reading them takes too long.
constexpr int64_t kMostElements = int64_t{1} << 26;

Interval of_constant(const ir::Constant& constant) {
  const ir::Tensor& t = constant.tensor;
  if (t.empty_handle() || t.dtype() == ir::DType::string || t.count() == 0 || t.count() > kMostElements) return {};
  const ir::TensorView view = t.view();
  Interval out{HUGE_VAL, -HUGE_VAL, Grip::reached};
  for (int64_t i = 0; i < t.count(); ++i) {
    const double v = ir::load_f64(view, i);
    if (std::isnan(v)) return {};
    out.low = std::min(out.low, v);
    out.high = std::max(out.high, v);
  }
  if (out.low == out.high) out.grip = Grip::each;
  return out;
}

/// The interval of all numbers that the element type can hold.
Interval of_type(const ir::Type& type) {
  if (!type.is_tensor()) return {};
  switch (type.dtype()) {
    case ir::DType::boolean: return {0, 1};
    case ir::DType::uint8: return {0, 255};
    case ir::DType::int8: return {-128, 127};
    default: return {};
  }
}

Transfer transfer_of(std::string_view op) {
  for (const Transfers* family : {&elementwise_transfers(), &activation_transfers(), &linear_transfers(),
                                  &movement_transfers(), &reduction_transfers()})
    if (const auto it = family->find(op); it != family->end()) return it->second;
  return nullptr;
}

bool is_nan(const Interval& x) { return std::isnan(x.low) || std::isnan(x.high); }

}  // namespace

bool Interval::is_bounded() const { return std::isfinite(low) && std::isfinite(high); }
double Interval::magnitude() const { return std::max(std::abs(low), std::abs(high)); }

Interval hull(Interval a, Interval b) {
  return {std::min(a.low, b.low), std::max(a.high, b.high), std::min({a.grip, b.grip, Grip::reached})};
}

Interval scaled(Interval x, double factor) {
  if (factor == 0) return {0, 0, Grip::each};
  const double a = x.low * factor, b = x.high * factor;
  return {std::min(a, b), std::max(a, b), x.grip};
}

Interval shifted(Interval x, double addend) { return {x.low + addend, x.high + addend, x.grip}; }

Interval at_most(Interval x, Grip grip) {
  x.grip = std::min(x.grip, grip);
  return x;
}

Interval Call::in(std::string_view parameter) const {
  const ir::Value* value = op.input(parameter);
  return value == nullptr ? Interval{} : bounds.of(value);
}

double Call::number(std::string_view parameter, double otherwise) const {
  const ir::Value* value = op.input(parameter);
  if (value != nullptr) {
    const ir::Constant* constant = value->constant();
    return constant != nullptr && constant->tensor.count() == 1 ? ir::load_f64(constant->tensor.view(), 0) : otherwise;
  }
  const ir::ParamDef* p = op.version().param(parameter);
  return p != nullptr && p->has_default() && p->default_view.dtype != ir::DType::string && p->default_view.count() == 1
             ? ir::load_f64(p->default_view, 0)
             : otherwise;
}

int64_t Call::elements(std::string_view parameter) const {
  const ir::Value* value = op.input(parameter);
  if (value == nullptr || !value->type.is_tensor() || !value->type.is_ranked() || !value->type.is_concrete()) return 0;
  return value->type.shape().count();
}

Bounds Bounds::of(const ir::Function& function, const import::FunctionDescription* description, const Ranges& ranges) {
  Bounds out;
  for (const auto& input : function.body().inputs()) {
    Interval interval = of_type(input->type);
    if (description != nullptr)
      for (const import::FeatureDescription& f : description->inputs) {
        if (f.name != input->name) continue;
        if (f.kind == import::FeatureKind::image && f.image.color != import::ColorSpace::grayscale_float16)
          interval = {0, 255, Grip::each};
        if (f.index_range && f.index_range->upper >= 0)
          interval = {static_cast<double>(f.index_range->lower), static_cast<double>(f.index_range->upper), Grip::each};
      }
    if (const auto it = ranges.find(input->name); it != ranges.end())
      interval = {it->second.first, it->second.second, Grip::each};
    out.known_[input.get()] = interval;
  }
  out.walk(function.body());
  return out;
}

void Bounds::walk(const ir::Block& block) {
  for (const auto& op : block.ops()) {
    for (size_t i = 0; i < op->block_count(); ++i) walk(*op->block(i));
    for (size_t i = 0; i < op->output_count(); ++i) {
      const ir::Value* out = op->output(i);
      Interval interval = of_type(out->type);
      if (out->constant() != nullptr)
        interval = of_constant(*out->constant());
      else if (const Transfer transfer = transfer_of(op->type_name()); transfer != nullptr && op->block_count() == 0)
        if (const Interval found = transfer({*op, *this}); !is_nan(found)) interval = found;
      known_[out] = interval;
    }
  }
}

Interval Bounds::of(const ir::Value* value) const {
  if (const auto it = known_.find(value); it != known_.end()) return it->second;
  return value->constant() != nullptr ? of_constant(*value->constant()) : of_type(value->type);
}

}  // namespace moka::linting
