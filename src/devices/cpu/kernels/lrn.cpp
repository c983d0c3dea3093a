// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "devices/cpu/kernels/family.h"
#include "devices/cpu/onednn.h"
#include "devices/cpu/vector/loops.h"

namespace moka::devices::cpu {

namespace {

using namespace onednn;

using vector::Binary;
using vector::loops;

constexpr int64_t kLrnColumns = 256;  // per tile

/// oneDNN's kernels of other layouts than a blocked one keep a running sum, in which a large number, an infinity or a
/// NaN would stay.
Match match_blocked(const MatchCall& given) {
  if (std::string why = require_fp32(given, {"x"}); !why.empty()) return Match::no(why);
  auto size = given.call.integer("size");
  auto alpha = given.call.number("alpha"), beta = given.call.number("beta"), k = given.call.number("k");
  if (!size.ok() || !alpha.ok() || !beta.ok() || !k.ok()) return Match::no("settings that are not constant");
  if (*size % 2 == 0) return Match::no("a window of even size");  // oneDNN places it differently
  // oneDNN's power of -infinity is NaN.
  if (!(*alpha >= 0) || std::isinf(*k)) return Match::no("a negative alpha or an infinite k");
  const ir::Shape& x = given.call.shape("x");
  if (x.rank() != 4) return Match::no(cat("rank ", x.rank()));
  const Layout l = layout_of(given, "x");
  if (l.kind != Layout::Kind::channel_blocked || !given.epilogue.empty()) return Match::no("a row-major input");
  OneThread scope;
  try {
    std::vector<Launch> launches;
    for (const Part& part : divide(x, l, x, l, 1, x[0] > 1 ? given.threads : 1)) {
      const Run run = input_of(part, x, l, 1);
      const dnnl::lrn_forward::desc d(dnnl::prop_kind::forward_inference, dnnl::algorithm::lrn_across_channels,
                                      describe(run.shape, l), *size, static_cast<float>(*alpha),
                                      static_cast<float>(*beta), static_cast<float>(*k));
      const dnnl::lrn_forward::primitive_desc pd(d, attributes(), engine(), true);
      if (pd.get(true) == nullptr || is_plain_loops(pd)) return Match::no("no oneDNN implementation");
      Launch& launch = launches.emplace_back(pd);
      launch.in(DNNL_ARG_SRC, pd.src_desc(), given.call.arg_index("x"), run.first);
      launch.out(DNNL_ARG_DST, pd.dst_desc(), run.first);
    }
    MatchCall m = given;
    m.threads = static_cast<int>(launches.size());
    KernelChoice c = choose("cpu.local_response_norm.onednn", launches, m);
    c.in = in_layouts(m, "x", l);
    c.out = {l};
    c.cost = cost_of(m, 20.0 * static_cast<double>(x.count()), traffic(m));
    return Match::yes(std::move(c));
  } catch (const dnnl::error&) {
    return Match::no("no oneDNN implementation");
  }
}

Match match_rows(const MatchCall& m) {
  if (std::string why = require_fp32(m, {"x"}); !why.empty()) return Match::no(why);
  auto size = m.call.integer("size");
  auto alpha = m.call.number("alpha"), beta = m.call.number("beta"), k = m.call.number("k");
  if (!size.ok() || !alpha.ok() || !beta.ok() || !k.ok()) return Match::no("settings that are not constant");
  const ir::Shape& x = m.call.shape("x");
  const int axis = x.rank() - 3;
  const int64_t channels = x[axis], inner = x.count(axis + 1, x.rank()),
                parts = (inner + kLrnColumns - 1) / kLrnColumns;
  const int64_t before = std::min(*size / 2, channels), after = std::min((*size - 1) / 2, channels);
  const auto in = static_cast<size_t>(m.call.arg_index("x"));
  KernelChoice c;
  c.kernel = "cpu.local_response_norm";
  c.tiles = x.count(0, axis) * parts;
  c.cost = cost_of(m, 20.0 * static_cast<double>(x.count()), traffic(m));
  c.run = [=, scale = static_cast<float>(*alpha / static_cast<double>(*size)), beta = static_cast<float>(*beta),
           k = static_cast<float>(*k)](const KernelArgs& args) -> Status {
    for (int64_t t = args.begin; t < args.end; t++) {
      const int64_t first = t % parts * kLrnColumns, n = std::min(kLrnColumns, inner - first),
                    at = t / parts * channels * inner + first;
      const float* from = args.in[in].as<float>() + at;
      for (int64_t ch = 0; ch < channels; ch++) {
        const int64_t top = std::max<int64_t>(0, ch - before), rows = std::min(channels - 1, ch + after) + 1 - top;
        const float *center = from + ch * inner, *window = from + top * inner;
        float* y = args.out[0].as<float>() + at + ch * inner;
        if (beta == 0.75f && rows <= vector::kMostRows) {
          loops().divide_by_window(center, window, inner, rows, scale, k, y, n);
          continue;
        }
        float sum[kLrnColumns] = {};
        for (int64_t r = 0; r < rows; r++) loops().multiply_add(window + r * inner, window + r * inner, sum, sum, n);
        loops().scale_shift(sum, &scale, &k, 0, sum, n);
        loops().binary(Binary::pow, sum, 1, &beta, 0, sum, n);
        loops().binary(Binary::div, center, 1, sum, 1, y, n);
      }
    }
    return {};
  };
  return Match::yes(std::move(c));
}

}  // namespace

KernelFamily family_lrn() {
  static const KernelDef defs[] = {
      {.name = "cpu.local_response_norm.onednn", .ops = {"local_response_norm"}, .match = match_blocked},
      {.name = "cpu.local_response_norm", .ops = {"local_response_norm"}, .match = match_rows}};
  return {200, defs};
}

}  // namespace moka::devices::cpu
