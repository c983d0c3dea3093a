#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "kernel/epilogue.h"
#include "passes/pass.h"
#include "passes/rewrite.h"

/// Elementwise functions go into the operation that makes their input. In float16, which keeps its rounding, only
/// functions that pick among their input and float16 limits do.
namespace moka::passes {

namespace {

using namespace ir;

constexpr size_t kMaxEpilogues = 8;
constexpr std::string_view kProducers[] = {"conv",       "conv_transpose", "linear",          "matmul", "batch_norm",
                                           "layer_norm", "instance_norm",  "moka_group_norm", "add",    "mul",
                                           "sub",        "real_div",       "maximum",         "minimum"};
constexpr float kInfinity = std::numeric_limits<float>::infinity();

bool takes_epilogue(const Op& op) {
  const DType t = op.output_count() == 1 && op.output()->type.is_tensor() ? op.output()->type.dtype() : DType::none;
  return (t == DType::fp32 || t == DType::fp16) && op.epilogue.size() < kMaxEpilogues &&
         std::find(std::begin(kProducers), std::end(kProducers), op.type_name()) != std::end(kProducers);
}

/// Its results are among its inputs and its limits.
bool rounds_nothing(const Epilogue& e) { return e.op == "relu" || e.op == "relu6" || e.op == "clip" || e.op == "abs"; }

/// What an elementwise operation does to `x`.
std::optional<Epilogue> epilogue_of(const Op& op) {
  Epilogue e;
  e.op = op.type_name();
  e.origin = op.name;
  const bool clamped = e.op == "clamped_relu";
  if (!clamped && !kernel::is_epilogue(e.op)) return std::nullopt;
  if (!op.has_trait(Trait::elementwise) || !op.epilogue.empty() || op.output_count() != 1 || op.input("x") == nullptr)
    return std::nullopt;
  if (e.op == "gelu" && text_of(op, "mode") != "EXACT") return std::nullopt;
  for (auto [param, to] : {std::pair{"alpha", &e.alpha}, std::pair{"beta", &e.beta}}) {
    if (op.version().param_index(param) < 0) continue;
    const auto v = number_of(op, param);
    if (!v) return std::nullopt;
    *to = static_cast<float>(*v);
  }
  if (clamped) {
    if (e.alpha != 0 || !(e.beta > 0)) return std::nullopt;
    e.op = "clip";
  }
  return e;
}

struct Limits {
  float low, high;
};

std::optional<Limits> limits_of(const Epilogue& e) {
  if (e.op == "relu") return Limits{0, kInfinity};
  if (e.op == "relu6") return Limits{0, 6};
  if (e.op == "clip") return Limits{e.alpha, e.beta};
  return std::nullopt;
}

/// Two limits in a row are one, if they overlap.
bool merge(Epilogue& first, const Epilogue& second) {
  const auto a = limits_of(first), b = limits_of(second);
  if (!a || !b) return false;
  const Limits both{std::max(a->low, b->low), std::min(a->high, b->high)};
  if (!(both.low < both.high)) return false;
  first.alpha = first.beta = 0;
  if (both.low == 0 && both.high == kInfinity) {
    first.op = "relu";
  } else if (both.low == 0 && both.high == 6) {
    first.op = "relu6";
  } else {
    first = {"clip", both.low, both.high, first.origin};
  }
  return true;
}

class Fuser {
 public:
  explicit Fuser(PassContext& c) : c_(c) {}
  Status run() { return block(c_.function.body()); }

 private:
  Status block(Block& b) {
    for (auto it = b.ops().begin(); it != b.ops().end();) {
      Op& op = **it++;
      for (size_t i = 0; i < op.block_count(); i++) MOKA_TRY(block(*op.block(i)));
      if (op.type_name() == "mul") {
        MOKA_TRY(silu(op));
      } else if (auto e = epilogue_of(op); e && has_one_use(*op.input("x"))) {
        fuse(*op.input("x")->producer(), op, std::move(*e));
      }
    }
    return {};
  }

  /// `op` computes `e` of the output of `producer`, which nothing else reads.
  bool fuse(Op& producer, Op& op, Epilogue e) {
    if (!takes_epilogue(producer) || producer.parent() != op.parent()) return false;
    if (producer.output()->type.dtype() != DType::fp32 && !rounds_nothing(e)) return false;
    c_.remark(cat(op.name, " into ", producer.name));
    if (producer.epilogue.empty() || !merge(producer.epilogue.back(), e)) producer.epilogue.push_back(std::move(e));
    take_name(*producer.output(), *op.output());
    replace_and_erase(op, producer.output());
    return true;
  }

  /// x * sigmoid(x).
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

Status run(PassContext& c) { return Fuser(c).run(); }

}  // namespace

Pass pass_fuse_activations() { return {"fuse_activations", run}; }

}  // namespace moka::passes
