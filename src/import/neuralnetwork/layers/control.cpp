#include <algorithm>
#include <set>

#include "import/neuralnetwork/network.h"

namespace moka::import::nn {

namespace {

using Names = std::set<std::string, std::less<>>;

/// Names that a network's layers write, those of branches and loops inside it included.
void collect_outputs(const proto::NeuralNetwork& n, Names& names, int depth = 0) {
  if (depth > 64) return;
  for (const auto& layer : n.layers()) {
    names.insert(layer.output().begin(), layer.output().end());
    if (layer.has_branch()) {
      collect_outputs(layer.branch().ifbranch(), names, depth + 1);
      collect_outputs(layer.branch().elsebranch(), names, depth + 1);
    } else if (layer.has_loop()) {
      collect_outputs(layer.loop().conditionnetwork(), names, depth + 1);
      collect_outputs(layer.loop().bodynetwork(), names, depth + 1);
    }
  }
}

/// Names that a network's layers read.
void collect_inputs(const proto::NeuralNetwork& n, Names& names, int depth = 0) {
  if (depth > 64) return;
  for (const auto& layer : n.layers()) {
    names.insert(layer.input().begin(), layer.input().end());
    if (layer.has_branch()) {
      collect_inputs(layer.branch().ifbranch(), names, depth + 1);
      collect_inputs(layer.branch().elsebranch(), names, depth + 1);
    } else if (layer.has_loop()) {
      collect_inputs(layer.loop().conditionnetwork(), names, depth + 1);
      collect_inputs(layer.loop().bodynetwork(), names, depth + 1);
    }
  }
}

bool has_jumps(const proto::NeuralNetwork& n, int depth = 0) {
  if (depth > 64) return false;
  for (const auto& layer : n.layers()) {
    if (layer.has_loopbreak() || layer.has_loopcontinue()) return true;
    if (layer.has_branch() &&
        (has_jumps(layer.branch().ifbranch(), depth + 1) || has_jumps(layer.branch().elsebranch(), depth + 1)))
      return true;
  }
  return false;
}

constexpr int kMaxNesting = 8;

Status check_depth(Layer& l) {
  if (l.net.nesting >= kMaxNesting)
    return l.unsupported(cat("branches and loops nested more than ", kMaxNesting, " deep"));
  return {};
}

Status copy(Layer& l) {
  MOKA_TRY(l.arity(1, 1));
  Blob b = *MOKA_TRY(l.blob(0));
  l.net.blobs[l.p.output(0)] = std::move(b);
  return {};
}

/// Whether the absolute value of the first element is above 1e-6, as a scalar.
Result<Value*> condition(Network& net, Value* v, std::string_view name) {
  const bool one = v->type.is_concrete() && v->type.shape().count() == 1;
  if (!one) {
    v = MOKA_TRY(net.op("reshape", {{"x", v}, {"shape", Tensor::i32({-1})}}, name));
    v = MOKA_TRY(net.op("slice_by_index", {{"x", v}, {"begin", Tensor::i32({0})}, {"end", Tensor::i32({1})}}, name));
  }
  if (v->type.rank() != 0) v = MOKA_TRY(net.op("squeeze", {{"x", v}}, name));
  v = MOKA_TRY(net.op("abs", {{"x", v}}, name));
  return net.op("greater", {{"x", v}, {"y", 1e-6f}}, name);
}

/// Blobs that both ways give, or that one way gives and the other leaves as they were, come out.
Status branch(Layer& l) {
  MOKA_TRY(l.arity(1, 1, 0, 0));
  MOKA_TRY(check_depth(l));
  const auto& p = l.p.branch();
  Network& net = l.net;
  Names yes, no, out;
  collect_outputs(p.ifbranch(), yes);
  collect_outputs(p.elsebranch(), no);
  for (const Names* names : {&yes, &no})
    for (const std::string& n : *names)
      if ((yes.contains(n) || net.blobs.contains(n)) && (no.contains(n) || net.blobs.contains(n))) out.insert(n);
  Value* pred = MOKA_TRY(condition(net, MOKA_TRY(l.in(0)), l.p.name()));
  for (const std::string& n : out)
    if (auto it = net.blobs.find(n); it != net.blobs.end()) MOKA_TRY(net.as(it->second, Form::exact));
  if (out.empty()) return l.unsupported("a branch without results");
  auto fill = [&](size_t index, ir::Builder& inner) -> Result<std::vector<Value*>> {
    Network own = net.inside(inner);
    MOKA_TRY(own.add(index == 0 ? p.ifbranch().layers() : p.elsebranch().layers()));
    std::vector<Value*> results;
    for (const std::string& n : out) {
      auto it = own.blobs.find(n);
      if (it == own.blobs.end()) return l.malformed(cat("one way of the branch does not give '", n, "'"));
      Value* v = MOKA_TRY(own.as(it->second, Form::exact));
      results.push_back(MOKA_TRY(own.op("identity", {{"x", v}}, n)));
    }
    return results;
  };
  std::vector<std::vector<std::pair<std::string, ir::Type>>> inputs(2);
  ir::Op* op = MOKA_TRY(net.builder().append_with_blocks(
      {"cond", {{"pred", pred}}, net.context().prefix + l.p.name(), {}, {}}, inputs, fill));
  size_t i = 0;
  for (const std::string& n : out) net.blobs[n] = MOKA_TRY(net.blob(op->output(i++), Form::exact));
  return {};
}

/// Carries the count and every blob that existed before and is written inside.
Status loop(Layer& l) {
  MOKA_TRY(l.arity(0, 1, 0, 0));
  MOKA_TRY(check_depth(l));
  const auto& p = l.p.loop();
  Network& net = l.net;
  if (has_jumps(p.bodynetwork())) return l.unsupported("loopBreak and loopContinue");
  bool conditional = !p.conditionvar().empty();
  Names written, carried, of_condition, read;
  collect_outputs(p.conditionnetwork(), of_condition);
  collect_inputs(p.bodynetwork(), read);
  bool body_needs_condition = std::any_of(of_condition.begin(), of_condition.end(), [&](const std::string& n) {
    return read.contains(n) || net.blobs.contains(n);
  });
  collect_outputs(p.bodynetwork(), written);
  collect_outputs(p.conditionnetwork(), written);
  for (const std::string& n : written)
    if (net.blobs.contains(n)) carried.insert(n);
  std::vector<Value*> vars;
  Value* limit = nullptr;
  if (l.inputs() == 1) {
    limit = MOKA_TRY(l.int32(0));
    if (limit->type.rank() != 0) limit = MOKA_TRY(l.op("squeeze", {{"x", limit}}));
  } else if (p.maxloopiterations() > 0 || !conditional) {
    uint64_t n = std::min<uint64_t>(p.maxloopiterations(), (uint64_t{1} << 31) - 1);
    limit = MOKA_TRY(l.constant(Tensor::scalar_i64(DType::int32, static_cast<int64_t>(n)), "limit"));
  }
  vars.push_back(MOKA_TRY(l.constant(Tensor::scalar_i64(DType::int32, 0), "count")));
  std::vector<std::pair<std::string, ir::Type>> block{{"count", vars[0]->type}};
  for (const std::string& n : carried) {
    vars.push_back(MOKA_TRY(net.as(net.blobs.find(n)->second, Form::exact)));
    block.emplace_back("loop_var", vars.back()->type);
  }
  auto enter = [&](ir::Builder& inner) -> Result<Network> {
    Network own = net.inside(inner);
    size_t i = 1;
    for (const std::string& n : carried)
      own.blobs[n] = MOKA_TRY(own.blob(inner.block().inputs()[i++].get(), Form::exact));
    return own;
  };
  auto fill = [&](size_t index, ir::Builder& inner) -> Result<std::vector<Value*>> {
    Network own = MOKA_TRY(enter(inner));
    Value* count = inner.block().inputs()[0].get();
    if (index == 0) {
      Value* go_on = nullptr;
      if (limit != nullptr) go_on = MOKA_TRY(own.op("less", {{"x", count}, {"y", limit}}, l.p.name()));
      if (conditional) {
        MOKA_TRY(own.add(p.conditionnetwork().layers()));
        auto it = own.blobs.find(p.conditionvar());
        if (it == own.blobs.end())
          return l.malformed(cat("the condition network does not give '", p.conditionvar(), "'"));
        Value* c = MOKA_TRY(condition(own, MOKA_TRY(own.as(it->second, Form::exact)), l.p.name()));
        go_on = go_on == nullptr ? c : MOKA_TRY(own.op("logical_and", {{"x", go_on}, {"y", c}}, l.p.name()));
      }
      return std::vector<Value*>{go_on};
    }
    if (conditional && body_needs_condition) MOKA_TRY(own.add(p.conditionnetwork().layers()));
    MOKA_TRY(own.add(p.bodynetwork().layers()));
    std::vector<Value*> results{MOKA_TRY(own.op("add", {{"x", count}, {"y", 1}}, l.p.name()))};
    for (const std::string& n : carried)
      results.push_back(
          MOKA_TRY(own.op("identity", {{"x", MOKA_TRY(own.as(own.blobs.find(n)->second, Form::exact))}}, n)));
    return results;
  };
  std::vector<std::vector<std::pair<std::string, ir::Type>>> inputs{block, block};
  ir::Op* op = MOKA_TRY(net.builder().append_with_blocks(
      {"while_loop", {{"loop_vars", vars}}, net.context().prefix + l.p.name(), {}, {}}, inputs, fill));
  size_t i = 1;
  for (const std::string& n : carried) net.blobs[n] = MOKA_TRY(net.blob(op->output(i++), Form::exact));
  return {};
}

Status jump(Layer& l) { return l.unsupported("a jump outside of a loop's body"); }

}  // namespace

std::span<const LayerImport> layers_control() {
  using L = proto::NeuralNetworkLayer;
  static const LayerImport list[] = {
      {L::kCopy, "copy", copy},           {L::kBranch, "branch", branch},           {L::kLoop, "loop", loop},
      {L::kLoopBreak, "loopBreak", jump}, {L::kLoopContinue, "loopContinue", jump},
  };
  return list;
}

}  // namespace moka::import::nn
