// SPDX-License-Identifier: Apache-2.0
#include "devices/cpu/common/stored_rows.h"

#include <cmath>
#include <cstring>
#include <optional>

#include "base/bytes.h"
#include "base/half.h"
#include "ops/common/nn_weights.h"
#include "ops/common/packed.h"

namespace moka::devices::cpu {

using ir::DType;
using vector::bits_of;
using vector::Encoding;

namespace {

constexpr int64_t kSpare = 16;  // floats after the scales that vectors may read

std::optional<Encoding> encoding_of(const kernel::StoredConstant& s) {
  if (!s.table.empty_handle()) {
    switch (bits(s.elements.dtype())) {
      case 1: return Encoding::table1;
      case 2: return Encoding::table2;
      case 3:
      case 4: return Encoding::table4;
      default: return Encoding::fp16;
    }
  }
  switch (s.elements.dtype()) {
    case DType::fp32: return Encoding::fp32;
    case DType::fp16: return Encoding::fp16;
    case DType::int8: return Encoding::int8;
    case DType::uint8: return Encoding::uint8;
    case DType::int4: return Encoding::int4;
    case DType::uint4: return Encoding::uint4;
    default: return std::nullopt;
  }
}

bool every(const ir::Tensor& t, bool (*holds)(float)) {
  for (float v : t.as<float>())
    if (!holds(v)) return false;
  return true;
}

}  // namespace

std::shared_ptr<StoredRows> StoredRows::of(const MatchCall& m, int arg, bool transposed, std::string& refusal) {
  auto no = [&](std::string why) {
    refusal = std::move(why);
    return nullptr;
  };
  auto stored = m.stored_in_any_format(arg);
  if (!stored) return no("weights that are not read as stored");
  const ir::Shape& shape = m.call.all_args()[static_cast<size_t>(arg)].type->shape();
  if (shape.rank() != 2) return no("weights that are not a matrix");
  const auto encoding = stored->is_half ? Encoding::fp16 : encoding_of(*stored);
  if (!encoding) return no(cat("weights of ", stored->elements.dtype()));
  if (stored->in_network_format && *encoding == Encoding::fp32) return no("unaligned weights of fp32");
  const int row_axis = transposed ? 1 : 0, depth_axis = 1 - row_axis;
  auto r = std::make_shared<StoredRows>();
  r->arg_ = arg;
  r->transposed_ = transposed;
  r->count_ = shape[row_axis];
  r->depth_ = shape[depth_axis];
  if (r->count_ == 0 || r->depth_ == 0) return no("empty weights");
  const int64_t chunk = bits_of(*encoding) < 8 ? vector::chunk_of(*encoding) : 1;
  r->rows_.encoding = *encoding;
  r->rows_.depth = (r->depth_ + chunk - 1) / chunk * chunk;
  r->rows_.step = r->rows_.depth * bits_of(*encoding) / 8;
  const bool table = !stored->table.empty_handle();
  const bool expanded = table && *encoding == Encoding::fp16;
  if (table) {
    const ir::Shape& s = stored->table.shape();
    if (!every(stored->table, [](float v) { return std::isfinite(v); })) return no("a palette that is not finite");
    if (expanded && !every(stored->table, [](float v) { return static_cast<float>(half(v)) == v; }))
      return no("a large palette of fp32");
    if (!expanded && s[depth_axis] != 1) return no("palettes along rows");
    r->tables_ = s[row_axis];
    r->rows_.table_rows = r->count_ / s[row_axis];
  }
  if (!stored->scale.empty_handle()) {
    const ir::Shape& s = stored->scale.shape();
    r->rows_.group_rows = r->count_ / s[row_axis];
    r->rows_.groups = s[depth_axis];
    r->scales_ = s.count();
    if (r->rows_.groups > 1 && r->rows_.depth != r->depth_) return no("blocks in rows that need padding");
    if (!vector::takes_groups(*encoding, r->depth_, r->rows_.groups)) return no("blocks of an odd size");
    if (!stored->offset.empty_handle() && (table || *encoding == Encoding::fp16 || *encoding == Encoding::fp32))
      return no("offsets of values");
  }
  r->as_stored_ = !stored->is_half && !stored->in_network_format && !transposed && !expanded &&
                  r->rows_.depth == r->depth_ && bits(stored->elements.dtype()) == bits_of(*encoding);
  r->stored_ = std::move(*stored);
  return r;
}

std::string StoredRows::describe() const {
  if (stored_.is_half) return "fp16 of another form, packed";
  std::string text = cat(stored_.elements.dtype());
  if (!stored_.table.empty_handle()) text += " of a palette";
  if (rows_.groups > 1) text += cat(" in blocks of ", depth_ / rows_.groups);
  if (!as_stored_) text += ", packed";
  return text;
}

size_t StoredRows::parameter_floats() const {
  const int64_t scales = stored_.scale.empty_handle() ? 0 : scales_ + kSpare,
                offsets = stored_.offset.empty_handle() ? 0 : scales_ + kSpare,
                tables = bits_of(rows_.encoding) < 8 && tables_ > 0 ? tables_ * 16 : 0;
  return static_cast<size_t>(scales + offsets + tables);
}

/// Scales, offsets and tables, each row-major by rows.
void StoredRows::write_parameters(float* to) const {
  for (const ir::Tensor* t : {&stored_.scale, &stored_.offset}) {
    if (t->empty_handle()) continue;
    const float* from = t->as<float>().data();
    const int64_t row_groups = scales_ / rows_.groups;
    for (int64_t r = 0; r < row_groups; r++)
      for (int64_t g = 0; g < rows_.groups; g++)
        to[r * rows_.groups + g] = from[transposed_ ? g * row_groups + r : r * rows_.groups + g];
    std::fill_n(to + scales_, kSpare, 0.0f);
    to += scales_ + kSpare;
  }
  if (bits_of(rows_.encoding) >= 8 || tables_ == 0) return;
  const int64_t entries = stored_.table.count() / tables_;
  const float* from = stored_.table.as<float>().data();
  for (int64_t t = 0; t < tables_; t++)
    for (int64_t i = 0; i < 16; i++) *to++ = from[t * entries + i % entries];
}

const float* StoredRows::value_table(int64_t row, int64_t k) const {
  const ir::Shape& s = stored_.table.shape();
  const int64_t in_row = s[transposed_ ? 0 : 1];
  const int64_t at_row = row / rows_.table_rows, at_k = k / (depth_ / in_row);
  return stored_.table.as<float>().data() + (transposed_ ? at_k * s[1] + at_row : at_row * in_row + at_k) * s[2];
}

void StoredRows::write_elements(std::byte* to) const {
  const ir::TensorView from = stored_.elements.view();
  const int width = bits(from.dtype), bits = bits_of(rows_.encoding);
  const auto* packed = from.as<uint8_t>();
  std::memset(to, 0, static_cast<size_t>(count_ * rows_.step));
  std::vector<uint8_t> line(static_cast<size_t>(transposed_ ? count_ : depth_));
  auto* bytes = reinterpret_cast<uint8_t*>(to);
  auto put = [&](int64_t row, int64_t k, uint8_t value) {
    auto* at = bytes + row * rows_.step;
    if (rows_.encoding == Encoding::fp16) {
      const uint16_t h = half::from_float(value_table(row, k)[value]);
      std::memcpy(at + k * 2, &h, 2);
    } else if (bits == 8) {
      at[k] = value;
    } else {
      at[k * bits / 8] = static_cast<uint8_t>(at[k * bits / 8] | value << (k * bits % 8));
    }
  };
  const int64_t outer = transposed_ ? depth_ : count_, inner = transposed_ ? count_ : depth_;
  for (int64_t o = 0; o < outer; o++) {
    if (width > 8) {
      const int64_t size = width / 8;
      if (!transposed_) {
        std::memcpy(bytes + o * rows_.step, packed + o * inner * size, static_cast<size_t>(inner * size));
        continue;
      }
      for (int64_t i = 0; i < inner; i++)
        std::memcpy(bytes + i * rows_.step + o * size, packed + (o * inner + i) * size, static_cast<size_t>(size));
      continue;
    }
    (stored_.in_network_format ? ops::unpack_high_first : ops::unpack_bits)(packed, width, o * inner, inner,
                                                                            line.data());
    for (int64_t i = 0; i < inner; i++) put(transposed_ ? i : o, transposed_ ? o : i, line[static_cast<size_t>(i)]);
  }
}

void StoredRows::write_halves(const float* from, uint16_t* to) const {
  if (!transposed_) return float_to_half(from, to, static_cast<size_t>(count_ * depth_));
  for (int64_t k = 0; k < depth_; k++)
    for (int64_t r = 0; r < count_; r++) to[r * depth_ + k] = half::from_float(from[k * count_ + r]);
}

Status StoredRows::prepare(kernel::PrepareContext& context, bool all_rows) {
  const std::string key = transposed_ ? "columns" : "rows";
  if (stored_.is_half) {
    packed_ = MOKA_TRY(context.pack(arg_, key + " of halves", static_cast<size_t>(count_ * rows_.step),
                                    [&](const ir::TensorView& value, std::byte* to) -> Status {
                                      write_halves(value.as<float>(), reinterpret_cast<uint16_t*>(to));
                                      return {};
                                    }));
    rows_.data = packed_.get();
    return {};
  }
  rows_.data = static_cast<const std::byte*>(stored_.elements.data());
  if (as_stored_) {
    if (all_rows) read_ahead(stored_.elements.data(), stored_.elements.bytes());
  } else {
    packed_ =
        MOKA_TRY(context.pack_stored(arg_, key, static_cast<size_t>(count_ * rows_.step), [&](std::byte* to) -> Status {
          write_elements(to);
          return {};
        }));
    rows_.data = packed_.get();
  }
  if (const size_t n = parameter_floats(); n > 0) {
    parameters_ =
        MOKA_TRY(context.pack_stored(arg_, key + " parameters", n * sizeof(float), [&](std::byte* to) -> Status {
          write_parameters(reinterpret_cast<float*>(to));
          return {};
        }));
    const auto* at = reinterpret_cast<const float*>(parameters_.get());
    auto next = [&](const ir::Tensor& t) -> const float* {
      if (t.empty_handle()) return nullptr;
      at += scales_ + kSpare;
      return at - scales_ - kSpare;
    };
    rows_.scale = next(stored_.scale);
    rows_.offset = next(stored_.offset);
    rows_.table = bits_of(rows_.encoding) < 8 && tables_ > 0 ? at : nullptr;
  }
  if (!as_stored_) stored_.elements = {};
  stored_.scale = stored_.offset = {};
  return {};
}

void StoredRows::decode(int64_t row, float* to) const {
  const std::byte* p = rows_.data + row * rows_.step;
  const auto* bytes = reinterpret_cast<const uint8_t*>(p);
  const int bits = bits_of(rows_.encoding);
  if (rows_.encoding == Encoding::fp32) {
    std::memcpy(to, p, static_cast<size_t>(depth_) * sizeof(float));
  } else if (rows_.encoding == Encoding::fp16) {
    half_to_float(reinterpret_cast<const uint16_t*>(p), to, static_cast<size_t>(depth_));
  } else {
    const float* table = rows_.table == nullptr ? nullptr : rows_.table + row / rows_.table_rows * 16;
    const int flip = rows_.encoding == Encoding::int4 ? 8 : 0;
    for (int64_t k = 0; k < depth_; k++) {
      const int value = bytes[k * bits / 8] >> (k * bits % 8) & ((1 << bits) - 1);
      to[k] = table != nullptr                   ? table[value]
              : rows_.encoding == Encoding::int8 ? static_cast<float>(static_cast<int8_t>(value))
                                                 : static_cast<float>((value ^ flip) - flip);
    }
  }
  if (rows_.scale == nullptr) return;
  const int64_t group = row / rows_.group_rows * rows_.groups, block = depth_ / rows_.groups;
  for (int64_t k = 0; k < depth_; k++) {
    const int64_t at = group + k / block;
    to[k] = (to[k] - (rows_.offset == nullptr ? 0.0f : rows_.offset[at])) * rows_.scale[at];
  }
}

}  // namespace moka::devices::cpu
