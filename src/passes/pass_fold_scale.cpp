// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <span>

#include "ir/fixed.h"
#include "passes/affine.h"
#include "passes/pass.h"
#include "passes/rewrite.h"

/// Folds per-channel products and sums before and after a convolution or a linear layer into its weights and bias, and
/// zero padding before a convolution into its own padding. Only in float32 and float64, because in other types the
/// results would be rounded differently.
namespace moka::passes {

namespace {

using namespace ir;

constexpr size_t kMaxWeights = size_t{64} << 20;   ///< most bytes of weights that are expanded for folding
constexpr size_t kScaledNow = size_t{64} << 10;    ///< larger weights are scaled when a kernel packs them
constexpr int64_t kFewRows = 4;                    ///< rows for which kernels read weights from the file
constexpr size_t kReadAsStored = size_t{1} << 20;  ///< bytes from which reading them takes most of the time

bool is_wide_float(const Type& t) { return t.is_tensor() && (t.dtype() == DType::fp32 || t.dtype() == DType::fp64); }

/// A convolution or a linear layer, and its channels.
struct Layer {
  Op& op;
  bool linear, transposed;
  int64_t groups = 1, made = 0, taken = 0;  ///< channels

  static std::optional<Layer> of(Op& op) {
    const std::string& type = op.type_name();
    Layer l{op, type == "linear", type == "conv_transpose"};
    if (!l.linear && !l.transposed && type != "conv") return std::nullopt;
    const Type &x = op.input("x")->type, &w = op.input("weight")->type;
    if (!is_wide_float(x) || !x.is_ranked() || !is_wide_float(w) || !w.is_concrete() || w.rank() < 2 ||
        !op.epilogue.empty())
      return std::nullopt;
    if (!l.linear) {
      const auto groups = number_of(op, "groups");
      if (!groups || *groups < 1) return std::nullopt;
      l.groups = static_cast<int64_t>(*groups);
    }
    l.made = l.transposed ? w.shape()[1] * l.groups : w.shape()[0];
    l.taken = l.transposed ? w.shape()[0] : w.shape()[1] * l.groups;
    if (l.made % l.groups != 0 || l.taken % l.groups != 0) return std::nullopt;
    return l;
  }

  int axis() const { return linear ? op.output()->type.rank() - 1 : 1; }

  /// Whether the kernel is faster when it reads the weights as the file stores them.
  bool reads_from_file() const {
    const Type &x = op.input("x")->type, &w = op.input("weight")->type;
    const auto bytes = storage_bytes(w.dtype(), w.shape());
    return linear && bytes && *bytes >= kReadAsStored && x.is_concrete() && x.shape().count() <= kFewRows * taken;
  }

  /// Calls fn(weight, output channel, input channel).
  template <class F>
  void each_weight(std::span<double> w, F fn) const {
    const Shape& s = op.input("weight")->type.shape();
    const int64_t rows = s[0], columns = s[1], taps = s.count(2, s.rank());
    const int64_t group_rows = rows / groups;
    size_t at = 0;
    for (int64_t i = 0; i < rows; i++)
      for (int64_t j = 0; j < columns; j++) {
        const int64_t across = i / group_rows * columns + j;  // channel on the other side, counted across all groups
        const auto out = static_cast<size_t>(transposed ? across : i),
                   in = static_cast<size_t>(transposed ? i : across);
        for (int64_t t = 0; t < taps; t++) fn(w[at++], out, in);
      }
  }
};

class ScaleFolder {
 public:
  explicit ScaleFolder(PassContext& c) : c_(c) {}
  Status run() { return block(c_.function.body()); }

 private:
  Status block(Block& b) {
    for (auto it = b.ops().begin(); it != b.ops().end();) {
      Op& op = **it;
      for (size_t i = 0; i < op.block_count(); i++) MOKA_TRY(block(*op.block(i)));
      if (op.type_name() == "conv") border(op);
      if (const auto layer = Layer::of(op)) MOKA_TRY(fold(*layer));
      ++it;  // skips operations that are about to be erased
    }
    return {};
  }

