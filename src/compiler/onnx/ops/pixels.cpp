// SPDX-License-Identifier: Apache-2.0
#include "compiler/onnx/call.h"
#include "ops/common/pixel_blocks.h"

namespace moka::compiler::onnx {
namespace {

void depth_to_space(Call& c) {
  c.set(c.node("DepthToSpace", {c.x()}, {attr("blocksize", c.integer("block_size")), attr("mode", "DCR")}));
}

void pixel_shuffle(Call& c) {
  c.set(c.node("DepthToSpace", {c.x()}, {attr("blocksize", c.integer("upscale_factor")), attr("mode", "CRD")}));
}

void space_to_depth(Call& c) { c.set(c.node("SpaceToDepth", {c.x()}, {attr("blocksize", c.integer("block_size"))})); }

/// The dimensions of a reshape of [n, c, h, w], of which one may be unknown.
void reshaped(Call& c, Name& x, std::vector<int64_t> dims) {
  int unknown = 0;
  for (int64_t& d : dims) {
    unknown += d < 0;
    if (d < 0) d = -1;
  }
  if (unknown > 1) return c.refuse("several of its sizes are not known");
  x = c.reshape(x, std::move(dims));
}

int64_t over(int64_t size, int64_t by) { return size < 0 ? -1 : size / by; }
int64_t times(int64_t size, int64_t by) { return size < 0 ? -1 : size * by; }

void pixel_unshuffle(Call& c) {
  const int64_t b = c.integer("downscale_factor");
  if (c.rank("x") != 4 || b < 1) return c.refuse("rank 4 is expected");
  const ir::Shape& s = c.type("x").shape();
  Name y = c.x();
  reshaped(c, y, {s[0], s[1], over(s[2], b), b, over(s[3], b), b});
  y = c.transpose(y, {0, 1, 3, 5, 2, 4});
  reshaped(c, y, {s[0], times(s[1], b * b), over(s[2], b), over(s[3], b)});
  c.set(y);
}

void space_to_batch(Call& c) {
  const auto b = ops::batch_blocks(c.known(), "paddings");
  if (!b) return c.refuse(b.error().to_string());
  const ir::Shape &s = c.type("x").shape(), &out = c.out().shape();
  Name y =
      c.pad(c.x(), {0, 0, b->margin[0][0], b->margin[1][0], 0, 0, b->margin[0][1], b->margin[1][1]}, 0, c.dtype("x"));
  reshaped(c, y, {s[0], s[1], out[2], b->block[0], out[3], b->block[1]});
  y = c.transpose(y, {3, 5, 0, 1, 2, 4});
  reshaped(c, y, {out[0], s[1], out[2], out[3]});
  c.set(y);
}

void batch_to_space(Call& c) {
  const auto b = ops::batch_blocks(c.known(), "crops");
  if (!b) return c.refuse(b.error().to_string());
  const ir::Shape &s = c.type("x").shape(), &out = c.out().shape();
  Name y = c.x();
  reshaped(c, y, {b->block[0], b->block[1], out[0], s[1], s[2], s[3]});
  y = c.transpose(y, {2, 3, 4, 0, 5, 1});
  reshaped(c, y, {out[0], s[1], times(s[2], b->block[0]), times(s[3], b->block[1])});
  const int64_t* h = b->margin[0];
  const int64_t* w = b->margin[1];
  if (h[0] != 0 || h[1] != 0 || w[0] != 0 || w[1] != 0) {
    const auto end = [](int64_t crop) { return crop == 0 ? std::numeric_limits<int64_t>::max() : -crop; };
    y = c.node("Slice", {y, c.i64({h[0], w[0]}), c.i64({end(h[1]), end(w[1])}), c.i64({2, 3})});
  }
  c.set(y);
}

/// A Gather whose indices are the windows.
void sliding_windows(Call& c) {
  const int axis = c.axis("axis", c.rank("x"));
  const int64_t size = c.integer("size"), stride = c.integer("stride");
  if (c.refused() || !c.out().is_ranked()) return c.refuse("the rank of its result is not known");
  const int64_t n = c.out().shape()[axis];
  if (n < 0) return c.refuse("the number of its windows is not known");
  std::vector<int64_t> at;
  for (int64_t i = 0; i < n; i++)
    for (int64_t j = 0; j < size; j++) at.push_back(i * stride + j);
  ox::Tensor t;
  t.type = DataType::int64;
  t.dims = {n, size};
  t.raw = Bytes::copy_of(std::as_bytes(std::span(at)));
  c.set(c.node("Gather", {c.x(), c.graph.initializer(std::move(t))}, {attr("axis", axis)}));
}

}  // namespace

std::span<const OpWriter> writers_pixels();
std::span<const OpWriter> writers_pixels() {
  static constexpr OpWriter list[] = {
      {"depth_to_space", depth_to_space},   {"pixel_shuffle", pixel_shuffle},   {"space_to_depth", space_to_depth},
      {"pixel_unshuffle", pixel_unshuffle}, {"space_to_batch", space_to_batch}, {"batch_to_space", batch_to_space},
      {"sliding_windows", sliding_windows},
  };
  return list;
}

}  // namespace moka::compiler::onnx
