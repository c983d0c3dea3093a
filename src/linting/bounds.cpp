// SPDX-License-Identifier: Apache-2.0
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

Interval of_type(const ir::Type& type) { return type.is_tensor() ? numbers_of(type.dtype()) : Interval{}; }

/// Values that more operations than this lie behind have the bounds of their type, to spare the stack.
constexpr int kDeepest = 2000;

/// The largest size that the description allows for a dimension of an input.
double largest_size(const import::FunctionDescription& description) {
  double most = 0;
  const auto allow = [&](int64_t size) { most = std::max(most, size < 0 ? HUGE_VAL : static_cast<double>(size)); };
  for (const import::FeatureDescription& f : description.inputs) {
    for (int64_t size : f.array.shape) allow(size);
    for (const auto& shape : f.array.enumerated)
      for (int64_t size : shape) allow(size);
    for (const import::SizeRange& range : f.array.ranges) allow(range.upper);
    if (f.image.width_range) allow(f.image.width_range->upper);
    if (f.image.height_range) allow(f.image.height_range->upper);
  }
  return most;
}

Transfer transfer_of(std::string_view op) {
  for (const Transfers* family :
       {&elementwise_transfers(), &selection_transfers(), &activation_transfers(), &linear_transfers(),
        &movement_transfers(), &reduction_transfers(), &index_transfers()})
    if (const auto it = family->find(op); it != family->end()) return it->second;
  return nullptr;
}

/// An assumption is followed through at most so many operations.
constexpr int kFarthest = 4;

/// Whether a few elementwise operations compute each element of `value` from the same element of `from`.
bool is_made_of(const ir::Value* value, const ir::Value* from, int farthest = kFarthest) {
  if (value == from) return true;
  const ir::Op* op = value->producer();
  if (op == nullptr || farthest == 0) return false;
  const std::string_view type = op->type_name();
  if (!elementwise_transfers().contains(type) && !selection_transfers().contains(type)) return false;
  for (std::string_view name : {"x", "y", "a", "b"})
    if (const ir::Value* input = op->input(name); input != nullptr && is_made_of(input, from, farthest - 1))
      return true;
  return false;
}

bool is_nan(const Interval& x) { return std::isnan(x.low) || std::isnan(x.high); }

}  // namespace

Interval numbers_of(ir::DType type) {
  switch (type) {
    case ir::DType::boolean: return {0, 1};
    case ir::DType::uint8: return {0, 255};
    case ir::DType::int8: return {-128, 127};
    case ir::DType::uint16: return {0, 65535};
    case ir::DType::int16: return {-32768, 32767};
    default: return {};
  }
}

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

double Call::size(std::string_view parameter, int64_t axis) const {
  const ir::Value* value = op.input(parameter);
  if (value == nullptr || !value->type.is_tensor() || !value->type.is_ranked()) return HUGE_VAL;
  const ir::Shape& shape = value->type.shape();
  if (axis < 0) axis += shape.rank();
  if (axis < 0 || axis >= shape.rank()) return HUGE_VAL;
  const int64_t size = shape[static_cast<int>(axis)];
  return size < 0 ? bounds.largest_size() : static_cast<double>(size);
}

Bounds Bounds::of(const ir::Function& function, const import::FunctionDescription* description, const Ranges& ranges) {
  Bounds out = on_demand(function, description, ranges);
  out.walk(function.body());
  return out;
}

Bounds Bounds::on_demand(const ir::Function& function, const import::FunctionDescription* description,
                         const Ranges& ranges) {
  Bounds out;
  if (description != nullptr) out.largest_size_ = linting::largest_size(*description);
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
  return out;
}

void Bounds::walk(const ir::Block& block) const {
  for (const auto& op : block.ops()) {
    for (size_t i = 0; i < op->block_count(); ++i) walk(*op->block(i));
    for (size_t i = 0; i < op->output_count(); ++i) of(op->output(i));
  }
}

Interval Bounds::computed(const ir::Value* value) const {
  if (value->constant() != nullptr) return of_constant(*value->constant());
  const Interval type = of_type(value->type);
  const ir::Op* op = value->producer();
  if (op == nullptr || op->block_count() > 0 || depth_ > kDeepest) return type;
  const Transfer transfer = transfer_of(op->type_name());
  if (transfer == nullptr) return type;
  const Interval found = transfer({*op, *this, *value});
  const bool wraps = type.is_bounded() && (found.low < type.low || found.high > type.high);
  return wraps || is_nan(found) ? type : found;
}

Bounds Bounds::assuming(const ir::Value* value, Interval interval) const {
  Bounds out;
  out.largest_size_ = largest_size_;
  out.depth_ = depth_;
  out.general_ = this;
  out.assumed_ = value;
  out.known_[value] = interval;
  return out;
}

Interval Bounds::of(const ir::Value* value) const {
  if (const auto it = known_.find(value); it != known_.end()) return it->second;
  if (general_ != nullptr && !is_made_of(value, assumed_)) return general_->of(value);
  ++depth_;
  const Interval interval = computed(value);
  --depth_;
  return known_[value] = interval;
}

}  // namespace moka::linting
