#include <algorithm>

#include "ir/verifier.h"
#include "passes/pass.h"

namespace moka::passes {

namespace {
/// Dead code is removed after each. Folded constants show which operations do nothing, and what does nothing stands
/// between layers and their scales and activations: also the reshapes around a scale that is no more.
constexpr std::string_view kOrder[] = {
    "widen_float16",        "narrow_states",     "fold_constants",  "remove_identities", "recognise_gru",
    "recognise_group_norm", "fuse_codes",        "fuse_hard_swish", "fuse_attention",    "fold_scale",
    "transpose_images",     "remove_identities", "fuse_addends",    "fuse_activations"};
}  // namespace

const Pass* find(std::string_view name) {
  for (const Pass& p : all())
    if (p.name == name) return &p;
  return nullptr;
}

void for_each_op(ir::Block& block, const std::function<void(ir::Op&)>& fn) {
  for (auto it = block.ops().begin(); it != block.ops().end();) {
    ir::Op& op = **it++;
    for (size_t i = 0; i < op.block_count(); i++) for_each_op(*op.block(i), fn);
    fn(op);
  }
}

Status run_pipeline(ir::Program& program, const ir::OpTable& table, const PipelineOptions& options,
                    std::vector<Remark>& remarks) {
  auto run = [&](ir::Function& f, std::string_view name) -> Status {
    const Pass* p = find(name);
    if (p == nullptr) return {};
    PassContext context{f, table, remarks, p->name};
    return MOKA_TRY_IN(p->run(context), cat("pass ", name)), Status{};
  };
  MOKA_TRY(ir::verify(program));
  for (const auto& f : program.functions) {
    for (std::string_view name : kOrder) {
      bool wanted = name == "widen_float16" ? options.widen_float16 : options.optimize;
      if (!wanted) continue;
      MOKA_TRY(run(*f, name));
      MOKA_TRY(run(*f, "remove_dead_code"));
    }
  }
  return MOKA_TRY_IN(ir::verify(program), "after the passes"), Status{};
}

}  // namespace moka::passes
