// SPDX-License-Identifier: Apache-2.0
#include "devices/cpu/vector/gemm.h"

#include "devices/cpu/common/activations.h"
#include "devices/cpu/common/gemm_work.h"
#include "devices/cpu/common/stored_value.h"
#include "devices/cpu/kernels/family.h"

namespace moka::devices::cpu {

namespace {

using vector::Gemm;

constexpr int64_t kGemmChunk = 192;    // columns per tile at most: a multiple of both panel widths
constexpr int64_t kGemmRows = 128;     // rows per tile at most; each panel reads them again
constexpr int64_t kWidenedRows = 256;  // the same if each tile widens its panels
constexpr int64_t kLeastRows = 48;     // rows per tile at least, when rows are divided to give every thread work
constexpr int kTilesOfThread = 4;      // enough tiles that threads finish at about the same time

Match match(const MatchCall& given, std::string_view name) {
  std::string refusal;
  const auto product = constant_product(given, refusal);
  if (!product) return Match::no(std::move(refusal));
  const int64_t rows = product->rows, depth = product->depth, made = product->made;
  const int x = product->x, bias = product->bias, addend = product->addend;
  const double flops = product->flops();
  const MatchCall m = with_threads_for(given, flops);
  const Panels panels = panels_of(given, *product);
  const Gemm& g = *panels.gemm;
  const auto in = static_cast<size_t>(x);
  const int64_t most = panels.compressed ? kWidenedRows : kGemmRows;
  int64_t blocks = (rows + most - 1) / most, chunk = kGemmChunk, chunks = (made + chunk - 1) / chunk;
  if (const int64_t wanted = m.threads > 1 ? kTilesOfThread * m.threads : 0; blocks * chunks < wanted) {
    blocks = std::max(blocks, std::min((wanted + chunks - 1) / chunks, rows / kLeastRows));
    chunk = std::clamp(made * blocks / wanted / g.panel * g.panel, g.panel, kGemmChunk);
    chunks = (made + chunk - 1) / chunk;
  }
  KernelChoice c;
  c.kernel = name;
  c.note = panels.note();
  c.in_place = addend;
  c.tiles = blocks * chunks;
  c.epilogues = m.epilogue.size();
  c.cost = cost_of(m, flops, traffic(m));
  c.facts = [=, &g](kernel::Facts& facts) {
    facts.add("rows x depth x columns", rows, " x ", depth, " x ", made)
        .add("tile", g.rows, " rows x ", g.panel, " columns")
        .add("blocks", blocks, " of rows, ", chunks, " of up to ", chunk, " columns")
        .add("depth at once", std::min(g.depth, depth));
  };
  const auto packed = packed_panels(c, m, *product, panels);
  c.thread_scratch = static_cast<size_t>(packed->scratch_floats()) * sizeof(float);
  c.run = [=, after = activations_of(m.epilogue)](const KernelArgs& args) -> Status {
    auto* scratch = args.own<float>();
    const float* b = bias < 0 ? nullptr : args.in[static_cast<size_t>(bias)].as<float>();
    const float* more = addend < 0 ? nullptr : args.in[static_cast<size_t>(addend)].as<float>();
    for (int64_t t = args.begin; t < args.end; t++) {
      const int64_t first = rows * (t / chunks) / blocks, end = rows * (t / chunks + 1) / blocks,
                    column = t % chunks * chunk, n = std::min(chunk, made - column);
      const float* from = args.in[in].as<float>() + first * depth;
      float* to = args.out[0].as<float>() + first * made + column;
      if (const float* sum = more == nullptr ? to : more + first * made + column; sum != to)
        for (int64_t i = 0; i < end - first; i++) std::copy_n(sum + i * made, n, to + i * made);
      packed->multiply(from, depth, column, end - first, n, to, made, b == nullptr ? nullptr : b + column,
                       more != nullptr, scratch);
      if (after.empty()) continue;
      for (int64_t i = 0; i < end - first; i++) apply_all(after, to + i * made, n);
    }
    return {};
  };
  return Match::yes(std::move(c));
}

/// Products with weights in their stored form. A tile expands a panel of weights and uses it for all rows.
Match match_stored(const MatchCall& m, std::string_view name) {
  constexpr int64_t kFewRows = 4, kDeepest = 1 << 14;
  std::string refusal;
  const auto product = constant_product(m, refusal);
  if (!product) return Match::no(std::move(refusal));
  const int64_t rows = product->rows, depth = product->depth, made = product->made;
  if (product->row_step != 1) return Match::no("weights with columns that are not adjacent");
  if (depth > kDeepest) return Match::no("a large depth");
  const auto stored = m.stored_in_any_format(product->weights);
  if (!stored || stored->is_half) return Match::no("weights that the file does not store in one piece");
  if (rows <= kFewRows && !stored->in_network_format) return Match::no("few rows");  // cpu.*.gemv reads the file
  const Gemm& g = vector::gemm_for(made);
  const int64_t panel = g.panel;
  const int bias = product->bias, addend = product->addend;
  const auto in = static_cast<size_t>(product->x);
  KernelChoice c;
  c.kernel = name;
  c.note = "expanded in each prediction";
  c.in_place = addend;
  c.in_prepare_only.resize(m.call.all_args().size());
  c.in_prepare_only[static_cast<size_t>(product->weights)] = true;
  c.thread_scratch = static_cast<size_t>(2 * panel * depth) * sizeof(float);
  c.tiles = (made + panel - 1) / panel;
  c.epilogues = m.epilogue.size();
  c.cost = cost_of(m, product->flops(), traffic(m));
  c.run = [=, &g, after = activations_of(m.epilogue)](const KernelArgs& args) -> Status {
    float *columns = args.own<float>(), *packed = columns + panel * depth;
    const float* b = bias < 0 ? nullptr : args.in[static_cast<size_t>(bias)].as<float>();
    const float* more = addend < 0 ? nullptr : args.in[static_cast<size_t>(addend)].as<float>();
    for (int64_t t = args.begin; t < args.end; t++) {
      const int64_t column = t * panel, n = std::min(panel, made - column);
      stored_values(*stored, column * depth, n * depth, columns);
      g.pack_panel(columns, depth, depth, n, (n + g.lanes - 1) / g.lanes * g.lanes, packed, nullptr);
      float* to = args.out[0].as<float>() + column;
      if (more != nullptr && more + column != to)
        for (int64_t i = 0; i < rows; i++) std::copy_n(more + column + i * made, n, to + i * made);
      g.multiply(args.in[in].as<float>(), depth, packed, rows, n, depth, to, made, b == nullptr ? nullptr : b + column,
                 more != nullptr);
      if (after.empty()) continue;
      for (int64_t i = 0; i < rows; i++) apply_all(after, to + i * made, n);
    }
    return {};
  };
  return Match::yes(std::move(c));
}

Match match_linear(const MatchCall& m) { return match(m, "cpu.linear.gemm"); }
Match match_matmul(const MatchCall& m) { return match(m, "cpu.matmul.gemm"); }

Match match_stored_linear(const MatchCall& m) { return match_stored(m, "cpu.linear.stored"); }
Match match_stored_matmul(const MatchCall& m) { return match_stored(m, "cpu.matmul.stored"); }

}  // namespace

KernelFamily family_gemm() {
  static const KernelDef defs[] = {
      {.name = "cpu.linear.gemm", .ops = {"linear"}, .match = match_linear, .addend = true, .measured = true},
      {.name = "cpu.matmul.gemm", .ops = {"matmul"}, .match = match_matmul, .addend = true, .measured = true},
      {.name = "cpu.linear.stored",
       .ops = {"linear"},
       .match = match_stored_linear,
       .addend = true,
       .low_memory = true},
      {.name = "cpu.matmul.stored",
       .ops = {"matmul"},
       .match = match_stored_matmul,
       .addend = true,
       .low_memory = true}};
  return {140, defs};
}

}  // namespace moka::devices::cpu
