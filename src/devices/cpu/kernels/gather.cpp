// SPDX-License-Identifier: Apache-2.0
#include "devices/cpu/common/stored_rows.h"
#include "devices/cpu/kernels/family.h"
#include "ops/common/indexing.h"

namespace moka::devices::cpu {

namespace {

/// Embeddings: looks up rows of a constant table, which is read as the file stores it.
Match match_gather(const MatchCall& m) {
  if (std::string why = require_fp32(m, {"x"}); !why.empty()) return Match::no(why);
  if (!m.is_constant("x")) return Match::no("a table that is not constant");
  if (m.call.rank("x") != 2) return Match::no("a table that is not a matrix");
  auto axis = m.call.integer("axis");
  if (!axis.ok() || (*axis != 0 && *axis != -2)) return Match::no("columns of a table");
  if (m.call.version().param_index("batch_dims") >= 0) {
    auto batch = m.call.integer("batch_dims");
    if (!batch.ok() || *batch != 0) return Match::no("batches of indices");
  }
  auto indexer = ops::Indexer::of(m.call);
  if (!indexer.ok()) return Match::no("settings that are not constant");
  std::string refusal;
  auto rows = StoredRows::of(m, m.call.arg_index("x"), false, refusal);
  if (!rows) return Match::no(std::move(refusal));
  KernelChoice c;
  c.kernel = "cpu.gather";
  c.note = rows->describe();
  c.in_prepare_only.resize(m.call.all_args().size());
  c.in_prepare_only[static_cast<size_t>(m.call.arg_index("x"))] = true;
  c.cost = cost_of(m, 0, 8.0 * static_cast<double>(m.outputs[0].shape().count()));
  c.prepare = [rows](kernel::PrepareContext& context) { return rows->prepare(context, false); };
  c.run = [rows, indexer = *indexer, table = m.call.shape("x"),
           at = static_cast<size_t>(m.call.arg_index("indices"))](const KernelArgs& args) -> Status {
    const ir::TensorView& indices = args.in[at];
    MOKA_TRY(indexer.check(*args.call, indices, table, 0));
    auto* y = args.out[0].as<float>();
    for (int64_t i = 0; i < indices.count(); i++)
      rows->decode(ops::Indexer::nearest(ir::load_i64(indices, i), table[0]), y + i * table[1]);
    return {};
  };
  return Match::yes(std::move(c));
}

}  // namespace

KernelFamily family_gather() {
  static const KernelDef defs[] = {{.name = "cpu.gather", .ops = {"gather"}, .match = match_gather}};
  return {200, defs};
}

}  // namespace moka::devices::cpu
