#include "devices/cpu/kernels/families.h"
#include "devices/cpu/onednn.h"

namespace moka::devices::cpu {

namespace {

using namespace onednn;
using dnnl::prop_kind;

/// x [rows, depth] times constant weights [made, depth], read through `weights`.
Match inner_product(const MatchCall& given, std::string_view x, std::string_view y, const Desc& weights, bool bias,
                    std::string_view name) {
  const int64_t made = weights.dims()[0], depth = weights.dims()[1];
  const int64_t rows = given.outputs[0].shape().count() / made;
  const double flops = 2.0 * static_cast<double>(rows) * static_cast<double>(made) * static_cast<double>(depth);
  const MatchCall m = with_threads_for(given, flops);
  ThreadScope scope(m.threads);
  dnnl::post_ops post;
  const size_t fused = append_epilogues(m, post);
  try {
    for (bool with_post : {true, false}) {
      const Desc from = row_major({rows, depth}), to = row_major({rows, made});
      const dnnl::inner_product_forward::desc d =
          bias ? dnnl::inner_product_forward::desc(prop_kind::forward_inference, from, any({made, depth}),
                                                   row_major({made}), to)
               : dnnl::inner_product_forward::desc(prop_kind::forward_inference, from, any({made, depth}), to);
      dnnl::inner_product_forward::primitive_desc pd(d, attributes(with_post ? post : dnnl::post_ops()), engine(),
                                                     true);
      if (pd.get(true) == nullptr || is_plain_loops(pd)) continue;
      Launch launch;
      launch.in(DNNL_ARG_SRC, pd.src_desc(), m.call.arg_index(x));
      launch.packed(DNNL_ARG_WEIGHTS, pd.weights_desc(), m.call.arg_index(y), weights);
      if (bias) launch.in(DNNL_ARG_BIAS, pd.bias_desc(), m.call.arg_index("bias"));
      launch.out(DNNL_ARG_DST, pd.dst_desc());
      KernelChoice c = launch.choose(name, pd, m);
      c.epilogues = with_post ? fused : 0;
      c.cost = cost_of(m, flops, traffic(m));
      take_addend(c, m, with_post);
      return Match::yes(std::move(c));
    }
  } catch (const dnnl::error& e) {
    return Match::no(cat("oneDNN: ", e.what()));
  }
  return Match::no("no oneDNN implementation");
}

Match general(const MatchCall& given, const Desc& x, const Desc& y, const Desc& bias, const Desc& out,
              std::string_view px, std::string_view py, double depth, std::string_view name) {
  const double flops = 2.0 * static_cast<double>(given.outputs[0].shape().count()) * depth;
  const MatchCall m = with_threads_for(given, flops);
  ThreadScope scope(m.threads);
  dnnl::post_ops post;
  const size_t fused = append_epilogues(m, post);
  std::string slow = "no implementation";
  for (bool with_post : {true, false}) {
    try {
      const dnnl::matmul::desc d = bias.is_zero() ? dnnl::matmul::desc(x, y, out) : dnnl::matmul::desc(x, y, bias, out);
      dnnl::matmul::primitive_desc pd(d, attributes(with_post ? post : dnnl::post_ops()), engine(), true);
      if (pd.get(true) == nullptr) continue;
      if (is_plain_loops(pd)) {
        slow = pd.impl_info_str();
        continue;
      }
      Launch launch;
      launch.in(DNNL_ARG_SRC, pd.src_desc(), m.call.arg_index(px));
      launch.in(DNNL_ARG_WEIGHTS, pd.weights_desc(), m.call.arg_index(py));
      if (!bias.is_zero()) launch.in(DNNL_ARG_BIAS, pd.bias_desc(), m.call.arg_index("bias"));
      launch.out(DNNL_ARG_DST, pd.dst_desc());
      KernelChoice c = launch.choose(name, pd, m);
      c.epilogues = with_post ? fused : 0;
      c.cost = cost_of(m, flops, traffic(m));
      take_addend(c, m, with_post);
      return Match::yes(std::move(c));
    } catch (const dnnl::error& e) {
      slow = e.what();
    }
  }
  return Match::no(cat("oneDNN: ", slow));
}

Match match_linear(const MatchCall& m) {
  if (std::string why = require_fp32(m, {"x", "weight", "bias"}); !why.empty()) return Match::no(why);
  const ir::Shape& w = m.call.shape("weight");
  const bool bias = m.call.has("bias");
  if (m.is_constant("weight"))
    return inner_product(m, "x", "weight", row_major({w[0], w[1]}), bias, "cpu.linear.onednn");
  const int64_t rows = m.outputs[0].shape().count() / w[0];
  return general(m, row_major({rows, w[1]}), strided({w[1], w[0]}, {1, w[1]}), bias ? row_major({1, w[0]}) : Desc(),
                 row_major({rows, w[0]}), "x", "weight", static_cast<double>(w[1]), "cpu.linear.onednn");
}

/// Batch dimensions padded with ones to `rank`; a vector becomes a row (left) or a column.
Desc operand(const ir::Shape& s, bool transposed, bool left, int rank) {
  const int64_t rows = s.rank() == 1 ? (left ? 1 : s[0]) : s[s.rank() - 2],
                cols = s.rank() == 1 ? (left ? s[0] : 1) : s[s.rank() - 1];
  Dims dims(static_cast<size_t>(rank), 1), strides(static_cast<size_t>(rank));
  int64_t step = rows * cols;
  for (int i = rank - 3, j = s.rank() - 3; i >= 0; i--, j--) {
    dims[static_cast<size_t>(i)] = j >= 0 ? s[j] : 1;
    strides[static_cast<size_t>(i)] = step;
    step *= dims[static_cast<size_t>(i)];
  }
  const auto r = static_cast<size_t>(rank - 2), c = r + 1;
  dims[r] = transposed ? cols : rows;
  dims[c] = transposed ? rows : cols;
  strides[r] = transposed ? 1 : cols;
  strides[c] = transposed ? cols : 1;
  return strided(dims, strides);
}

Match match_matmul(const MatchCall& m) {
  if (std::string why = require_fp32(m, {"x", "y"}); !why.empty()) return Match::no(why);
  auto tx = m.call.flag("transpose_x"), ty = m.call.flag("transpose_y");
  if (!tx.ok() || !ty.ok()) return Match::no("transposition that is not constant");
  const ir::Shape &x = m.call.shape("x"), &y = m.call.shape("y");
  if (m.is_constant("y") && y.rank() == 2 && !*tx) {
    const int64_t made = *ty ? y[0] : y[1], depth = *ty ? y[1] : y[0];
    Match fast = inner_product(m, "x", "y", strided({made, depth}, *ty ? Dims{depth, 1} : Dims{1, made}), false,
                               "cpu.matmul.onednn");
    if (fast.choice) return fast;
  }
  // A stack of matrices times one matrix is one tall matrix.
  if (x.rank() > 2 && y.rank() == 2 && !*tx) {
    const int64_t depth = x[x.rank() - 1], rows = x.count() / depth, made = *ty ? y[0] : y[1];
    return general(m, row_major({rows, depth}), operand(y, *ty, false, 2), Desc(), row_major({rows, made}), "x", "y",
                   static_cast<double>(depth), "cpu.matmul.onednn");
  }
  const int rank = std::max({x.rank(), y.rank(), 2});
  const Desc a = operand(x, *tx, true, rank), b = operand(y, *ty, false, rank);
  Dims out = a.dims();
  for (size_t i = 0; i + 2 < out.size(); i++) out[i] = std::max(out[i], b.dims()[i]);
  out.back() = b.dims().back();
  return general(m, a, b, Desc(), row_major(out), "x", "y", static_cast<double>(a.dims().back()), "cpu.matmul.onednn");
}

}  // namespace

std::span<const KernelDef> matmul_kernels() {
  static const KernelDef defs[] = {{"cpu.linear.onednn", {"linear"}, match_linear, true, true},
                                   {"cpu.matmul.onednn", {"matmul"}, match_matmul, true, true}};
  return defs;
}

}  // namespace moka::devices::cpu
