// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/watch.h"
#include "ir/verifier.h"
#include "passes/pass.h"

namespace moka::passes {

namespace {
/// The order of the passes. Dead code is removed after each one. Constants are folded early, because they show which
/// operations do nothing. Those are removed next, because they stand between layers and the scales and activations to
/// fuse. Removing them is repeated after a scale has been folded, which may leave two reshapes. Scales of branches are
/// folded before the branches become one convolution, and scales of its result after that.
constexpr std::string_view kOrder[] = {
    "widen_float16",    "narrow_states",        "fold_constants",       "remove_identities",  "recognise_gru",
    "einsum_to_matmul", "recognise_group_norm", "recognise_layer_norm", "fuse_fake_quantize", "fuse_hard_swish",
    "fuse_gelu",        "fuse_attention",       "keep_operands_small",  "split_norms",        "fold_scale",
    "merge_convs",      "fold_scale",           "transpose_images",     "remove_identities",  "fuse_bias",
    "fuse_addends",     "fuse_activations"};
}  // namespace

const Pass* find(std::string_view name) {
  for (const Pass& p : all())
    if (p.name == name) return &p;
  return nullptr;
}

Status try_each_op(ir::Block& block, const std::function<Status(ir::Op&)>& fn) {
  for (auto it = block.ops().begin(); it != block.ops().end();) {
    ir::Op& op = **it++;
    for (size_t i = 0; i < op.block_count(); i++) MOKA_TRY(try_each_op(*op.block(i), fn));
    MOKA_TRY(fn(op));
  }
  return {};
}

void for_each_op(ir::Block& block, const std::function<void(ir::Op&)>& fn) {
  // Nothing fails.
  (void)try_each_op(block, [&](ir::Op& op) -> Status {
    fn(op);
    return {};
  });
}

std::span<const std::string_view> order() { return kOrder; }

Status run_pass(ir::Function& function, std::string_view name, const ir::OpTable& table, std::vector<Remark>& remarks) {
  const Pass* pass = find(name);
  if (pass == nullptr) return fail(ErrorCode::internal, "there is no pass '", name, "'");
  PassContext context{function, table, remarks, pass->name};
  return MOKA_TRY_IN(pass->run(context), cat("pass ", name)), Status{};
}

Status run_pipeline(ir::Program& program, const ir::OpTable& table, const PipelineOptions& options,
                    std::vector<Remark>& remarks) {
  MOKA_TRY(ir::verify(program));
  size_t done = 0;
  const size_t total = std::size(kOrder) * program.functions.size();
  for (const auto& f : program.functions) {
    for (std::string_view name : kOrder) {
      bool wanted = name == "widen_float16" ? options.widen_float16 : options.optimize;
      if (!wanted) continue;
      MOKA_TRY(Watch::at("passes", done++, total));
      MOKA_TRY(run_pass(*f, name, table, remarks));
      MOKA_TRY(run_pass(*f, "remove_dead_code", table, remarks));
    }
  }
  MOKA_TRY(Watch::at("passes", total, total));
  return MOKA_TRY_IN(ir::verify(program), "after the passes"), Status{};
}

}  // namespace moka::passes
