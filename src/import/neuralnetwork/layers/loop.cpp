// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "import/neuralnetwork/control.h"
#include "ops/common/merge_types.h"

namespace moka::import::nn {

namespace {

using Layers = google::protobuf::RepeatedPtrField<proto::NeuralNetworkLayer>;
using BlockInputs = std::vector<std::pair<std::string, ir::Type>>;

/// Whether the list has a jump of this loop. Jumps in inner loops belong to those loops and do not count.
bool has_jumps(const Layers& layers, int depth = 0) {
  return depth <= 64 && std::any_of(layers.begin(), layers.end(), [&](const auto& layer) {
           return layer.has_loopbreak() || layer.has_loopcontinue() ||
                  (layer.has_branch() && (has_jumps(layer.branch().ifbranch().layers(), depth + 1) ||
                                          has_jumps(layer.branch().elsebranch().layers(), depth + 1)));
         });
}

/// Counts the paths through a list of layers that reach its end, and those that leave the iteration earlier.
struct Ways {
  int64_t through = 1, out = 0;
};

constexpr int64_t kMaxWays = 64;

Ways ways(const Layers& layers, int depth = 0) {
  Ways all;
  for (const auto& layer : layers) {
    if (layer.has_loopbreak() || layer.has_loopcontinue()) return {0, all.out + all.through};
    if (depth > 64 || !layer.has_branch()) continue;
    const Layers &yes = layer.branch().ifbranch().layers(), &no = layer.branch().elsebranch().layers();
    if (!has_jumps(yes, depth + 1) && !has_jumps(no, depth + 1)) continue;
    const Ways a = ways(yes, depth + 1), b = ways(no, depth + 1);
    all.out = std::min(kMaxWays + 1, all.out + all.through * (a.out + b.out));
    all.through = std::min(kMaxWays + 1, all.through * (a.through + b.through));
  }
  return all;
}

/// Imports one iteration of a loop whose body has breaks and continues. The layers after a branch with a jump are
/// imported into each block of the branch that reaches them. Every path through the body therefore ends by returning
/// the carried blobs and whether the loop is over.
class Iteration {
 public:
  explicit Iteration(const Names& carried) : carried_(carried) {}

  /// The remaining layers: those from `at` on, then those of `next`.
  struct Rest {
    const Layers* layers;
    int at = 0;
    const Rest* next = nullptr;
  };

  /// Returns the flag, then the carried blobs.
  Result<std::vector<Value*>> run(Network& net, Rest rest) {
    for (;;) {
      if (rest.at == rest.layers->size()) {
        if (rest.next == nullptr) return finish(net, false);
        rest = *rest.next;
        continue;
      }
      const proto::NeuralNetworkLayer& layer = (*rest.layers)[rest.at++];
      if (layer.has_loopbreak() || layer.has_loopcontinue()) return finish(net, layer.has_loopbreak());
      if (layer.has_branch() &&
          (has_jumps(layer.branch().ifbranch().layers()) || has_jumps(layer.branch().elsebranch().layers()))) {
        Layer l(net, layer, "branch");
        return MOKA_TRY_IN(fork(l, rest), l.place());
      }
      MOKA_TRY(net.add(layer));
    }
  }

 private:
  Result<std::vector<Value*>> fork(Layer& l, const Rest& rest) {
    MOKA_TRY(l.arity(1, 1, 0, 0));
    MOKA_TRY(check_nesting(l));
    Value* pred = MOKA_TRY(condition(l.net, MOKA_TRY(l.in(0)), l.p.name()));
    auto fill = [&](size_t index, ir::Builder& inner) -> Result<std::vector<Value*>> {
      Network own = l.net.inside(inner);
      const auto& way = index == 0 ? l.p.branch().ifbranch() : l.p.branch().elsebranch();
      return run(own, {&way.layers(), 0, &rest});
    };
    std::vector<BlockInputs> none(2);
    ir::Op* op = MOKA_TRY(l.net.builder().append_with_blocks(
        {"cond", {{"pred", pred}}, l.net.context().prefix + l.p.name(), {}, {}}, none, fill));
    std::vector<Value*> results;
    for (size_t i = 0; i < op->output_count(); i++) results.push_back(op->output(i));
    return results;
  }