  /// Folds zero padding into the convolution's if every window still touches the input.
  void border(Op& conv) {
    Value* x = conv.input("x");
    if (!has_one_use(*x) || !x->type.is_ranked()) return;
    Op& p = *x->producer();
    const Type& weight = conv.input("weight")->type;
    if (p.type_name() != "pad" || text_of(p, "mode") != "constant" || number_of(p, "constant_val") != 0.0 ||
        !weight.is_concrete())
      return;
    const auto margins = ints_of(p, "pad");
    const int rank = x->type.rank(), spatial = rank - 2;
    if (!margins || margins->size() % 2 != 0 || margins->size() > 2 * static_cast<size_t>(rank) ||
        weight.rank() != rank)
      return;
    std::vector<int64_t> pad(2 * static_cast<size_t>(spatial), 0);
    if (const std::string_view kind = text_of(conv, "pad_type"); kind == "custom") {
      const auto own = ints_of(conv, "pad");
      if (own && own->size() == pad.size())
        pad = *own;
      else if (own || conv.input("pad") != nullptr)
        return;
    } else if (kind != "valid") {
      return;
    }
    const auto dilations = ints_of(conv, "dilations");
    for (size_t i = 0; i < margins->size(); i++) {
      const int64_t m = (*margins)[i];
      const int axis = rank - static_cast<int>(margins->size() / 2) + static_cast<int>(i / 2) - 2;
      if (m < 0 || (axis < 0 && m != 0)) return;
      if (m == 0) continue;
      const auto d = static_cast<size_t>(axis);
      const int64_t extent =
          (weight.shape()[axis + 2] - 1) * (dilations && d < dilations->size() ? (*dilations)[d] : 1) + 1;
      pad[2 * d + i % 2] += m;
      if (pad[2 * d + i % 2] >= extent) return;
    }
    conv.set_constant("pad_type", Tensor::text("custom"));
    conv.set_constant("pad", Tensor::i32(pad));
    conv.replace_input(x, p.input("x"));
    c_.remark(cat(p.name, " into the padding of ", conv.name));
  }

  Status fold(const Layer& layer) {
    Op& op = layer.op;
    const auto bias = vector_of(op, "bias", static_cast<size_t>(layer.made), 0, kMaxWeights);
    const Value* given_bias = op.input("bias");
    if (!bias && !(is_from_parameter(*given_bias) && given_bias->type.is_concrete())) return {};
    std::vector<ChannelStep> before, after;
    std::string names;
    Value* input = op.input("x");
    while (has_one_use(*input)) {
      Op& p = *input->producer();
      Value* x = source_of(p);
      if (x == nullptr || !same_sizes(x->type, input->type)) break;
      auto step = channel_step(p, *x, layer.linear ? input->type.rank() - 1 : 1, layer.taken, kMaxWeights);
      if (!step || (step->shifts && !sees_only_input(layer))) break;
      before.insert(before.begin(), std::move(*step));
      names += cat(names.empty() ? "" : ", ", p.name);
      input = x;
    }
    Value *output = op.output(), *kept = output;
    std::vector<Value*> reshaped;  // values that stay, before reshapes
    size_t scaled = 0;             // the first of these, which an operation behind them scales
    int axis = layer.axis();
    while (has_one_use(*output)) {
      Op& next = *output->users()[0];
      if (next.output_count() != 1) break;
      if (const auto moved = axis_behind(next, *output, axis, layer.made)) {
        axis = *moved;
        reshaped.push_back(kept);
        kept = next.output();
      } else if (same_sizes(output->type, next.output()->type)) {
        auto step = channel_step(next, *output, axis, layer.made, kMaxWeights);
        if (!step) break;
        after.push_back(std::move(*step));
        names += cat(names.empty() ? "" : ", ", next.name);
        scaled = reshaped.size();
      } else {
        break;
      }
      output = next.output();
    }
    if (names.empty()) return {};
    const bool all_known = bias && is_known(before) && is_known(after) && !is_from_parameter(*op.input("weight"));
    if (!MOKA_TRY(all_known ? apply(layer, *bias, together(before), together(after), names)
                            : apply_later(layer, before, after, names)))
      return {};
    if (input != op.input("x")) op.replace_input(op.input("x"), input);
    for (auto step = after.rbegin(); step != after.rend(); ++step) {
      Op& follower = *step->x->users()[0];
      take_name(*step->x, *follower.output());
      Function::replace_all_uses(follower.output(), step->x);
      op.parent()->erase(&follower);
    }
    // The model's values of these names are not scaled.
    for (size_t i = 0; i < scaled; i++) reshaped[i]->name = c_.function.unique_name(reshaped[i]->name);
    return {};
  }

