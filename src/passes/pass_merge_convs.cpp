// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "passes/affine.h"
#include "passes/pass.h"
#include "passes/rewrite.h"

/// Makes one convolution of parallel ones of the same value whose results are added, as nets hold them that were not
/// reparameterized after training: a convolution, one of a smaller window or of one pixel, and a batch norm of the
/// value itself. Only in float32, because in other types the sums would be rounded differently.
namespace moka::passes {

namespace {

using namespace ir;

constexpr size_t kMostWeights = size_t{32} << 20;  ///< most bytes of weights that are expanded for a sum

/// The window along one spatial axis.
struct Axis {
  int64_t taps = 1, stride = 1, dilation = 1, begin = 0, end = 0;
  int64_t reach() const { return dilation * (taps - 1); }
};

/// A convolution that may be part of a sum.
struct Branch {
  Op* op;
  Value* x;
  int64_t groups = 1, made = 0, of_group = 0;  ///< output channels, input channels of a group
  std::vector<Axis> axes;

  static std::optional<Branch> of(Op& op) {
    if (op.type_name() != "conv" || !op.epilogue.empty() || op.input("addend") != nullptr) return std::nullopt;
    Branch b{&op, op.input("x")};
    const Type &x = b.x->type, &w = op.input("weight")->type;
    if (!x.is_tensor() || x.dtype() != DType::fp32 || w.dtype() != DType::fp32 || !w.is_concrete() || w.rank() < 3 ||
        !may_expand(*op.input("weight"), kMostWeights))
      return std::nullopt;
    const auto groups = number_of(op, "groups");
    if (!groups || *groups < 1) return std::nullopt;
    b.groups = static_cast<int64_t>(*groups);
    b.made = w.shape()[0];
    b.of_group = w.shape()[1];
    if (b.made % b.groups != 0) return std::nullopt;
    return b.find_axes() ? std::optional(std::move(b)) : std::nullopt;
  }

  /// The index of the weight of output channel `o`, input channel `i` of its group and the tap.
  size_t at(int64_t o, int64_t i, const std::vector<int64_t>& tap) const {
    int64_t index = o * of_group + i;
    for (size_t a = 0; a < axes.size(); a++) index = index * axes[a].taps + tap[a];
    return static_cast<size_t>(index);
  }

 private:
  bool find_axes() {
    const Shape& w = op->input("weight")->type.shape();
    const auto n = static_cast<size_t>(w.rank()) - 2;
    const auto list = [&](std::string_view param, size_t size, int64_t missing) {
      if (op->input(param) == nullptr) return std::optional(std::vector<int64_t>(size, missing));
      auto all = ints_of(*op, param);
      return all && all->size() == size ? std::move(all) : std::nullopt;
    };
    const auto strides = list("strides", n, 1), dilations = list("dilations", n, 1), pad = list("pad", 2 * n, 0);
    const std::string_view kind = text_of(*op, "pad_type");
    if (!strides || !dilations || !pad || (kind != "valid" && kind != "custom" && kind != "same")) return false;
    for (size_t i = 0; i < n; i++) {
      Axis a{w[static_cast<int>(i) + 2], (*strides)[i], (*dilations)[i]};
      if (kind == "custom") {
        a.begin = (*pad)[2 * i];
        a.end = (*pad)[2 * i + 1];
      } else if (kind == "same") {
        if (a.stride != 1) return false;  // depends on the size
        a.begin = a.reach() / 2;
        a.end = a.reach() - a.begin;
      }
      axes.push_back(a);
    }
    return true;
  }
};

/// Where tap `t` of axis `b` lies among the taps of `a`; nullopt: it reads where none of them does, or the results have
/// other sizes.
std::optional<int64_t> tap_of(const Axis& a, const Axis& b, int64_t t) {
  const int64_t distance = b.dilation * t - b.begin + a.begin;
  if (a.stride != b.stride || a.begin + a.end - a.reach() != b.begin + b.end - b.reach() || distance < 0 ||
      distance % a.dilation != 0 || distance / a.dilation >= a.taps)
    return std::nullopt;
  return distance / a.dilation;
}

/// Calls fn(tap of b, tap of a) for all taps of b. Returns false if some are none of a.
template <class F>
bool each_tap(const std::vector<Axis>& a, const std::vector<Axis>& b, F fn) {
  std::vector<int64_t> from(b.size(), 0), to(b.size());
  for (;;) {
    for (size_t i = 0; i < b.size(); i++) {
      const auto tap = tap_of(a[i], b[i], from[i]);
      if (!tap) return false;
      to[i] = *tap;
    }
    fn(from, to);
    size_t i = b.size();
    while (i > 0 && ++from[i - 1] == b[i - 1].taps) from[--i] = 0;
    if (i == 0) return true;
  }
}

class ConvMerger {
 public:
  explicit ConvMerger(PassContext& c) : c_(c) {}

