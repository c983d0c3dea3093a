#include "ir/program.h"
#include "ops/common/common.h"
#include "ops/common/merge_types.h"

namespace moka::ops {

namespace {

Result<std::vector<Type>> infer_cond(const OpCall& call) {
  const Type& pred = call.type("pred");
  // Converters also write conditions of shape [1].
  if (pred.is_concrete() && pred.shape().count() != 1) return call.error("pred", "a scalar", cat(pred));
  if (call.op == nullptr || call.op->block_count() != 2)
    return call.error(cat("expected two blocks, got ", call.op == nullptr ? size_t{0} : call.op->block_count()));
  const Block& yes = *call.op->block(0);
  const Block& no = *call.op->block(1);
  if (!yes.inputs().empty() || !no.inputs().empty()) return call.error("expected blocks without inputs");
  if (yes.outputs().size() != no.outputs().size())
    return call.error(
        cat("expected blocks with equally many outputs, got ", yes.outputs().size(), " and ", no.outputs().size()));
  std::vector<Type> types;
  for (size_t i = 0; i < yes.outputs().size(); ++i) {
    const Type& a = yes.outputs()[i]->type;
    const Type& b = no.outputs()[i]->type;
    auto merged = merge_types(a, b);
    if (!merged) return call.error(cat("output ", i, ": expected one type from both blocks, got ", a, " and ", b));
    types.push_back(std::move(*merged));
  }
  return types;
}

}  // namespace

OpDef define_cond() {
  return OpBuilder("cond", "Runs the first block if `pred` is true, else the second; the outputs are that block's.")
      .in("pred", kBool)
      .infer(infer_cond)
      .traits(Trait::control)
      .note(
          "Conditions may have shape [1]. Branches may give different shapes; planning continues when the shape is "
          "known.",
          "TensorFlow's converted programs; PyTorch's torch.cond")
      .build();
}

}  // namespace moka::ops
