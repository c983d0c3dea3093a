// SPDX-License-Identifier: Apache-2.0
#include "devices/gpu/common/product.h"

namespace moka::devices::gpu {

namespace {

struct ProductParams {
  AfterParams after;
  uint32_t has;
  Product product;
};

/// Whether a shader can read one side of a product as vectors of four: along k if `line`, else across rows or columns.
bool has_fours(const Use& use, bool line, uint32_t step, uint32_t k_step, const std::array<uint32_t, 3>& batch,
               uint32_t lines, uint32_t depth) {
  bool fits = use.offset % (4 * use.element) == 0;
  for (uint32_t b : batch) fits &= b % 4 == 0;
  return fits && (line ? step % 4 == 0 && depth % 4 == 0 : step == 1 && k_step % 4 == 0 && lines % 4 == 0);
}

Tiles tiles_of_size(int64_t size, int64_t rows, int64_t columns, int64_t entries) {
  return {u32(size), 1, 1, {(columns + size - 1) / size, (rows + size - 1) / size, entries}};
}

/// Small tiles, in slices as long as few are at work and each has several steps.
Tiles small_tiles_of(const Features& card, int64_t rows, int64_t columns, int64_t entries, int64_t depth) {
  constexpr int64_t kMostAtWork = 1024, kLeastDepth = 64;
  // Four slices have 30 KiB, two have 13.
  const uint32_t most = card.max_shared >= 32768 ? 4 : 2;
  Tiles tiles = tiles_of_size(32, rows, columns, entries);
  const int64_t groups = tiles.groups[0] * tiles.groups[1] * tiles.groups[2];
  while (tiles.slices < most && groups * tiles.slices * 2 <= kMostAtWork && depth >= kLeastDepth * tiles.slices * 2)
    tiles.slices *= 2;
  return tiles;
}

}  // namespace

Tiles tiles_of(const Features& card, int64_t rows, int64_t columns, int64_t entries, int64_t depth) {
  const Tiles large = large_tiles_of(card, rows, columns, entries, depth);
  const Tiles small = small_tiles_of(card, rows, columns, entries, depth);
  // Rows beyond the product are computed too: 64 for 24 channels.
  const bool is_wasteful = large.groups[1] * 64 * 4 > small.groups[1] * 32 * 5;
  return large.size == 64 && is_wasteful ? small : large;
}

Tiles large_tiles_of(const Features& card, int64_t rows, int64_t columns, int64_t entries, int64_t depth) {
  // Small tiles where large ones leave processors of a large device idle.
  constexpr int64_t kEnough = 128;
  const Tiles large = tiles_of_size(64, rows, columns, entries);
  const bool is_enough = large.groups[0] * large.groups[1] * large.groups[2] >= kEnough;
  return is_enough ? large : small_tiles_of(card, rows, columns, entries, depth);
}

std::vector<uint32_t> Tiles::constants(std::vector<uint32_t> first) const {
  first.push_back(size);
  first.push_back(size * size / 16 * slices);
  first.push_back(slices);
  if (parts > 1) first.push_back(parts);
  return first;
}

Tiles Tiles::in_parts(const Features& card, int64_t depth) const {
  constexpr int64_t kEnough = 512, kFewestSteps = 8, kMostParts = 8;
  Tiles all = *this;
  const int64_t steps = depth / (int64_t{16} * slices), count = groups[0] * groups[1] * groups[2];
  if (!card.is_large || size != 32 || slices == 1) return all;
  all.parts = u32(std::clamp<int64_t>(std::min(steps / kFewestSteps, kEnough / count), 1, kMostParts));
  all.groups[2] *= all.parts;
  return all;
}

Status PartSums::record(Recorder& recorder, const Use& partial, Use bias, Use addend, const Use& y, Use scales) const {
  struct Params {
    AfterParams after;
    uint32_t has, count, parts, bias_step, biases;
  };
  const bool biased = bias.buffer != nullptr, added = addend.buffer != nullptr, normed = scales.buffer != nullptr;
  if (!biased) bias = partial.unused();
  if (!added) addend = partial.unused();
  if (!normed) scales = partial.unused();
  MOKA_TRY(recorder_of(recorder).dispatch(shader_name("add_parts", floats), after.constants({}),
                                          {partial, bias, addend, y, scales},
                                          Params{AfterParams(after), has_of(biased, added, after, normed), u32(count),
                                                 u32(parts), u32(bias_step), u32(biases)},
                                          CommandRecorder::lines(static_cast<uint64_t>(count))));
  recorder_of(recorder).may_share(0);
  if (!normed && biases > 1)
    recorder_of(recorder).may_norm({biases, bias_step, [=, *this](Recorder& again, const Norm& norm) {
                                      return record(again, partial, biased ? bias : Use{}, added ? addend : Use{},
                                                    norm.out, norm.scales);
                                    }});
  return {};
}

std::array<int64_t, 3> product_blocks(const Features& card, int64_t rows, int64_t columns, int64_t entries) {
  return card.block_groups((rows + 7) / 8 * ((columns + 7) / 8), entries);
}

bool ProductKernel::is_dense() const {
  const Product& p = product;
  bool dense = p.c_column == 1 && p.c_row == p.columns && p.bias_column <= 1;
  int64_t step = int64_t{p.rows} * p.columns, left = entries;
  for (size_t i = 0; i < 3; i++) {
    const int64_t size = i < 2 ? int64_t{p.size[i]} : left;
    dense &= size == 1 || p.c_batch[i] == step;
    step *= size;
    left /= size;
  }
  return dense;
}

Tiles ProductKernel::tiles() const {
  const Tiles all = tiles_of(*card, product.rows, product.columns, entries, product.depth);
  return may_divide && !is_narrow() && card->shares_tiles() && is_dense() ? all.in_parts(*card, product.depth) : all;
}

std::array<int64_t, 3> ProductKernel::groups() const {
  const Product& p = product;
  if (!is_narrow()) return card->shares_tiles() ? tiles().groups : product_blocks(*card, p.rows, p.columns, entries);
  const int64_t outputs = is_dot() ? card->rows_of_group() : p.b_k == 1 ? 8 : 32;
  return {(p.columns + outputs - 1) / outputs, p.rows, entries};
}

std::string ProductKernel::refusal() const { return card->refusal_of_groups(groups()); }

double ProductKernel::multiply_adds() const {
  return static_cast<double>(product.rows) * product.columns * product.depth * static_cast<double>(entries);
}

std::string ProductKernel::shader() const {
  if (!is_narrow() && card->shares_tiles()) return tile_shader_name(*card, "matmul", floats, weights);
  const std::string stem = is_dot() ? "gemv_lanes" : is_narrow() ? "gemv" : "matmul_block";
  return cat(shader_name(stem, floats), weights != floats ? cat("_", name_of(weights)) : std::string());
}

Status ProductKernel::record(Recorder& recorder, ProductUses uses) const {
  const Product& p = product;
  const bool bias = uses.bias.buffer != nullptr, addend = uses.addend.buffer != nullptr;
  const bool tiled = !is_narrow() && card->shares_tiles(), a_line = p.a_k == 1, b_line = p.b_k == 1;
  const Tiles tiles = this->tiles();
  const ProductUses all = uses;
  const bool divided = tiles.parts > 1;
  if (!bias || divided) uses.bias = uses.a.unused();
  if (!addend || divided) uses.addend = uses.a.unused();
  if (divided) uses.c = uses.partial;
  const After now = divided ? After{} : after;
  auto constants = now.constants({a_line, b_line});
  const bool a_fours = has_fours(uses.a, a_line, p.a_row, p.a_k, p.a_batch, p.rows, p.depth);
  const bool b_fours = has_fours(uses.b, b_line, p.b_column, p.b_k, p.b_batch, p.columns, p.depth);
  if (tiled) {
    constants = tiles.constants(std::move(constants));
  } else if (is_dot()) {
    constants.push_back(a_fours && b_fours);
  } else if (!is_narrow()) {
    // Fours along k need four of it at a time.
    const bool four_steps = p.depth % 4 == 0 && ((a_line && a_fours) || (b_line && b_fours));
    for (uint32_t v : {four_steps ? 4u : 1u, u32(a_fours), u32(b_fours), card->block_size()}) constants.push_back(v);
  }
  MOKA_TRY(recorder_of(recorder).dispatch(
      shader(), std::move(constants), {uses.a, uses.b, uses.bias, uses.addend, uses.c},
      ProductParams{AfterParams(now), has_of(bias && !divided, addend && !divided, now), p}, groups_of(groups())));
  if (divided) {
    uses.partial.written = false;
    const PartSums sums{floats, after, results(), tiles.parts, 1, p.bias_column == 1 ? p.columns : 1};
    return sums.record(recorder, uses.partial, all.bias, all.addend, all.c);
  }
  recorder_of(recorder).may_share(2);
  return {};
}

}  // namespace moka::devices::gpu