  Status run() {
    return try_each_op(c_.function.body(), [&](Op& add) -> Status {
      if (add.type_name() != "add" || !add.epilogue.empty()) return {};
      Value *x = add.input("x"), *y = add.input("y");
      if (x == y || !(x->type == y->type) || !(x->type == add.output()->type)) return {};
      for (const auto& [into, other] : {std::pair{x, y}, std::pair{y, x}})
        if (MOKA_TRY(merge(add, *into, *other))) return {};
      return {};
    });
  }

 private:
  /// Merges what makes `other` into the convolution that makes `sum`.
  Result<bool> merge(Op& add, Value& sum, Value& other) {
    if (!has_one_use(sum)) return false;
    const auto to = Branch::of(*sum.producer());
    if (!to) return false;
    const auto from = has_one_use(other) ? Branch::of(*other.producer()) : std::nullopt;
    if (from && !is_parallel(*to, *from)) return false;
    const auto scale = from ? std::nullopt : scale_of(*to, other);
    const std::vector<Axis> axes = from ? from->axes : std::vector<Axis>(to->axes.size());
    // Expanding weights takes time, so it waits until the branches are known to merge.
    if ((!from && !scale) || !each_tap(to->axes, axes, [](const auto&, const auto&) {})) return false;
    const auto old = constant_value(*to->op->input("weight"), kMostWeights);
    auto bias = vector_of(*to->op, "bias", static_cast<size_t>(to->made), 0, kMostWeights);
    if (!old || !bias) return false;
    std::vector<double> weights = as_doubles(*old);
    if (from ? !add_conv(*to, *from, weights, *bias) : !add_scale(*to, *scale, weights, *bias)) return false;
    const auto is_finite = [](double v) { return std::isfinite(static_cast<float>(v)); };
    if (!std::all_of(weights.begin(), weights.end(), is_finite) || !std::all_of(bias->begin(), bias->end(), is_finite))
      return false;
    Op& conv = *to->op;
    conv.set_constant("weight", MOKA_TRY(rounded(weights, DType::fp32, old->shape())));
    if (std::any_of(bias->begin(), bias->end(), [](double b) { return b != 0; }))
      conv.set_constant("bias", MOKA_TRY(rounded(*bias, DType::fp32, Shape{to->made})));
    c_.remark(cat(&other == to->x ? other.name : other.producer()->name, " into the weights of ", conv.name));
    take_name(sum, *add.output());
    replace_and_erase(add, &sum);
    return true;
  }

  static bool is_parallel(const Branch& to, const Branch& from) {
    return to.x == from.x && to.groups == from.groups && to.made == from.made && to.of_group == from.of_group &&
           to.axes.size() == from.axes.size();
  }

  static bool add_conv(const Branch& to, const Branch& from, std::vector<double>& weights, std::vector<double>& bias) {
    const auto added = constant_value(*from.op->input("weight"), kMostWeights);
    const auto shift = vector_of(*from.op, "bias", bias.size(), 0, kMostWeights);
    if (!added || !shift) return false;
    const std::vector<double> w = as_doubles(*added);
    for (size_t i = 0; i < bias.size(); i++) bias[i] += (*shift)[i];
    return each_tap(to.axes, from.axes, [&](const std::vector<int64_t>& t, const std::vector<int64_t>& u) {
      for (int64_t o = 0; o < to.made; o++)
        for (int64_t i = 0; i < to.of_group; i++) weights[to.at(o, i, u)] += w[from.at(o, i, t)];
    });
  }

  /// How `other` depends on the input of the convolution, for each channel.
  static std::optional<Affine> scale_of(const Branch& to, const Value& other) {
    if (to.made != to.of_group * to.groups) return std::nullopt;
    // A dense convolution takes the value itself as an addend.
    if (&other == to.x) return to.of_group == 1 ? std::optional(Affine{}) : std::nullopt;
    if (!has_one_use(other)) return std::nullopt;
    const Op& p = *other.producer();
    const auto reads = [&](std::string_view param) {
      return p.version().param_index(param) >= 0 && p.input(param) == to.x;
    };
    if (!reads("x") && !reads("y")) return std::nullopt;
    const auto scale = affine_of(p, *to.x, 1, to.made, kMostWeights);
    return scale && scale->finite() ? scale : std::nullopt;
  }

  static bool add_scale(const Branch& to, const Affine& scale, std::vector<double>& weights,
                        std::vector<double>& bias) {
    for (size_t i = 0; i < bias.size(); i++) bias[i] += Affine::at(scale.shift, i);
    const std::vector<Axis> pixel(to.axes.size());
    return each_tap(to.axes, pixel, [&](const std::vector<int64_t>&, const std::vector<int64_t>& u) {
      for (int64_t o = 0; o < to.made; o++)
        weights[to.at(o, o % to.of_group, u)] += Affine::at(scale.scale, static_cast<size_t>(o));
    });
  }

  PassContext& c_;
};

Status merge_convs(PassContext& c) { return ConvMerger(c).run(); }

}  // namespace

Pass pass_merge_convs() { return {"merge_convs", merge_convs}; }

}  // namespace moka::passes
