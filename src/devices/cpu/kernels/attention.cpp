#include <omp.h>

#include <array>
#include <atomic>
#include <cmath>
#include <limits>

#include "devices/cpu/kernels/families.h"
#include "devices/cpu/onednn.h"
#include "devices/cpu/vector/loops.h"

namespace moka::devices::cpu {

namespace {

using vector::Binary;
using vector::loops;
using vector::Reduce;
using vector::Unary;

constexpr int64_t kRows = 64;  // of scores that are in memory at once, for each thread

/// First elements of one batch: query, key, value, mask.
using Starts = std::array<int64_t, 4>;

std::vector<Starts> starts_of(const ir::Shape& out, std::span<const ir::Shape> operands) {
  const int rank = out.rank();
  std::vector<Starts> all(static_cast<size_t>(out.count(0, rank - 2)));
  for (size_t b = 0; b < all.size(); b++)
    for (size_t k = 0; k < operands.size(); k++) {
      const ir::Shape& s = operands[k];
      const auto strides = s.strides();
      auto rest = static_cast<int64_t>(b);
      for (int i = rank - 3; i >= 0; i--) {
        const int j = i - (rank - s.rank());
        if (j >= 0 && s[j] != 1) all[b][k] += rest % out[i] * strides[static_cast<size_t>(j)];
        rest /= out[i];
      }
    }
  return all;
}

Match match_attention(const MatchCall& given) {
  if (std::string why = require_fp32(given, {"query", "key", "value"}); !why.empty()) return Match::no(why);
  const ir::OpCall& call = given.call;
  const bool masked = call.has("attn_mask");
  const ir::DType mask_type = masked ? call.dtype("attn_mask") : ir::DType::none;
  if (masked && mask_type != ir::DType::fp32 && mask_type != ir::DType::boolean)
    return Match::no(cat("a mask of ", mask_type));
  const ir::Shape &q = call.shape("query"), &k = call.shape("key"), &v = call.shape("value"),
                  &out = given.outputs[0].shape();
  const int r = q.rank();
  const int64_t rows = q[r - 2], width = q[r - 1], keys = k[r - 2], made = v[r - 1];
  std::vector<ir::Shape> operands{q, k, v};
  int64_t row_step = 0;
  int key_step = 0;
  if (masked) {
    const ir::Shape& s = call.shape("attn_mask");
    operands.push_back(s);
    key_step = s[s.rank() - 1] == 1 ? 0 : 1;
    row_step = s.rank() < 2 || s[s.rank() - 2] == 1 ? 0 : s[s.rank() - 1];
  }
  const double flops = 2.0 * static_cast<double>(out.count(0, r - 2)) * static_cast<double>(rows * keys) *
                       static_cast<double>(width + made);
  const MatchCall m = with_threads_for(given, flops);
  const int iq = call.arg_index("query"), ik = call.arg_index("key"), iv = call.arg_index("value"),
            im = masked ? call.arg_index("attn_mask") : -1;
  const int64_t parts = (rows + kRows - 1) / kRows, most = std::min(rows, kRows) * keys;
  KernelChoice c;
  c.kernel = "cpu.attention";
  c.own_threads = true;
  c.scratch = static_cast<size_t>(m.threads) * static_cast<size_t>(most) * sizeof(float);
  c.cost = cost_of(m, flops, traffic(m));
  c.run = [=, threads = m.threads, starts = starts_of(out, operands)](const KernelArgs& args) -> Status {
    auto in = [&](int i) { return args.in[static_cast<size_t>(i)].as<float>(); };
    const auto scale = static_cast<float>(1 / std::sqrt(static_cast<double>(width)));
    const float nothing = -std::numeric_limits<float>::infinity();
    const auto units = static_cast<int64_t>(starts.size()) * parts;
    std::atomic<int> failure = 0;
    // A lone unit leaves the threads to the products.
    const onednn::ThreadScope scope(threads);
#pragma omp parallel for num_threads(threads) schedule(dynamic) if (units > 1)
    for (int64_t u = 0; u < units; u++) {
      const Starts& at = starts[static_cast<size_t>(u / parts)];
      const int64_t row = u % parts * kRows, some = std::min(kRows, rows - row);
      float* scores = reinterpret_cast<float*>(args.scratch) + omp_get_thread_num() * most;
      dnnl_status_t s = dnnl_sgemm('N', 'T', some, keys, width, scale, in(iq) + at[0] + row * width, width,
                                   in(ik) + at[1], width, 0, scores, keys);
      for (int64_t i = 0; i < some; i++) {
        float* line = scores + i * keys;
        const int64_t first = at[3] + (row + i) * row_step;
        if (mask_type == ir::DType::boolean)
          loops().select(args.in[static_cast<size_t>(im)].as<uint8_t>() + first, key_step, line, 1, &nothing, 0, line,
                         keys);
        else if (im >= 0)
          loops().binary(Binary::add, line, 1, in(im) + first, key_step, line, keys);
        const auto top = static_cast<float>(loops().reduce(Reduce::max, line, keys));
        const double sum = loops().exp_minus(line, &top, 0, line, keys);
        loops().unary(Unary::linear, line, line, keys, static_cast<float>(1 / sum), 0);
      }
      if (s == dnnl_success)
        s = dnnl_sgemm('N', 'N', some, made, keys, 1, scores, keys, in(iv) + at[2], made, 0,
                       args.out[0].as<float>() + (u / parts * rows + row) * made, made);
      if (s != dnnl_success) failure = static_cast<int>(s);
    }
    if (failure != 0) return fail(ErrorCode::internal, "oneDNN sgemm: status ", failure.load());
    return {};
  };
  return Match::yes(std::move(c));
}

}  // namespace

std::span<const KernelDef> attention_kernels() {
  static const KernelDef defs[] = {{"cpu.attention", {"scaled_dot_product_attention"}, match_attention}};
  return defs;
}

}  // namespace moka::devices::cpu