  static bool is_known(const std::vector<ChannelStep>& steps) {
    return std::all_of(steps.begin(), steps.end(), [](const ChannelStep& s) { return s.known.has_value(); });
  }

  static Affine together(const std::vector<ChannelStep>& steps) {
    Affine all;
    for (const ChannelStep& s : steps) all = all.then(*s.known);
    return all;
  }

  /// If `next` only reshapes `x`, finds where its result has the dimension `axis` of `channels` entries.
  static std::optional<int> axis_behind(const Op& next, const Value& x, int axis, int64_t channels) {
    if (!next.has_trait(Trait::alias) || next.input("x") != &x || !next.epilogue.empty()) return std::nullopt;
    const Type &from = x.type, &to = next.output()->type;
    if (!from.is_ranked() || !to.is_tensor() || !to.is_ranked()) return std::nullopt;
    const auto size_behind = [](const Shape& s, int i) {
      int64_t n = 1;
      for (i++; i < s.rank() && n >= 0; i++) n = s[i] < 0 ? -1 : n * s[i];
      return n;
    };
    const int64_t inner = size_behind(from.shape(), axis);
    if (inner <= 0 || from.shape()[axis] != channels) return std::nullopt;
    for (int i = to.rank() - 1; i >= 0; i--)
      if (to.shape()[i] == channels && size_behind(to.shape(), i) == inner) return i;
    return std::nullopt;
  }

  /// The operand of a candidate operation that is not a constant.
  static Value* source_of(const Op& p) {
    if (p.output_count() != 1) return nullptr;
    Value* x = p.input("x");
    if (x != nullptr && is_fixed(*x)) x = p.version().param_index("y") >= 0 ? p.input("y") : nullptr;
    return x;
  }

  static bool same_sizes(const Type& a, const Type& b) {
    if (!a.is_tensor() || !b.is_tensor() || a.dtype() != b.dtype() || !a.is_ranked() || !b.is_ranked() ||
        a.rank() != b.rank())
      return false;
    for (int i = 0; i < a.rank(); i++)
      if (a.shape()[i] != b.shape()[i] && a.shape()[i] >= 0 && b.shape()[i] >= 0) return false;
    return true;
  }

  /// Whether no output reads padding.
  static bool sees_only_input(const Layer& layer) {
    if (layer.linear) return true;
    if (layer.transposed) return false;
    const std::string_view pad = text_of(layer.op, "pad_type");
    if (pad == "valid") return true;
    const auto sizes = ints_of(layer.op, "pad");
    return pad == "custom" && sizes && std::all_of(sizes->begin(), sizes->end(), [](int64_t p) { return p == 0; });
  }

