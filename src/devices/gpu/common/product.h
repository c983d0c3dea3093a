// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "devices/gpu/common/common.h"

namespace moka::devices::gpu {

/// How a product is divided among groups (shaders/tile.glsl).
struct Tiles {
  uint32_t size = 64;
  uint32_t slices = 1;            ///< parts of the depth that the invocations of one workgroup compute
  uint32_t parts = 1;             ///< workgroups that share the depth of one tile
  std::array<int64_t, 3> groups;  ///< along columns, rows and the batch
  /// The specialization constants: `first`, then those of the tiles.
  std::vector<uint32_t> constants(std::vector<uint32_t> first) const;
  /// These tiles, whose depth is divided among workgroups if the tiles alone would not occupy a large device.
  Tiles in_parts(const Features& card, int64_t depth) const;
  /// The scratch memory in bytes that holds the sums of all parts.
  size_t scratch(int64_t results) const { return parts > 1 ? static_cast<size_t>(results) * parts * 4 : 0; }
};
Tiles tiles_of(const Features& card, int64_t rows, int64_t columns, int64_t entries, int64_t depth);
/// Tiles of 64 rows where there are enough of them, so that few groups read the same columns.
Tiles large_tiles_of(const Features& card, int64_t rows, int64_t columns, int64_t entries, int64_t depth);

/// Adds the sums of all parts, the bias and the addend. Element i has the bias and the norm i / bias_step % biases. A
/// bias, an addend or a norm without a buffer is absent.
struct PartSums {
  Element floats = Element::f32;
  After after;
  int64_t count = 0, parts = 1, bias_step = 1, biases = 1;

  Status record(Recorder& recorder, const Use& partial, Use bias, Use addend, const Use& y, Use scales = {}) const;
};

/// The groups that compute a product in blocks of 8 by 8 (shaders/product_block.glsl).
std::array<int64_t, 3> product_blocks(const Features& card, int64_t rows, int64_t columns, int64_t entries);

/// c[m, n] = sum over k of a[m, k] * b[k, n] + bias[n * bias_column] + addend[as c], for each entry of a batch, whose
/// dimensions are innermost first. Steps are in elements. Parameters of shaders/product.glsl, but for `after`.
struct Product {
  uint32_t rows = 1, columns = 1, depth = 0;
  uint32_t a_row = 0, a_k = 1, b_k = 0, b_column = 0, c_row = 0, c_column = 1, bias_column = 0;
  std::array<uint32_t, 2> size{1, 1};
  std::array<uint32_t, 3> a_batch{}, b_batch{}, c_batch{};
};

/// The buffers that a product reads and writes. A bias or an addend without a buffer is absent.
struct ProductUses {
  Use a, b, bias, addend, c;
  Use partial = {};  ///< scratch, if the product may be divided
};

/// A batch of `entries` products. Its sizes choose the shader.
struct ProductKernel {
  const Features* card;
  Product product;
  int64_t entries = 1;
  Element floats = Element::f32, weights = Element::f32;  ///< of b; all others are `floats`
  After after;
  bool may_divide = false;  ///< whether several workgroups may add parts of a sum, in scratch

  /// Why the device cannot run it; empty: it can.
  std::string refusal() const;
  double multiply_adds() const;
  /// Bytes of ProductUses::partial.
  size_t scratch() const { return tiles().scratch(results()); }
  Status record(Recorder& recorder, ProductUses uses) const;

 private:
  bool is_narrow() const { return product.rows <= 4; }
  /// Whether a subgroup computes an element.
  bool is_dot() const { return is_narrow() && card->lanes && product.a_k == 1 && product.b_k == 1; }
  int64_t results() const { return int64_t{product.rows} * product.columns * entries; }
  /// Whether the elements of the result lie side by side in the order of the batch, rows and columns.
  bool is_dense() const;
  Tiles tiles() const;
  std::string shader() const;
  std::array<int64_t, 3> groups() const;
};

}  // namespace moka::devices::gpu
