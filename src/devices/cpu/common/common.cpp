// SPDX-License-Identifier: Apache-2.0
#include "devices/cpu/common/common.h"

#include <cstring>

#include "base/checksum.h"

namespace moka::devices::cpu {

std::string require_fp32(const MatchCall& m, std::initializer_list<std::string_view> params) {
  auto check = [](const ir::Type& t) -> std::string {
    if (!t.is_tensor()) return "not a tensor";
    if (t.dtype() != ir::DType::fp32) return cat("element type ", t.dtype());
    if (t.shape().count() == 0) return "an empty tensor";
    return {};
  };
  for (std::string_view p : params)
    if (m.call.has(p))
      if (std::string why = check(m.call.type(p)); !why.empty()) return why;
  for (const ir::Type& t : m.outputs)
    if (std::string why = check(t); !why.empty()) return why;
  return {};
}

std::vector<Layout> in_layouts(const MatchCall& m, std::string_view param, Layout layout) {
  std::vector<Layout> all(m.call.all_args().size());
  all[static_cast<size_t>(m.call.arg_index(param))] = layout;
  return all;
}

double cost_of(const MatchCall& m, double flops, double bytes) {
  const double threads = std::max(1, m.threads);
  return flops / (flops_per_second() * threads) + bytes / bytes_per_second() + 1e-6;
}

std::shared_ptr<const PackedFloats> packed_before(KernelChoice& c, const MatchCall& m, int arg, std::string key,
                                                  int64_t count,
                                                  std::function<void(const float* value, float* to)> fill) {
  auto packed = std::make_shared<PackedFloats>();
  c.in_prepare_only.resize(m.call.all_args().size());
  c.in_prepare_only[static_cast<size_t>(arg)] = true;
  c.prepare = [=, before = std::move(c.prepare), key = std::move(key),
               fill = std::move(fill)](kernel::PrepareContext& context) -> Status {
    if (before) MOKA_TRY(before(context));
    packed->bytes = MOKA_TRY(context.pack(arg, key, static_cast<size_t>(count) * sizeof(float),
                                          [&](const ir::TensorView& value, std::byte* to) -> Status {
                                            fill(value.as<float>(), reinterpret_cast<float*>(to));
                                            return {};
                                          }));
    return {};
  };
  return packed;
}

std::string content_key(std::span<const ir::TensorView> values) {
  Digest digest;
  for (const ir::TensorView& v : values) {
    const std::string type = cat(v.dtype, " ", v.shape);
    digest.add(std::as_bytes(std::span(type.data(), type.size())));
    if (const auto bytes = ir::storage_bytes(v.dtype, v.shape)) digest.add({v.as<std::byte>(), *bytes});
  }
  return digest.text();
}

MatchCall with_threads_for(const MatchCall& m, double flops) {
  MatchCall fed = m;
  const double seconds = flops / flops_per_second() + traffic(m) / bytes_per_second();
  constexpr double kWorthwhile =
      20e-6;  // seconds of work per thread: several times the cost of starting and joining it
  fed.threads = static_cast<int>(std::clamp(seconds / kWorthwhile, 1.0, static_cast<double>(std::max(1, m.threads))));
  return fed;
}

BlockedTiles blocked_tiles(int64_t images, int64_t groups, int64_t rows, int threads) {
  constexpr int64_t kTiles = 4, kFewRows = 4;  // per thread
  const int64_t wanted = kTiles * threads, planes = images * groups;
  if (threads == 1 || images >= wanted || (rows < kFewRows * threads && planes >= wanted)) return {groups, rows, 1};
  const int64_t bands = (wanted + planes - 1) / planes;
  return {groups, rows, std::min((bands + threads - 1) / threads * threads, rows)};
}

double traffic(const MatchCall& m) {
  double bytes = 0;
  auto add = [&](const ir::Type& t) {
    if (t.is_tensor()) bytes += static_cast<double>(t.shape().count()) * ir::bits(t.dtype()) / 8;
  };
  for (const ir::Arg& a : m.call.all_args()) add(*a.type);
  for (const ir::Type& t : m.outputs) add(t);
  return bytes;
}

int64_t storage_count(const ir::Shape& shape, Layout layout) {
  if (layout.kind != Layout::Kind::channel_blocked) return shape.count();
  ir::Shape padded = shape;
  padded[1] = (shape[1] + layout.block - 1) / layout.block * layout.block;
  return padded.count();
}

bool has_padding(const ir::Shape& shape, Layout layout) {
  return layout.kind == Layout::Kind::channel_blocked && shape[1] % layout.block != 0;
}

void clear_padding(const ir::Shape& shape, Layout layout, float* data, int64_t begin, int64_t end) {
  if (!has_padding(shape, layout)) return;
  const int64_t block = layout.block, groups = (shape[1] + block - 1) / block, used = shape[1] % block;
  const int64_t pixels = shape.count(2, shape.rank()) * block;  // elements of one block
  const auto bytes = static_cast<size_t>(block - used) * sizeof(float);
  for (int64_t image = begin / (pixels * groups); image * pixels * groups < end; image++) {
    const int64_t first = std::max(begin, (image * groups + groups - 1) * pixels),
                  last = std::min(end, (image + 1) * groups * pixels);
    for (int64_t i = first; i < last; i += block) std::memset(data + i + used, 0, bytes);
  }
}

}  // namespace moka::devices::cpu