  Result<std::vector<Value*>> finish(Network& net, bool over) {
    std::vector<Value*> results{MOKA_TRY(net.constant(Tensor::boolean(over), "over"))};
    for (const std::string& n : carried_) {
      Value* v = MOKA_TRY_IN(net.as(net.blobs.find(n)->second, Form::exact), cat("'", n, "'"));
      results.push_back(MOKA_TRY(net.op("identity", {{"x", v}}, n)));
    }
    return results;
  }

  const Names& carried_;
};

/// The types of the loop variables before and after one iteration.
struct Turn {
  BlockInputs vars;
  std::vector<ir::Type> next;  ///< types at the end of the body; empty when it was not reached

  /// Widens the types of variables whose shapes change. Returns false when none changes.
  bool widen(bool all_dimensions) {
    bool changed = false;
    for (size_t i = 0; i < next.size(); i++) {
      auto merged = ops::merge_types(vars[i].second, next[i]);
      if (!merged || *merged == vars[i].second) continue;
      changed = true;
      vars[i].second = *merged;
    }
    for (size_t i = 0; i < next.size() && changed && all_dimensions; i++)
      if (ir::Type& t = vars[i].second; t.is_ranked()) {
        const std::vector<int64_t> any(static_cast<size_t>(t.rank()), ir::kAnyDim);
        t = ir::Type::tensor(t.dtype(), Shape(any));
      }
    next.clear();
    return changed;
  }
};

class Loop {
 public:
  explicit Loop(Layer& l) : l_(l), p_(l.p.loop()), jumps_(has_jumps(p_.bodynetwork().layers())) {}

  /// Carries the iteration count, whether the loop is over (if there are jumps), and every blob that existed before the
  /// loop and is written inside it.
  Status import() {
    MOKA_TRY(l_.arity(0, 1, 0, 0));
    MOKA_TRY(check_nesting(l_));
    if (jumps_) {
      const Ways w = ways(p_.bodynetwork().layers());
      if (w.through + w.out > kMaxWays)
        return l_.unsupported(cat("more than ", kMaxWays, " ways through a body with loopBreak or loopContinue"));
    }
    find_carried();
    MOKA_TRY(find_limit());
    Network& net = l_.net;
    std::vector<Value*> vars{MOKA_TRY(l_.constant(Tensor::scalar_i64(DType::int32, 0), "count"))};
    Turn turn{{{"count", vars[0]->type}}, {}};
    if (jumps_) {
      vars.push_back(MOKA_TRY(l_.constant(Tensor::boolean(false), "over")));
      turn.vars.emplace_back("over", vars.back()->type);
    }
    for (const std::string& n : carried_) {
      vars.push_back(MOKA_TRY_IN(net.as(net.blobs.find(n)->second, Form::exact), cat("'", n, "'")));
      turn.vars.emplace_back("loop_var", vars.back()->type);
    }
    ir::Op* op = nullptr;
    for (int attempt = 0; op == nullptr; attempt++) {
      auto fill = [&](size_t index, ir::Builder& inner) -> Result<std::vector<Value*>> {
        Network own = MOKA_TRY(enter(inner));
        if (index == 0) return go_on(own, inner.block());
        std::vector<Value*> results = MOKA_TRY(body(own, inner.block()));
        for (Value* v : results) turn.next.push_back(v->type);
        return results;
      };
      std::vector<BlockInputs> inputs{turn.vars, turn.vars};
      Result<ir::Op*> made = net.builder().append_with_blocks(
          {"while_loop", {{"loop_vars", vars}}, net.context().prefix + l_.p.name(), {}, {}}, inputs, fill);
      // Every attempt imports the inner loops again, so only the outermost loops are tried twice.
      const bool again = turn.widen(attempt > 0 || net.nesting > 2);
      if (!again)
        op = MOKA_TRY(std::move(made));
      else if (made.ok())
        net.builder().block().erase(*made);
    }
    size_t i = first_;
    for (const std::string& n : carried_) net.blobs[n] = MOKA_TRY(net.blob(op->output(i++), Form::exact));
    return {};
  }

