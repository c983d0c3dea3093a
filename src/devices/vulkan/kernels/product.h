#pragma once

#include "devices/vulkan/kernels/common.h"

namespace moka::devices::vulkan {

/// How a product is divided among groups (shaders/tile.glsl).
struct Tiles {
  uint32_t size = 64;
  uint32_t slices = 1;            ///< of a workgroup's invocations, which divide the depth
  std::array<int64_t, 3> groups;  ///< along columns, rows and the batch
  /// With what the shader has to know, behind its other constants.
  std::vector<uint32_t> constants(std::vector<uint32_t> first) const;
};
Tiles tiles_of(int64_t rows, int64_t columns, int64_t entries, int64_t depth);
/// Tiles of 64 rows where there are enough of them, so that few groups read the same columns.
Tiles large_tiles_of(int64_t rows, int64_t columns, int64_t entries, int64_t depth);

/// The groups that compute a product in blocks of 8 by 8 (shaders/product_block.glsl).
std::array<int64_t, 3> product_blocks(int64_t rows, int64_t columns, int64_t entries);

/// c[m, n] = sum over k of a[m, k] * b[k, n] + bias[n * bias_column] + addend[as c], for each entry of a batch, whose
/// dimensions are innermost first. Steps are in elements. Push constants of shaders/product.glsl, but for `after`.
struct Product {
  uint32_t rows = 1, columns = 1, depth = 0;
  uint32_t a_row = 0, a_k = 1, b_k = 0, b_column = 0, c_row = 0, c_column = 1, bias_column = 0;
  std::array<uint32_t, 2> size{1, 1};
  std::array<uint32_t, 3> a_batch{}, b_batch{}, c_batch{};
};

/// What a product reads and writes; a bias or an addend without a buffer is none.
struct ProductUses {
  Use a, b, bias, addend, c;
};

/// A product with `entries` in its batch, by the shader that suits its sizes.
struct ProductKernel {
  Product product;
  int64_t entries = 1;
  Element floats = Element::f32, weights = Element::f32;  ///< of b; all others are `floats`
  After after;

  /// Why it cannot run; empty: it can.
  std::string refusal() const;
  double multiply_adds() const;
  Status record(Recorder& recorder, ProductUses uses) const;

 private:
  bool is_narrow() const { return product.rows <= 4; }
  /// Whether a subgroup computes an element.
  bool is_dot() const { return is_narrow() && adds_lanes() && product.a_k == 1 && product.b_k == 1; }
  std::string shader() const;
  std::array<int64_t, 3> groups() const;
};

}  // namespace moka::devices::vulkan
