// SPDX-License-Identifier: Apache-2.0
#include "devices/cpu/onednn.h"

#include <omp.h>

#include <algorithm>
#include <limits>

#include "devices/cpu/common/common.h"
#include "devices/cpu/vector/loops.h"

namespace moka::devices::cpu::onednn {

using dnnl::algorithm;
using kernel::KernelArgs;
using kernel::Layout;
using tag = dnnl::memory::format_tag;

namespace {
constexpr auto kF32 = dnnl::memory::data_type::f32;
}  // namespace

const dnnl::engine& engine() {
  static const dnnl::engine e(dnnl::engine::kind::cpu, 0);
  return e;
}

OneThread::OneThread() : before_(omp_get_max_threads()) {
  if (before_ != 1) omp_set_num_threads(1);
}

OneThread::~OneThread() {
  if (before_ != 1) omp_set_num_threads(before_);
}

Desc row_major(const Dims& dims) {
  Dims strides(dims.size());
  dnnl_dim_t step = 1;
  for (size_t i = dims.size(); i-- > 0; step *= dims[i]) strides[i] = step;
  return {dims, kF32, strides};
}

Desc strided(const Dims& dims, const Dims& strides) { return {dims, kF32, strides}; }
Desc any(const Dims& dims) { return {dims, kF32, tag::any}; }
Dims dims_of(const ir::Shape& shape) { return {shape.begin(), shape.end()}; }

Desc describe(const ir::Shape& shape, Layout layout) {
  const Dims dims = dims_of(shape);
  const int rank = shape.rank();
  if (layout.is_row_major() || rank < 3) return row_major(dims);
  if (layout.kind == Layout::Kind::channels_last)
    return {dims, kF32, rank == 3 ? tag::nwc : rank == 4 ? tag::nhwc : tag::ndhwc};
  if (layout.block == 16) return {dims, kF32, rank == 3 ? tag::nCw16c : rank == 4 ? tag::nChw16c : tag::nCdhw16c};
  return {dims, kF32, rank == 3 ? tag::nCw8c : rank == 4 ? tag::nChw8c : tag::nCdhw8c};
}

namespace {

struct PostOp {
  algorithm function;
  float alpha, beta;
  bool operator==(const PostOp&) const = default;
};

/// The post-ops that compute an epilogue; empty if oneDNN has none.
std::vector<PostOp> post_ops_of(const ir::Epilogue& e) {
  using enum algorithm;
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  [[maybe_unused]] const float a = e.alpha, b = e.beta;
#define MOKA_EPILOGUE(name, exact, limits, vector, expression, ...) \
  if (e.op == #name) return {__VA_ARGS__};
#include "kernel/epilogues.inc"
#undef MOKA_EPILOGUE
  return {};
}

}  // namespace

size_t append_epilogues(const kernel::MatchCall& m, dnnl::post_ops& to) {
  std::vector<PostOp> all;
  size_t n = 0;
  if (m.call.has_addend()) to.append_sum();
  for (const ir::Epilogue& e : m.epilogue) {
    const std::vector<PostOp> added = post_ops_of(e);
    if (added.empty()) break;
    // oneDNN computes a second post-op of the same function with the first one's parameters.
    for (const PostOp& p : added)
      for (const PostOp& before : all)
        if (p.function == before.function && p != before) return n;
    for (const PostOp& p : added) {
      to.append_eltwise(1, p.function, p.alpha, p.beta);
      all.push_back(p);
    }
    n++;
  }
  return n;
}

dnnl::post_ops without_epilogues(const kernel::MatchCall& m) {
  dnnl::post_ops post;
  if (m.call.has_addend()) post.append_sum();
  return post;
}

void add_afterwards(kernel::KernelChoice& c, const kernel::MatchCall& m) {
  const auto at = static_cast<size_t>(m.call.arg_index("addend"));
  const int64_t count = m.outputs[0].shape().count();
  c.run = [run = std::move(c.run), at, count](const KernelArgs& args) -> Status {
    MOKA_TRY(run(args));
    auto* y = args.out[0].as<float>();
    vector::loops().binary(vector::Binary::add, y, 1, args.in[at].as<float>(), 1, y, count);
    return {};
  };
}

dnnl::primitive_attr attributes(const dnnl::post_ops& post) {
  dnnl::primitive_attr a;
  a.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  a.set_post_ops(post);
  return a;
}

bool is_plain_loops(const dnnl::primitive_desc_base& pd) {
  return std::string_view(pd.impl_info_str()).find("ref") != std::string_view::npos;
}

std::vector<Part> divide(const ir::Shape& in, Layout in_layout, const ir::Shape& out, Layout out_layout, int64_t groups,
                         int threads) {
  const Part whole{0, out[0], 0, groups, 0, out[1]};
  auto cut = [&](int64_t units) { return std::max<int64_t>(std::min<int64_t>(units, threads), 1); };
  std::vector<Part> parts;
  if (out[0] > 1) {
    for (int64_t n = cut(out[0]), i = 0; i < n; i++) {
      Part p = whole;
      p.image = out[0] * i / n;
      p.images = out[0] * (i + 1) / n - p.image;
      parts.push_back(p);
    }
    return parts;
  }
  if (in_layout.kind == Layout::Kind::channels_last || out_layout.kind == Layout::Kind::channels_last) return {whole};
  // Divide row-major data at multiples of a block too, because narrower parts are slow.
  const int64_t block = channel_block(), of_group = out[1] / groups, in_of_group = in[1] / groups;
  int64_t step = block;  // channels of the result
  if (groups > 1)
    for (step = of_group; step < out[1] && (step % block != 0 || step / of_group * in_of_group % block != 0);)
      step += of_group;
  const int64_t units = (out[1] + step - 1) / step;
  for (int64_t n = cut(units), i = 0; i < n; i++) {
    Part p = whole;
    p.channel = units * i / n * step;
    p.channels = std::min(units * (i + 1) / n * step, out[1]) - p.channel;
    if (groups > 1) {
      p.group = p.channel / of_group;
      p.groups = p.channels / of_group;
    }
    parts.push_back(p);
  }
  return parts;
}

namespace {
Run run_of(const Part& part, const ir::Shape& whole, Layout layout, int64_t channel, int64_t channels) {
  Run run{whole, part.image * (storage_count(whole, layout) / whole[0]) + channel * whole.count(2, whole.rank())};
  run.shape[0] = part.images;
  run.shape[1] = channels;
  return run;
}
}  // namespace

Run input_of(const Part& part, const ir::Shape& whole, Layout layout, int64_t groups) {
  const int64_t of_group = whole[1] / groups;
  return run_of(part, whole, layout, of_group * part.group, of_group * part.groups);
}

Run result_of(const Part& part, const ir::Shape& whole, Layout layout) {
  return run_of(part, whole, layout, part.channel, part.channels);
}

}  // namespace moka::devices::cpu::onednn
