#include "devices/vulkan/kernels/product.h"

namespace moka::devices::vulkan {

namespace {

struct ProductParams {
  AfterParams after;
  Product product;
};

Tiles tiles_of_size(int64_t size, int64_t rows, int64_t columns, int64_t entries) {
  return {u32(size), {(columns + size - 1) / size, (rows + size - 1) / size, entries}};
}

}  // namespace

Tiles tiles_of(int64_t rows, int64_t columns, int64_t entries) {
  const Tiles large = large_tiles_of(rows, columns, entries), small = tiles_of_size(32, rows, columns, entries);
  // Rows beyond the product are computed too: 64 for 24 channels.
  const bool is_wasteful = large.groups[1] * 64 * 4 > small.groups[1] * 32 * 5;
  return large.size == 64 && is_wasteful ? small : large;
}

Tiles large_tiles_of(int64_t rows, int64_t columns, int64_t entries) {
  // Small tiles where large ones leave processors of a large device idle.
  constexpr int64_t kEnough = 128;
  const Tiles large = tiles_of_size(64, rows, columns, entries);
  return large.groups[0] * large.groups[1] * large.groups[2] < kEnough ? tiles_of_size(32, rows, columns, entries)
                                                                       : large;
}

std::vector<uint32_t> Tiles::constants(std::vector<uint32_t> first) const {
  first.push_back(size);
  first.push_back(size * size / 16);
  return first;
}

/// Those of gemv for a few rows.
Tiles ProductKernel::tiles() const {
  const Product& p = product;
  if (!is_narrow()) return tiles_of(p.rows, p.columns, entries);
  const int64_t outputs = p.b_k == 1 ? 8 : 32;
  return {0, {(p.columns + outputs - 1) / outputs, p.rows, entries}};
}

std::string ProductKernel::refusal() const { return refusal_of_groups(tiles().groups); }

double ProductKernel::multiply_adds() const {
  return static_cast<double>(product.rows) * product.columns * product.depth * static_cast<double>(entries);
}

Status ProductKernel::record(Recorder& recorder, ProductUses uses) const {
  const Product& p = product;
  const bool bias = uses.bias.buffer != nullptr, addend = uses.addend.buffer != nullptr;
  if (!bias) uses.bias = uses.a.unused();
  if (!addend) uses.addend = uses.a.unused();
  const std::string shader =
      is_narrow() ? cat(shader_name("gemv", floats), weights != floats ? cat("_", name_of(weights)) : std::string())
                  : tile_shader_name("matmul", floats, weights);
  const Tiles t = tiles();
  auto constants = after.constants({bias, addend, p.a_k == 1, p.b_k == 1});
  if (!is_narrow()) constants = t.constants(std::move(constants));
  return recorder_of(recorder).dispatch(shader, std::move(constants), {uses.a, uses.b, uses.bias, uses.addend, uses.c},
                                        ProductParams{AfterParams(after), p}, groups_of(t.groups));
}

}  // namespace moka::devices::vulkan
