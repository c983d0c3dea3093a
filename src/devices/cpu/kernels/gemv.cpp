// SPDX-License-Identifier: Apache-2.0
#include "devices/cpu/common/activations.h"
#include "devices/cpu/common/stored_rows.h"
#include "devices/cpu/kernels/family.h"
#include "kernel/parallel.h"

namespace moka::devices::cpu {

namespace {

constexpr int64_t kBlock = 64;  // rows per unit of work: whole vectors, so results do not depend on the threads

constexpr int64_t kMostRows = 4;  // rows of x

/// The most rows of x for which reading the weights takes most of the time. Weights that must be packed anyway are
/// packed as fp32, which is faster for more rows.
int64_t most_rows(const StoredRows& rows, bool asked) {
  if (rows.is_other_form()) return isa() == Isa::base ? 0 : 2;
  return rows.encoding() == vector::Encoding::fp32 && !asked ? 2 : kMostRows;
}

/// Multiplies x [rows, depth] by a constant matrix that is read as the file stores it.
Match gemv(const MatchCall& given, std::string_view x, std::string_view weight, bool transposed, int bias,
           std::string_view name) {
  if (!given.is_constant(weight)) return Match::no("weights that are not constant");
  if (given.outputs[0].shape().count() == 0) return Match::no("an empty result");
  const ir::Shape& w = given.call.shape(weight);
  if (w.rank() != 2) return Match::no("weights that are not a matrix");
  const int64_t made = w[transposed ? 1 : 0], count = given.outputs[0].shape().count() / made;
  std::string refusal;
  auto rows = StoredRows::of(given, given.call.arg_index(weight), transposed, refusal);
  if (!rows) return Match::no(std::move(refusal));
  if (count > most_rows(*rows, given.asked)) return Match::no("many rows");
  const int64_t depth = rows->depth(), arranged = rows->arranged();
  const double flops = 2.0 * static_cast<double>(count) * static_cast<double>(made) * static_cast<double>(depth);
  const MatchCall m = with_threads_for(given, flops);
  const int in = m.call.arg_index(x), addend = m.call.arg_index("addend");
  KernelChoice c;
  c.kernel = name;
  c.note = rows->describe();
  c.internally_parallel = true;
  c.epilogues = m.epilogue.size();
  c.scratch = static_cast<size_t>(count * arranged) * sizeof(float);
  c.cost = cost_of(m, flops, rows->bytes());
  c.in_prepare_only.resize(m.call.all_args().size());
  c.in_prepare_only[static_cast<size_t>(m.call.arg_index(weight))] = true;
  c.prepare = [rows](kernel::PrepareContext& context) { return rows->prepare(context, true); };
  c.facts = [=, threads = m.threads](kernel::Facts& facts) {
    facts.add("rows x depth x columns", count, " x ", depth, " x ", made)
        .add("block", kBlock, " columns")
        .add("parts of columns", threads > 1 ? threads * 4 : 1);
  };
  c.run = [=, threads = m.threads, after = activations_of(m.epilogue)](const KernelArgs& args) -> Status {
    const vector::RowLoops& loops = vector::row_loops();
    const vector::Rows& w = rows->rows();
    const float* from = args.in[static_cast<size_t>(in)].as<float>();
    const float* b = bias < 0 ? nullptr : args.in[static_cast<size_t>(bias)].as<float>();
    auto* y = args.out[0].as<float>();
    int64_t step = depth;
    if (arranged > 0) {
      auto* to = reinterpret_cast<float*>(args.scratch);
      for (int64_t r = 0; r < count; r++)
        loops.arrange(w.encoding, from + r * depth, depth, arranged, to + r * arranged);
      from = to;
      step = arranged;
    }
    const int64_t parts = threads > 1 ? threads * int64_t{4} : 1, blocks = (made + kBlock - 1) / kBlock;
    auto part = [&](int64_t p) {
      const int64_t first = std::min(made, blocks * p / parts * kBlock),
                    last = std::min(made, blocks * (p + 1) / parts * kBlock);
      if (first == last) return;
      loops.product(w, first, last, from, step, count, b, y, made);
      for (int64_t r = 0; r < count; r++) {
        float* row = y + r * made + first;
        if (addend >= 0) {
          const float* more = args.in[static_cast<size_t>(addend)].as<float>() + r * made + first;
          vector::loops().binary(vector::Binary::add, row, 1, more, 1, row, last - first);
        }
        apply_all(after, row, last - first);
      }
    };
    kernel::parallel_for(threads, parts, [&](int64_t p, int) { part(p); });
    return {};
  };
  return Match::yes(std::move(c));
}

Match match_gemv_linear(const MatchCall& m) {
  if (std::string why = require_fp32(m, {"x", "weight", "bias"}); !why.empty()) return Match::no(why);
  return gemv(m, "x", "weight", false, m.call.arg_index("bias"), "cpu.linear.gemv");
}

Match match_gemv_matmul(const MatchCall& m) {
  if (std::string why = require_fp32(m, {"x", "y", "bias"}); !why.empty()) return Match::no(why);
  auto tx = m.call.flag("transpose_x"), ty = m.call.flag("transpose_y");
  if (!tx.ok() || !ty.ok() || *tx) return Match::no("a transposed x");
  return gemv(m, "x", "y", !*ty, m.call.arg_index("bias"), "cpu.matmul.gemv");
}

}  // namespace

KernelFamily family_gemv() {
  static const KernelDef defs[] = {
      {.name = "cpu.linear.gemv", .ops = {"linear"}, .match = match_gemv_linear, .addend = true},
      {.name = "cpu.matmul.gemv", .ops = {"matmul"}, .match = match_gemv_matmul, .addend = true}};
  return {110, defs};
}

}  // namespace moka::devices::cpu
