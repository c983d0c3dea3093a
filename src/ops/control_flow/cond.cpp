// SPDX-License-Identifier: Apache-2.0
#include "ir/gradient.h"
#include "ir/inline.h"
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

/// The first operation that must not run twice.
const Op* unrepeatable(const Block& block) {
  for (const auto& op : block.ops()) {
    if (op->has_trait(Trait::random) || op->has_trait(Trait::stateful)) return op.get();
    for (size_t i = 0; i < op->block_count(); ++i)
      if (const Op* inner = unrepeatable(*op->block(i)); inner != nullptr) return inner;
  }
  return nullptr;
}

/// A cond whose blocks compute those of the operation again, and the gradients of what they read.
void cond_gradient(Gradient& g) {
  const Op& op = g.op();
  for (size_t i = 0; i < 2; ++i)
    if (const Op* inner = unrepeatable(*op.block(i)); inner != nullptr)
      return g.fail(fail(ErrorCode::unsupported, "no gradient of a branch with operation '", inner->name, "' (",
                         inner->type_name(), "), which would run twice"));
  const std::vector<std::vector<std::pair<std::string, Type>>> no_inputs(2);
  const std::string name = cat(op.name, "_gradient");
  auto made = g.builder().append_with_blocks(
      {"cond", {{"pred", op.input("pred")}}, name}, no_inputs,
      [&](size_t i, Builder& inner) -> Result<std::vector<Value*>> {
        const std::vector<Value*> outputs = MOKA_TRY(inline_block(inner, *op.block(i), {}, cat(name, "_")));
        std::vector<Known> known;
        for (size_t k = 0; k < outputs.size(); ++k)
          if (g.reached(k) != nullptr) known.push_back({outputs[k], g.reached(k)});
        std::vector<Value*> results = MOKA_TRY(differentiate(inner, known, g.captured()));
        for (size_t k = 0; k < results.size(); ++k) {
          if (results[k] != nullptr) continue;
          const Type& type = g.captured()[k]->type;
          Ints shape;
          for (int64_t d : type.shape()) shape.push_back(d);
          results[k] = MOKA_TRY(inner.op("fill", {{"shape", shape}, {"value", Tensor::scalar(type.dtype(), 0)}}));
        }
        return results;
      });
  if (!made.ok()) return g.fail(std::move(made).error());
  for (size_t i = 0; i < g.captured().size(); ++i) g.set_captured(i, (*made)->output(i));
}

}  // namespace

OpDef define_cond() {
  return OpBuilder("cond", "Runs the first block if `pred` is true, else the second; the outputs are that block's.")
      .in("pred", kBool)
      .infer(infer_cond)
      .traits(Trait::control)
      .gradient(cond_gradient)
      .note(
          "Conditions may have shape [1]. Branches may give different shapes; planning continues when the shape is "
          "known.",
          "TensorFlow's converted programs; PyTorch's torch.cond")
      .build();
}

}  // namespace moka::ops