 private:
  void find_carried() {
    const Names of_condition = outputs_of(p_.conditionnetwork()), read = inputs_of(p_.bodynetwork());
    Names written = outputs_of(p_.bodynetwork());
    body_needs_condition_ = std::any_of(of_condition.begin(), of_condition.end(), [&](const std::string& n) {
      return read.contains(n) || l_.net.blobs.contains(n);
    });
    written.insert(of_condition.begin(), of_condition.end());
    for (const std::string& n : written)
      if (l_.net.blobs.contains(n)) carried_.insert(n);
    first_ = jumps_ ? 2 : 1;
  }

  Status find_limit() {
    if (l_.inputs() == 1) {
      limit_ = MOKA_TRY(l_.int32(0));
      if (limit_->type.rank() != 0) limit_ = MOKA_TRY(l_.op("squeeze", {{"x", limit_}}));
    } else if (p_.maxloopiterations() > 0 || !conditional()) {
      uint64_t n = std::min<uint64_t>(p_.maxloopiterations(), (uint64_t{1} << 31) - 1);
      limit_ = MOKA_TRY(l_.constant(Tensor::scalar_i64(DType::int32, static_cast<int64_t>(n)), "limit"));
    }
    return {};
  }

  bool conditional() const { return !p_.conditionvar().empty(); }

  Result<Network> enter(ir::Builder& inner) {
    Network own = l_.net.inside(inner);
    size_t i = first_;
    for (const std::string& n : carried_)
      own.blobs[n] = MOKA_TRY(own.blob(inner.block().inputs()[i++].get(), Form::exact));
    return own;
  }

  Result<std::vector<Value*>> go_on(Network& own, const ir::Block& block) {
    const std::string& name = l_.p.name();
    Value* all = nullptr;
    auto both = [&](Value* v) -> Status {
      all = all == nullptr ? v : MOKA_TRY(own.op("logical_and", {{"x", all}, {"y", v}}, name));
      return {};
    };
    if (limit_ != nullptr)
      MOKA_TRY(both(MOKA_TRY(own.op("less", {{"x", block.inputs()[0].get()}, {"y", limit_}}, name))));
    if (jumps_) MOKA_TRY(both(MOKA_TRY(own.op("logical_not", {{"x", block.inputs()[1].get()}}, name))));
    if (conditional()) {
      MOKA_TRY(own.add(p_.conditionnetwork().layers()));
      auto it = own.blobs.find(p_.conditionvar());
      if (it == own.blobs.end())
        return l_.malformed(cat("the condition network does not give '", p_.conditionvar(), "'"));
      MOKA_TRY(both(MOKA_TRY(condition(own, MOKA_TRY(own.as(it->second, Form::exact)), name))));
    }
    return std::vector<Value*>{all};
  }

  Result<std::vector<Value*>> body(Network& own, const ir::Block& block) {
    if (conditional() && body_needs_condition_) MOKA_TRY(own.add(p_.conditionnetwork().layers()));
    std::vector<Value*> results{MOKA_TRY(own.op("add", {{"x", block.inputs()[0].get()}, {"y", 1}}, l_.p.name()))};
    std::vector<Value*> rest = MOKA_TRY(Iteration(carried_).run(own, {&p_.bodynetwork().layers()}));
    results.insert(results.end(), rest.begin() + (jumps_ ? 0 : 1), rest.end());
    return results;
  }

  Layer& l_;
  const proto::LoopLayerParams& p_;
  const bool jumps_;
  Names carried_;
  size_t first_ = 1;  ///< index of the first carried blob among the loop variables
  bool body_needs_condition_ = false;
  Value* limit_ = nullptr;
};

Status loop(Layer& l) { return Loop(l).import(); }

Status jump(Layer& l) { return l.unsupported("a jump outside of a loop's body"); }

}  // namespace

std::span<const LayerImport> layers_loop() {
  using L = proto::NeuralNetworkLayer;
  static const LayerImport list[] = {
      {L::kLoop, "loop", loop},
      {L::kLoopBreak, "loopBreak", jump},
      {L::kLoopContinue, "loopContinue", jump},
  };
  return list;
}

}  // namespace moka::import::nn
