#include "devices/cpu/common/byte_weights.h"

#include <algorithm>
#include <vector>

#include "base/bytes.h"
#include "devices/cpu/common/stored_value.h"
#include "devices/cpu/vector/widen.h"

namespace moka::devices::cpu {

namespace {

constexpr int64_t kLine = 64;

int64_t lines(int64_t bytes) { return (bytes + kLine - 1) / kLine * kLine; }

constexpr int64_t kTableEntries = vector::BytePanel::kEntries;

/// Whether a table of this shape has at most kTableEntries entries for all rows, or for rows of whole vectors.
bool few_entries(const ir::Shape& table, int64_t columns) {
  const int last = table.rank() - 1;
  if (table[last] > kTableEntries || table.count() != table[0] * table[last]) return false;
  return table[0] == 1 || columns / table[0] % vector::widen().lanes == 0;
}

}  // namespace

std::shared_ptr<const ByteWeights> ByteWeights::of(const MatchCall& m, int arg, int64_t columns, int64_t depth) {
  if (isa() == Isa::base) return nullptr;
  auto stored = m.stored_in_any_format(arg);
  if (!stored || stored->is_half || stored->table.empty_handle() == stored->scale.empty_handle()) return nullptr;
  const ir::Tensor &elements = stored->elements, &scale = stored->scale;
  if (ir::is_float(elements.dtype()) || ir::bits(elements.dtype()) > 8) return nullptr;
  const bool has_table = scale.empty_handle();
  if (has_table && !few_entries(stored->table.shape(), columns)) return nullptr;
  const ir::Shape &shape = elements.shape(), &blocks = has_table ? stored->table.shape() : scale.shape();
  if (shape.rank() < 2 || shape[0] != columns || shape.count() != columns * depth) return nullptr;
  if (!has_table && blocks.count() != blocks[0] * blocks[1]) return nullptr;
  auto w = std::make_shared<ByteWeights>();
  w->depth_ = depth;
  w->groups_ = blocks[1];
  w->same_columns_ = columns / blocks[0];
  w->integers_ = *stored;
  w->integers_.scale = w->integers_.offset = w->integers_.table = {};
  w->stored_ = std::move(*stored);
  return w;
}

size_t ByteWeights::bytes(int64_t padded) const {
  if (has_tables())
    return static_cast<size_t>(lines(padded * depth_)) + static_cast<size_t>(tables() * kTableEntries) * sizeof(float);
  const int64_t tables = stored_.offset.empty_handle() ? 1 : 2;
  return static_cast<size_t>(lines(padded * depth_)) + static_cast<size_t>(tables * padded * groups_) * sizeof(float);
}

void ByteWeights::pack(int64_t column, int64_t wide, int64_t width, int64_t padded, const PackPanel& pack,
                       std::byte* to) const {
  std::vector<float> from(static_cast<size_t>(wide * depth_)), made(static_cast<size_t>(width * depth_));
  stored_values(integers_, column * depth_, wide * depth_, from.data());
  pack(from.data(), depth_, made.data());
  auto* codes = reinterpret_cast<uint8_t*>(to) + column * depth_;
  for (int64_t i = 0; i < width * depth_; i++)
    codes[i] = static_cast<uint8_t>(static_cast<int>(made[static_cast<size_t>(i)]));
  auto* table = reinterpret_cast<float*>(to + lines(padded * depth_));
  if (has_tables()) {
    const int64_t entries = stored_.table.shape()[stored_.table.shape().rank() - 1];
    for (int64_t t = column / same_columns_; t <= (column + wide - 1) / same_columns_; t++) {
      std::copy_n(stored_.table.as<float>().data() + t * entries, entries, table + t * kTableEntries);
      std::fill_n(table + t * kTableEntries + entries, kTableEntries - entries, 0.0f);
    }
    return;
  }
  for (const ir::Tensor* t : {&stored_.scale, &stored_.offset}) {
    if (t->empty_handle()) continue;
    const float* values = t->as<float>().data();
    for (int64_t i = 0; i < wide; i++)
      std::copy_n(values + (column + i) / same_columns_ * groups_, groups_, from.data() + i * groups_);
    pack(from.data(), groups_, table + column * groups_);
    table += padded * groups_;
  }
}

void ByteWeights::widen(const std::byte* packed, int64_t column, int64_t width, int64_t padded, int64_t first,
                        int64_t rows, float* to) const {
  const auto* table = reinterpret_cast<const float*>(packed + lines(padded * depth_));
  vector::BytePanel panel{.codes = reinterpret_cast<const uint8_t*>(packed) + column * depth_ + first * width,
                          .is_signed = ir::is_signed_integer(stored_.elements.dtype()),
                          .depth = rows,
                          .width = width,
                          .first = first};
  if (has_tables()) {
    const int64_t lanes = vector::widen().lanes;
    for (int64_t i = 0; i < width / lanes; i++)
      panel.tables[i] = table + std::min((column + i * lanes) / same_columns_, tables() - 1) * kTableEntries;
  } else {
    panel.scale = table + column * groups_;
    if (!stored_.offset.empty_handle()) panel.offset = panel.scale + padded * groups_;
    panel.block = depth_ / groups_;
  }
  vector::widen().bytes(panel, to);
}

Result<std::shared_ptr<const std::byte>> ByteWeights::packed(kernel::PrepareContext& context, int arg,
                                                             std::string_view key, size_t bytes,
                                                             const std::function<void(std::byte* to)>& fill) const {
  return context.pack_stored(arg, cat(key, " as integers"), bytes, [&](std::byte* to) -> Status {
    read_ahead(stored_.elements.data(), stored_.elements.bytes());
    fill(to);
    drop_pages(stored_.elements.data(), stored_.elements.bytes());
    return {};
  });
}

void ByteWeights::values(int64_t first, int64_t n, float* to) const { stored_values(stored_, first, n, to); }

}  // namespace moka::devices::cpu
