// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "kernel/epilogue.h"
#include "passes/pass.h"
#include "passes/rewrite.h"

/// Moves elementwise functions into the operation that produces their input, as its epilogues, also past reshapes and
/// transposes. In float16, where rounding must stay the same, only functions that select among their input and limits
/// are moved.
namespace moka::passes {

namespace {

using namespace ir;

constexpr size_t kMaxEpilogues = 8;
constexpr int kMaxMoves = 16;  ///< most reshapes and transposes in a row to look through
constexpr std::string_view kProducers[] = {"conv",       "conv_transpose", "linear",          "matmul", "batch_norm",
                                           "layer_norm", "instance_norm",  "moka_group_norm", "add",    "mul",
                                           "sub",        "real_div",       "maximum",         "minimum"};
constexpr float kInfinity = std::numeric_limits<float>::infinity();

bool takes_epilogue(const Op& op) {
  const DType t = op.output_count() == 1 && op.output()->type.is_tensor() ? op.output()->type.dtype() : DType::none;
  return (t == DType::fp32 || t == DType::fp16) && op.epilogue.size() < kMaxEpilogues &&
         std::find(std::begin(kProducers), std::end(kProducers), op.type_name()) != std::end(kProducers);
}

/// An elementwise operation as an epilogue.
std::optional<Epilogue> epilogue_of(const Op& op) {
  Epilogue e;
  e.op = op.type_name();
  e.origin = op.name;
  const bool threshold = e.op == "threshold";
  if (!threshold && !kernel::is_epilogue(e.op)) return std::nullopt;
  if (!op.has_trait(Trait::elementwise) || !op.epilogue.empty() || op.output_count() != 1 || op.input("x") == nullptr)
    return std::nullopt;
  if (e.op == "gelu" && text_of(op, "mode") != "EXACT") return std::nullopt;
  for (auto [param, to] : {std::pair{"alpha", &e.alpha}, std::pair{"beta", &e.beta}}) {
    if (op.version().param_index(param) < 0) continue;
    const auto v = number_of(op, param);
    if (!v || std::isnan(*v)) return std::nullopt;
    *to = static_cast<float>(*v);
  }
  if (threshold) {
    e.op = "clip";
    e.beta = kInfinity;
  }
  return e;
}

/// What a reshape or transpose moves.
Value* moved_by(const Op& move) { return move.input(move.version().params[0].name); }

/// The operation whose result `op` reads, also behind reshapes and transposes, if nothing else reads it.
Op* source_of(const Op& op) {
  Value* v = op.input("x");
  for (int i = 0; i < kMaxMoves && has_one_use(*v); i++) {
    Op* p = v->producer();
    if (takes_epilogue(*p)) return p->output()->type.dtype() == op.input("x")->type.dtype() ? p : nullptr;
    if ((p->type_name() != "transpose" && !p->has_trait(Trait::alias)) || !p->epilogue.empty()) return nullptr;
    v = moved_by(*p);
    if (v == nullptr) return nullptr;
  }
  return nullptr;
}

/// Makes `first` clamp to the limits of both if both clamp and their ranges overlap.
bool merge(Epilogue& first, const Epilogue& second) {
  const auto a = kernel::limits_of(first), b = kernel::limits_of(second);
  if (!a || !b) return false;
  const float low = std::max((*a)[0], (*b)[0]), high = std::min((*a)[1], (*b)[1]);
  if (!(low < high)) return false;
  first.alpha = first.beta = 0;
  if (low == 0 && high == kInfinity) {
    first.op = "relu";
  } else if (low == 0 && high == 6) {
    first.op = "relu6";
  } else {
    first = {"clip", low, high, first.origin};
  }
  return true;
}

/// Rewrites -max(-x, -b), which neural networks use for the minimum, as min(x, b).
void simplify(std::vector<Epilogue>& all) {
  auto negates = [](const Epilogue& e) { return e.op == "linear_activation" && e.alpha == -1 && e.beta == 0; };
  const size_t n = all.size();
  if (n < 3 || !negates(all[n - 3]) || !negates(all[n - 1])) return;
  const auto limits = kernel::limits_of(all[n - 2]);
  if (!limits) return;
  Epilogue clip{"clip", -(*limits)[1], -(*limits)[0], all[n - 1].origin};
  all.resize(n - 3);
  if (all.empty() || !merge(all.back(), clip)) all.push_back(std::move(clip));
}

class ActivationFuser {
 public:
  explicit ActivationFuser(PassContext& c) : c_(c) {}
  Status run() {
    return try_each_op(c_.function.body(), [this](Op& op) { return visit(op); });
  }

 private:
  Status visit(Op& op) {
    if (op.type_name() == "mul") return silu(op);
    auto e = epilogue_of(op);
    if (Op* source = e ? source_of(op) : nullptr) fuse(*source, op, std::move(*e));
    return {};
  }

  /// Moves `op` into `producer`. `op` computes `e` of its output, which nothing else reads, possibly reshaped or
  /// transposed.
  bool fuse(Op& producer, Op& op, Epilogue e) {
    if (!takes_epilogue(producer) || producer.parent() != op.parent()) return false;
    if (producer.output()->type.dtype() != DType::fp32 && !kernel::is_exact(e)) return false;
    c_.remark(cat(op.name, " into ", producer.name));
    if (producer.epilogue.empty() || !merge(producer.epilogue.back(), e)) producer.epilogue.push_back(std::move(e));
    simplify(producer.epilogue);
    Value* x = op.input("x");
    take_name(*x, *op.output());
    // The model's values of these names have other elements than the values before the moves now have.
    for (Value* v = x; v != producer.output();) {
      v = moved_by(*v->producer());
      v->name = c_.function.unique_name(x->name);
    }
    replace_and_erase(op, x);
    return true;
  }

  /// Replaces x * sigmoid(x) by silu.
  Status silu(Op& mul) {
    for (auto [a, b] : {std::pair{"x", "y"}, std::pair{"y", "x"}}) {
      Value *x = mul.input(a), *gate = mul.input(b);
      Op* sigmoid = gate->producer();
      if (sigmoid == nullptr || sigmoid->type_name() != "sigmoid" || sigmoid->input("x") != x ||
          !sigmoid->epilogue.empty() || !has_one_use(*gate) || !mul.epilogue.empty())
        continue;
      if (x->type.dtype() != DType::fp32) return {};
      Op* producer = x->producer();
      if (producer != nullptr && x->users().size() == 2 && x->returned_by().empty() &&
          producer->parent() == mul.parent() && sigmoid->parent() == mul.parent() && takes_epilogue(*producer)) {
        mul.replace_input(gate, x);
        sigmoid->parent()->erase(sigmoid);
        fuse(*producer, mul, {"silu", 0, 0, mul.name});
        return {};
      }
      Builder before = Builder::before(c_.table, mul);
      Value* y = MOKA_TRY(before.op("silu", {{"x", x}}, mul.name));
      c_.remark(cat(sigmoid->name, ", ", mul.name, " into one silu"));
      take_name(*y, *mul.output());
      replace_and_erase(mul, y);
      sigmoid->parent()->erase(sigmoid);
      return {};
    }
    return {};
  }

  PassContext& c_;
};

Status fuse_activations(PassContext& c) { return ActivationFuser(c).run(); }

}  // namespace

Pass pass_fuse_activations() { return {"fuse_activations", fuse_activations}; }

}  // namespace moka::passes