  /// Returns false if the weights cannot be changed, are better read from the file, or would not stay finite.
  Result<bool> apply(const Layer& layer, std::vector<double> bias, const Affine& before, const Affine& after,
                     std::string_view names) {
    Op& op = layer.op;
    const bool reweigh = before.scales() || after.scales(), had_bias = op.input("bias") != nullptr;
    Value* weight = op.input("weight");
    const DType dtype = weight->type.dtype();
    const bool later = reweigh && MOKA_TRY(storage_bytes(dtype, weight->type.shape())) > kScaledNow;
    std::optional<Tensor> scaled;
    if (reweigh || before.shifts()) {
      if (!may_expand(*weight, kMaxWeights) || (reweigh && layer.reads_from_file())) return false;
      if (before.shifts() || !later) {
        const auto old = constant_value(*weight, kMaxWeights);
        if (!old) return false;
        std::vector<double> w = as_doubles(*old);
        if (!change(layer, before, after, w, bias)) return false;
        if (reweigh && !later) scaled = MOKA_TRY(rounded(w, old->dtype(), old->shape()));
      } else if (!stays_finite(*weight, largest(before.scale) * largest(after.scale))) {
        return false;
      }
    }
    const DType bias_dtype = had_bias ? op.input("bias")->type.dtype() : dtype;
    for (size_t i = 0; i < bias.size(); i++) {
      const bool finite = std::isfinite(bias[i]);
      bias[i] = bias[i] * Affine::at(after.scale, i) + Affine::at(after.shift, i);
      if (finite && !fits(bias[i], bias_dtype)) return false;
    }
    if (scaled) op.set_constant("weight", std::move(*scaled));
    if (later) MOKA_TRY(scale_when_packed(layer, before, after));
    if (had_bias || std::any_of(bias.begin(), bias.end(), [](double b) { return b != 0; }))
      op.set_constant("bias", MOKA_TRY(rounded(bias, bias_dtype, Shape{layer.made})));
    c_.remark(cat(names, reweigh ? " into the weights of " : " into the bias of ", op.name));
    return true;
  }

  /// Makes weights and bias operations on parameters, which are computed again when a parameter has changed.
  Result<bool> apply_later(const Layer& layer, const std::vector<ChannelStep>& before,
                           const std::vector<ChannelStep>& after, std::string_view names) {
    Op& op = layer.op;
    Value *weight = op.input("weight"), *bias = op.input("bias");
    const auto any = [](const std::vector<ChannelStep>& steps, bool ChannelStep::*what) {
      return std::any_of(steps.begin(), steps.end(), [&](const ChannelStep& s) { return s.*what; });
    };
    const bool reweigh = any(before, &ChannelStep::scales) || any(after, &ChannelStep::scales);
    const bool shifts = any(before, &ChannelStep::shifts);
    if (((reweigh || shifts) && !may_expand(*weight, kMaxWeights)) || (reweigh && layer.reads_from_file()) ||
        (shifts && layer.transposed))
      return false;
    Builder builder = Builder::before(c_.table, op);
    const auto one = [](double v) { return rounded({v}, DType::fp64, Shape{1}); };
    const auto [in_scale, in_shift] = MOKA_TRY(compose(builder, before, layer.taken));
    const auto [out_scale, out_shift] = MOKA_TRY(compose(builder, after, layer.made));
    Value* scaled = weight;
    if (reweigh) {
      std::vector<NamedArg> args{
          given("weight", weight), {"groups", static_cast<int>(layer.groups)}, {"transposed", layer.transposed}};
      for (const auto& [param, scale] : {std::pair("input_scale", in_scale), std::pair("output_scale", out_scale)})
        args.push_back(scale != nullptr ? NamedArg(param, scale) : NamedArg(param, MOKA_TRY(one(1))));
      scaled = MOKA_TRY(builder.op("moka_scale_weights", std::move(args), weight->name));
    }
    if (bias != nullptr || shifts || any(after, &ChannelStep::shifts)) {
      const auto ones = [&](double v) {
        return rounded(std::vector<double>(static_cast<size_t>(layer.made), v), DType::fp64, Shape{layer.made});
      };
      const DType dtype = bias != nullptr ? bias->type.dtype() : weight->type.dtype();
      std::vector<NamedArg> args{{"dtype", std::string(to_string(dtype))}, {"groups", static_cast<int>(layer.groups)}};
      args.push_back(out_scale != nullptr ? NamedArg("scale", out_scale) : NamedArg("scale", MOKA_TRY(ones(1))));
      args.push_back(out_shift != nullptr ? NamedArg("shift", out_shift) : NamedArg("shift", MOKA_TRY(ones(0))));
      if (bias != nullptr) args.push_back(given("bias", bias));
      if (shifts) {
        args.push_back(given("weight", weight));
        args.emplace_back("input_shift", in_shift);
      }
      op.set_input("bias", {MOKA_TRY(builder.op("moka_fold_bias", std::move(args), cat(op.name, "_bias")))});
    }
    if (scaled != weight) op.set_input("weight", {scaled});
    c_.remark(cat(names, reweigh ? " into the weights of " : " into the bias of ", op.name));
    return true;
  }

