// SPDX-License-Identifier: Apache-2.0
#include "import/neuralnetwork/control.h"

namespace moka::import::nn {

namespace {

Status copy(Layer& l) {
  MOKA_TRY(l.arity(1, 1));
  Blob b = *MOKA_TRY(l.any_blob(0));
  l.net.blobs[l.p.output(0)] = std::move(b);
  return {};
}

/// The results are the blobs that both branches write, and those that one branch writes and that existed before.
Status branch(Layer& l) {
  MOKA_TRY(l.arity(1, 1, 0, 0));
  MOKA_TRY(check_nesting(l));
  const auto& p = l.p.branch();
  Network& net = l.net;
  const Names yes = outputs_of(p.ifbranch()), no = outputs_of(p.elsebranch());
  Names out;
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

}  // namespace

std::span<const LayerImport> layers_control() {
  using L = proto::NeuralNetworkLayer;
  static const LayerImport list[] = {
      {L::kCopy, "copy", copy},
      {L::kBranch, "branch", branch},
  };
  return list;
}

}  // namespace moka::import::nn
