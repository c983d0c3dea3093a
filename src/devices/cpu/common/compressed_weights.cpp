// SPDX-License-Identifier: Apache-2.0
#include "devices/cpu/common/compressed_weights.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <vector>

#include "base/bytes.h"
#include "base/half.h"
#include "devices/cpu/common/stored_value.h"
#include "devices/cpu/vector/widen.h"

namespace moka::devices::cpu {

namespace {

constexpr int64_t kLine = 64;

int64_t lines(int64_t bytes) { return (bytes + kLine - 1) / kLine * kLine; }

constexpr int64_t kTableEntries = vector::CodePanel::kEntries;
constexpr int64_t kManyColumns = 48;  // for which tables of rows and codes take less than float16
constexpr int64_t kRowGroup = 16;     // rows of a panel for which there is the number of their first value

/// Whether a table of this shape has at most kTableEntries entries for all rows, or for rows of whole vectors.
bool few_entries(const ir::Shape& table, int64_t columns) {
  const int last = table.rank() - 1;
  if (table[last] > kTableEntries || table.count() != table[0] * table[last]) return false;
  return table[0] == 1 || columns / table[0] % vector::widen().lanes == 0;
}

/// Whether there is a table for each place in a row, as of palettes whose entries are scaled across output channels.
bool has_row_tables(const ir::Shape& table, int64_t depth) {
  const int64_t entries = table[table.rank() - 1];
  return depth > 1 && table[0] == 1 && entries <= kTableEntries && table.count() == depth * entries;
}

int64_t set_bits(const uint8_t* bits, int64_t bytes) {
  int64_t n = 0;
  for (int64_t i = 0; i < bytes; i++) n += std::popcount(bits[i]);
  return n;
}

/// Whether integers or indices are in a form that stays codes.
bool stays_codes(const kernel::StoredConstant& stored, int64_t columns, int64_t depth) {
  const bool has_table = !stored.table.empty_handle(), has_scale = !stored.scale.empty_handle();
  if (stored.is_half || (!has_table && !has_scale)) return false;
  const ir::Tensor& elements = stored.elements;
  const int bits = ir::bits(elements.dtype());
  if (ir::is_float(elements.dtype()) || bits > 8 || (has_table && bits > 4)) return false;
  const ir::Shape& shape = elements.shape();
  if (shape.rank() < 2 || shape[0] != columns || shape.count() != columns * depth) return false;
  if (has_table && has_row_tables(stored.table.shape(), depth)) return !has_scale && columns >= kManyColumns;
  if (has_table && !few_entries(stored.table.shape(), columns)) return false;
  if (!has_scale) return true;
  const ir::Shape& blocks = stored.scale.shape();
  return blocks.count() == blocks[0] * blocks[1];
}

/// The values of integers of up to four bits, as a table.
ir::Tensor integer_table(ir::DType type, int rank) {
  ir::Shape shape;
  for (int i = 0; i < rank; i++) shape.push_back(1);
  const int codes = 1 << ir::bits(type);
  shape.push_back(codes);
  std::vector<float> values;
  for (int i = 0; i < codes; i++)
    values.push_back(static_cast<float>(ir::is_signed_integer(type) && i >= codes / 2 ? i - codes : i));
  return ir::Tensor::f32(shape, values);
}

}  // namespace

std::shared_ptr<const CompressedWeights> CompressedWeights::of(const MatchCall& m, int arg, int64_t columns,
                                                               int64_t depth, Precision precision, int64_t twice) {
  if (isa() == Isa::base) return nullptr;
  auto stored = m.stored_in_any_format(arg);
  if (!stored) return nullptr;
  auto w = std::make_shared<CompressedWeights>();
  w->depth_ = depth;
  if (stored->is_half && stored->nonzero) {
    const ir::Shape& shape = m.call.all_args()[static_cast<size_t>(arg)].type->shape();
    if (shape[0] != columns || shape.count() != columns * depth || 2 * *stored->nonzero > shape.count()) return nullptr;
    w->most_values_ = *stored->nonzero + twice * depth;
    w->stored_ = std::move(*stored);
    return w;
  }
  if (!stays_codes(*stored, columns, depth)) return nullptr;
  if (precision == Precision::wide) stored->rounding.reset();
  if (stored->rounding) stored->scale = stored->rounding->scale;
  const ir::Tensor& elements = stored->elements;
  const int bits = ir::bits(elements.dtype());
  w->bits_ = bits <= 2 ? bits : bits <= 4 ? 4 : 8;
  if (!stored->scale.empty_handle()) {
    const ir::Shape& blocks = stored->scale.shape();
    w->groups_ = blocks[1];
    w->scaled_columns_ = columns / blocks[0];
  }
  if (bits <= 4)
    w->table_ = stored->table.empty_handle() ? integer_table(elements.dtype(), elements.shape().rank()) : stored->table;
  if (w->has_tables()) {
    w->row_tables_ = has_row_tables(w->table_.shape(), depth);
    w->tables_ = w->row_tables_ ? depth : w->table_.shape()[0];
    w->table_columns_ = columns / w->table_.shape()[0];
  }
  w->integers_ = *stored;
  w->integers_.scale = w->integers_.offset = w->integers_.table = {};
  w->stored_ = std::move(*stored);
  return w;
}

int64_t CompressedWeights::row_groups() const { return (depth_ + kRowGroup - 1) / kRowGroup; }

size_t CompressedWeights::starts_at(int64_t padded) const { return static_cast<size_t>(lines(padded * depth_ / 8)); }

size_t CompressedWeights::values_at(int64_t padded) const {
  return starts_at(padded) + static_cast<size_t>(lines(padded / vector::widen().lanes * row_groups() * 4));
}

int64_t CompressedWeights::rows_of_bytes() const { return (depth_ + 8 / bits_ - 1) / (8 / bits_); }

size_t CompressedWeights::tables_at(int64_t padded) const {
  return static_cast<size_t>(lines(padded * rows_of_bytes()));
}

size_t CompressedWeights::scales_at(int64_t padded) const {
  return tables_at(padded) + (has_tables() ? static_cast<size_t>(tables_ * kTableEntries) * sizeof(float) : 0);
}

size_t CompressedWeights::factors_at(int64_t padded) const {
  const int64_t scales = stored_.scale.empty_handle() ? 0 : stored_.offset.empty_handle() ? 1 : 2;
  return scales_at(padded) + static_cast<size_t>(scales * padded * groups_) * sizeof(float);
}

size_t CompressedWeights::bytes(int64_t padded) const {
  if (has_mask()) return values_at(padded) + static_cast<size_t>(most_values_ * 2 + vector::MaskPanel::kReadable);
  return factors_at(padded) + (has_factor() ? static_cast<size_t>(padded) * sizeof(float) : 0);
}

void CompressedWeights::Packer::pack(int64_t column, int64_t wide, int64_t width, const PackPanel& pack) {
  if (of_.has_mask()) return pack_mask(column, width, pack);
  pack_codes(column, wide, width, pack);
  if (of_.row_tables_)
    pack_row_tables(wide, width, pack);
  else if (of_.has_tables())
    pack_tables(column, wide);
  pack_factors(column, wide, pack);
}

void CompressedWeights::Packer::pack_codes(int64_t column, int64_t wide, int64_t width, const PackPanel& pack) {
  const int64_t depth = of_.depth_, of_byte = 8 / of_.bits_;
  std::vector<float> from(static_cast<size_t>(wide * depth)), made(static_cast<size_t>(width * depth));
  stored_values(of_.integers_, column * depth, wide * depth, from.data());
  pack(from.data(), depth, made.data());
  auto* codes = reinterpret_cast<uint8_t*>(to_) + column * of_.rows_of_bytes();
  const unsigned mask = (1u << of_.bits_) - 1;
  for (int64_t k = 0; k < depth; k += of_byte, codes += width)
    for (int64_t i = 0; i < width; i++) {
      unsigned all = 0;
      for (int64_t row = std::min(of_byte, depth - k) - 1; row >= 0; row--)
        all = all << of_.bits_ |
              (static_cast<unsigned>(static_cast<int>(made[static_cast<size_t>((k + row) * width + i)])) & mask);
      codes[i] = static_cast<uint8_t>(all);
    }
}

void CompressedWeights::Packer::copy_table(int64_t from, int64_t to) {
  const ir::Shape& shape = of_.table_.shape();
  const int64_t entries = shape[shape.rank() - 1], codes = int64_t{1} << of_.bits_;
  const float* table = of_.table_.as<float>().data() + from * entries;
  float* at = reinterpret_cast<float*>(to_ + of_.tables_at(padded_)) + to * kTableEntries;
  for (int64_t i = 0; i < kTableEntries; i++) at[i] = i % codes < entries ? table[i % codes] : 0;
}

void CompressedWeights::Packer::pack_tables(int64_t column, int64_t wide) {
  for (int64_t t = column / of_.table_columns_; t <= (column + wide - 1) / of_.table_columns_; t++) copy_table(t, t);
}

/// Panels may have other orders of rows than the constant. They show by packing the numbers of rows.
void CompressedWeights::Packer::pack_row_tables(int64_t wide, int64_t width, const PackPanel& pack) {
  const int64_t depth = of_.depth_;
  std::vector<float> from(static_cast<size_t>(wide * depth)), made(static_cast<size_t>(width * depth));
  for (int64_t i = 0; i < wide * depth; i++) from[static_cast<size_t>(i)] = static_cast<float>(i % depth);
  pack(from.data(), depth, made.data());
  for (int64_t k = 0; k < depth; k++) copy_table(static_cast<int64_t>(made[static_cast<size_t>(k * width)]), k);
}

void CompressedWeights::Packer::pack_factors(int64_t column, int64_t wide, const PackPanel& pack) {
  const int64_t groups = of_.groups_;
  std::vector<float> from(static_cast<size_t>(wide * groups));
  auto* to = reinterpret_cast<float*>(to_ + of_.scales_at(padded_));
  for (const ir::Tensor* t : {&of_.stored_.scale, &of_.stored_.offset}) {
    if (t->empty_handle()) continue;
    const float* values = t->as<float>().data();
    for (int64_t i = 0; i < wide; i++)
      std::copy_n(values + (column + i) / of_.scaled_columns_ * groups, groups, from.data() + i * groups);
    pack(from.data(), groups, to + column * groups);
    to += padded_ * groups;
  }
  if (!of_.has_factor()) return;
  std::copy_n(of_.stored_.rounding->factor.as<float>().data() + column, wide, from.data());
  pack(from.data(), 1, reinterpret_cast<float*>(to_ + of_.factors_at(padded_)) + column);
}

void CompressedWeights::Packer::pack_mask(int64_t column, int64_t width, const PackPanel& pack) {
  const int64_t depth = of_.depth_;
  std::vector<float> made(static_cast<size_t>(width * depth));
  pack(value_ + column * depth, depth, made.data());
  auto* mask = reinterpret_cast<uint8_t*>(to_) + column * depth / 8;
  auto* starts =
      reinterpret_cast<uint32_t*>(to_ + of_.starts_at(padded_)) + column / vector::widen().lanes * of_.row_groups();
  auto* values = reinterpret_cast<uint16_t*>(to_ + of_.values_at(padded_));
  std::fill_n(mask, width * depth / 8, uint8_t{0});
  for (int64_t i = 0; i < width * depth; i++) {
    if (i % (width * kRowGroup) == 0) *starts++ = static_cast<uint32_t>(values_);
    const float v = made[static_cast<size_t>(i)];
    if (std::bit_cast<uint32_t>(v) == 0) continue;
    mask[i / 8] = static_cast<uint8_t>(mask[i / 8] | 1 << i % 8);
    values[values_++] = half::from_float(v);
  }
  std::memset(values + values_, 0, vector::MaskPanel::kReadable);
}

void CompressedWeights::Packer::values(int64_t first, int64_t n, float* to) const {
  if (of_.has_mask())
    std::copy_n(value_ + first, n, to);
  else
    stored_values(of_.stored_, first, n, to);
  if (of_.has_mask() || !of_.stored_.rounding) return;
  const float* factor = of_.has_factor() ? of_.stored_.rounding->factor.as<float>().data() : nullptr;
  for (int64_t i = 0; i < n; i++) {
    to[i] = half::to_float(half::from_float(to[i]));
    if (factor != nullptr) to[i] *= factor[(first + i) / of_.depth_];
  }
}

void CompressedWeights::widen(const std::byte* packed, int64_t column, int64_t width, int64_t padded, int64_t first,
                              int64_t rows, float* to) const {
  const int64_t lanes = vector::widen().lanes;
  if (has_mask()) {
    const auto* mask = reinterpret_cast<const uint8_t*>(packed) + (column * depth_ + first * width) / 8;
    const int64_t group = first / kRowGroup, skipped = first % kRowGroup * width / 8;
    const auto* starts = reinterpret_cast<const uint32_t*>(packed + starts_at(padded)) + column / lanes * row_groups();
    const auto* values = reinterpret_cast<const uint16_t*>(packed + values_at(padded));
    return vector::widen().masked({.mask = mask,
                                   .values = values + starts[group] + set_bits(mask - skipped, skipped),
                                   .vectors = rows * width / lanes},
                                  to);
  }
  vector::CodePanel panel{
      .codes = reinterpret_cast<const uint8_t*>(packed) + column * rows_of_bytes() + first / (8 / bits_) * width,
      .bits = bits_,
      .is_signed = ir::is_signed_integer(stored_.elements.dtype()),
      .depth = rows,
      .width = width,
      .first = first};
  const auto* table = reinterpret_cast<const float*>(packed + tables_at(padded));
  if (row_tables_) panel.row_tables = table + first * kTableEntries;
  for (int64_t i = 0; i < width / lanes && has_tables() && !row_tables_; i++)
    panel.tables[i] = table + std::min((column + i * lanes) / table_columns_, tables_ - 1) * kTableEntries;
  if (!stored_.scale.empty_handle()) {
    panel.scale = reinterpret_cast<const float*>(packed + scales_at(padded)) + column * groups_;
    if (!stored_.offset.empty_handle()) panel.offset = panel.scale + padded * groups_;
    panel.block = depth_ / groups_;
    panel.rounds = stored_.rounding.has_value();
    if (has_factor()) panel.factor = reinterpret_cast<const float*>(packed + factors_at(padded)) + column;
  }
  vector::widen().codes(panel, to);
}

float CompressedWeights::masked(const std::byte* packed, int64_t column, int64_t width, int64_t padded, int64_t row,
                                int64_t lane) const {
  const auto* mask = reinterpret_cast<const uint8_t*>(packed) + column * depth_ / 8;
  const int64_t at = row * width + lane, begin = row / kRowGroup * kRowGroup * width;
  if ((mask[at / 8] >> at % 8 & 1) == 0) return 0;
  const auto* starts =
      reinterpret_cast<const uint32_t*>(packed + starts_at(padded)) + column / vector::widen().lanes * row_groups();
  const int64_t before = set_bits(mask + begin / 8, (at - begin) / 8) +
                         std::popcount(static_cast<unsigned>(mask[at / 8] & ((1 << at % 8) - 1)));
  return half::to_float(
      reinterpret_cast<const uint16_t*>(packed + values_at(padded))[starts[row / kRowGroup] + before]);
}

Result<std::shared_ptr<const std::byte>> CompressedWeights::packed(
    kernel::PrepareContext& context, int arg, std::string_view key, int64_t padded, size_t bytes,
    const std::function<void(Packer& packer, std::byte* to)>& fill) const {
  if (has_mask())
    return context.pack(arg, cat(key, " as mask"), bytes, [&](const ir::TensorView& value, std::byte* to) -> Status {
      Packer packer(*this, padded, value.as<float>(), to);
      fill(packer, to);
      return {};
    });
  return context.pack_stored(arg, cat(key, " as integers"), bytes, [&](std::byte* to) -> Status {
    read_ahead(stored_.elements.data(), stored_.elements.bytes());
    Packer packer(*this, padded, nullptr, to);
    fill(packer, to);
    drop_pages(stored_.elements.data(), stored_.elements.bytes());
    return {};
  });
}

}  // namespace moka::devices::cpu