  static bool fits(double v, DType dtype) {
    return dtype == DType::fp32 ? std::isfinite(static_cast<float>(v)) : std::isfinite(v);
  }

  static double largest(const std::vector<double>& v) {
    double most = 0;
    for (double x : v) most = std::max(most, std::fabs(x));
    return most;
  }

  /// Folds into weights and bias. Returns false if a finite weight would become infinite, or if one that is not finite
  /// would reach the bias.
  static bool change(const Layer& layer, const Affine& before, const Affine& after, std::vector<double>& w,
                     std::vector<double>& bias) {
    const DType dtype = layer.op.input("weight")->type.dtype();
    bool fine = true;
    layer.each_weight(w, [&](double& v, size_t out, size_t in) {
      const double shift = Affine::at(before.shift, in);
      const bool finite = std::isfinite(v);
      if (shift != 0) bias[out] += v * shift;
      v *= Affine::at(before.scale, in) * Affine::at(after.scale, out);
      fine &= finite ? fits(v, dtype) : shift == 0;
    });
    return fine;
  }

  /// Whether every finite weight stays finite when multiplied by up to `most`.
  static bool stays_finite(const Value& weight, double most) {
    constexpr double kMostHalf = 65504, kMostFloat = std::numeric_limits<float>::max();
    if (most <= 1) return true;
    const Value* v = &weight;
    while (v->producer() != nullptr && v->type.dtype() != DType::fp16 &&
           (v->producer()->type_name() == "cast" || v->producer()->type_name() == "constexpr_cast"))
      v = v->producer()->operands()[0].values[0];
    if (v->type.dtype() == DType::fp16) return most <= kMostFloat / kMostHalf;
    const auto t = constant_value(weight, kMaxWeights);
    if (!t) return false;
    if (t->dtype() == DType::fp32) return !has_large(t->as<float>(), static_cast<float>(kMostFloat / most));
    const std::vector<double> all = as_doubles(*t);
    return std::all_of(all.begin(), all.end(),
                       [&](double x) { return !std::isfinite(x) || fits(x * most, t->dtype()); });
  }

  /// Whether a finite number has a magnitude of `limit` or more.
  static bool has_large(std::span<const float> all, float limit) {
    constexpr uint32_t kInfinity = 0x7f800000;
    const auto low = std::bit_cast<uint32_t>(limit);
    uint32_t any = 0;
    for (float v : all) any |= (std::bit_cast<uint32_t>(v) & 0x7fffffff) - low < kInfinity - low ? 1 : 0;
    return any != 0;
  }

  /// Makes the weights an operation on constants, so that only the kernel's packed form of the result is kept.
  Status scale_when_packed(const Layer& layer, const Affine& before, const Affine& after) {
    Op& op = layer.op;
    Builder builder = Builder::before(c_.table, op);
    const auto scales = [](const std::vector<double>& v) {
      return rounded(v, DType::fp64, Shape{static_cast<int64_t>(v.size())});
    };
    Value* weight = op.input("weight");
    Tensor by_input = MOKA_TRY(scales(before.scale)), by_output = MOKA_TRY(scales(after.scale));
    Value* scaled = MOKA_TRY(builder.op("moka_scale_weights",
                                        {given("weight", weight),
                                         {"input_scale", std::move(by_input)},
                                         {"output_scale", std::move(by_output)},
                                         {"groups", static_cast<int>(layer.groups)},
                                         {"transposed", layer.transposed}},
                                        weight->name));
    op.set_input("weight", {scaled});
    return {};
  }

  PassContext& c_;
};

Status fold_scale(PassContext& c) { return ScaleFolder(c).run(); }

}  // namespace

Pass pass_fold_scale() { return {"fold_scale", fold_scale}; }

}  // namespace moka::passes
