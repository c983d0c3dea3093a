// SPDX-License-Identifier: Apache-2.0
#include "devices/cpu/kernels/family.h"
#include "devices/cpu/vector/loops.h"
#include "ops/common/affine.h"

namespace moka::devices::cpu {

namespace {

/// Matches quantize, or dequantize if `back`. Both are row-major.
Match match_scaled(const MatchCall& m, bool back) {
  const ir::Type &x = m.call.type("input"), &y = m.outputs[0];
  if (const ir::DType floats = back ? y.dtype() : x.dtype(); floats != ir::DType::fp32)
    return Match::no(cat("element type ", floats));
  const int64_t count = y.shape().count();
  if (count == 0) return Match::no("an empty tensor");
  for (std::string_view p : {"scale", "zero_point"})
    if (m.call.has(p) && !m.call.is_known(p)) return Match::no("scales that are not constant");
  auto affine = ops::affine_of(m.call, x.shape());
  if (!affine.ok()) return Match::no("invalid scales");
  int64_t inner = count;  // consecutive elements with the same scale
  const auto groups = static_cast<int64_t>(affine->scales.size());
  for (int i = 0; i < x.rank() && groups > 1; i++)
    if (affine->groups[i] != 1) inner = x.shape().count(i + 1, x.rank());
  const Chunks chunks{count};
  const auto in = static_cast<size_t>(m.call.arg_index("input"));
  const bool is_signed = (back ? x.dtype() : y.dtype()) == ir::DType::int8;
  KernelChoice c;
  c.kernel = back ? "cpu.dequantize" : "cpu.quantize";
  c.tiles = chunks.tiles();
  c.cost = cost_of(m, 0, traffic(m));
  c.run = [=, a = std::move(*affine)](const KernelArgs& args) -> Status {
    const vector::Loops& loops = vector::loops();
    const int64_t end = chunks.first(args.end);
    for (int64_t at = chunks.first(args.begin), n; at < end; at += n) {
      n = std::min(end - at, inner - at % inner);
      const auto group = static_cast<size_t>(at / inner % groups);
      if (back)
        loops.dequantize(args.in[in].as<uint8_t>() + at, n, a.scales[group], a.zeros[group], is_signed,
                         args.out[0].as<float>() + at);
      else
        loops.quantize(args.in[in].as<float>() + at, n, a.scales[group], a.zeros[group], is_signed,
                       args.out[0].as<uint8_t>() + at);
    }
    return {};
  };
  return Match::yes(std::move(c));
}

Match match_quantize(const MatchCall& m) { return match_scaled(m, false); }
Match match_dequantize(const MatchCall& m) { return match_scaled(m, true); }

}  // namespace

KernelFamily family_quantize() {
  static const KernelDef defs[] = {{.name = "cpu.quantize", .ops = {"quantize"}, .match = match_quantize},
                                   {.name = "cpu.dequantize", .ops = {"dequantize"}, .match = match_dequantize}};
  return {200, defs};
}

}  // namespace moka::devices::cpu
