// SPDX-License-Identifier: Apache-2.0
#include "devices/gpu/common/packed_rows.h"

#include "ops/common/packed.h"

namespace moka::devices::gpu {

namespace {

struct PackedParams {
  AfterParams after;
  uint32_t has;
  uint32_t rows, columns, depth, words, scale_rows, scale_depth, scale_groups, offset_first, table_first, table_rows,
      table_entries;
};

/// Whether there are too few rows for tiles or blocks.
bool is_narrow(int64_t rows) { return rows <= 4; }

}  // namespace

std::shared_ptr<PackedRows> PackedRows::of(const MatchCall& m, int arg, bool transposed, std::string& refusal) {
  auto no = [&](std::string why) {
    refusal = std::move(why);
    return nullptr;
  };
  auto stored = m.stored(arg);
  if (!stored || stored->is_half) return no("weights that are not read as stored");
  const ir::Shape& shape = m.call.all_args()[static_cast<size_t>(arg)].type->shape();
  const ir::DType codes = stored->elements.dtype();
  if (ir::is_float(codes) || ir::bits(codes) > 8) return no(cat("weights of ", codes));
  auto r = std::make_shared<PackedRows>();
  const int row_axis = transposed ? 1 : 0, depth_axis = 1 - row_axis;
  r->card_ = &features_of(m);
  r->arg_ = arg;
  r->transposed_ = transposed;
  r->bits_ = ir::bits(codes) <= 4 ? 4 : 8;
  r->count_ = shape[row_axis];
  r->depth_ = transposed ? shape[0] : shape.count(1, shape.rank());
  if (r->count_ == 0 || r->depth_ == 0) return no("empty weights");
  const int64_t in_word = 32 / r->bits_;
  r->words_ = (r->depth_ + in_word - 1) / in_word;
  if (!stored->table.empty_handle()) {
    const ir::Shape& s = stored->table.shape();
    r->tables_ = s[row_axis];
    r->table_rows_ = r->count_ / r->tables_;
    r->entries_ = s[shape.rank()];
    if (s.count() != r->tables_ * r->entries_) return no("palettes along rows");
  }
  r->scale_rows_ = r->count_;
  r->scale_depth_ = r->depth_;
  if (!stored->scale.empty_handle()) {
    const ir::Shape& s = stored->scale.shape();
    r->scale_rows_ = r->count_ / s[row_axis];
    r->scale_groups_ = s[depth_axis];
    r->scale_depth_ = r->depth_ / s[depth_axis];
    r->scales_ = s.count();
    if (s.count() != s[0] * s[1]) return no("scales along a window");
    if (r->scale_groups_ > 1 && r->scale_depth_ % in_word != 0) return no("blocks of an odd size");
  }
  r->stored_ = std::move(*stored);
  return r;
}

std::string PackedRows::describe() const {
  std::string text = cat(stored_.elements.dtype());
  if (tables_ > 0) text += " of a palette";
  if (scale_groups_ > 1) text += cat(" in blocks of ", scale_depth_);
  return text;
}

size_t PackedRows::parameter_count() const {
  const int64_t offsets = stored_.offset.empty_handle() ? 0 : scales_;
  return static_cast<size_t>(std::max<int64_t>(1, scales_ + offsets + tables_ * entries_));
}

/// Scales and offsets, row-major by rows, then tables.
void PackedRows::write_parameters(float* to) const {
  to[0] = 0;
  for (const ir::Tensor* t : {&stored_.scale, &stored_.offset}) {
    if (t->empty_handle()) continue;
    const float* from = t->as<float>().data();
    const int64_t rows = scales_ / scale_groups_;
    for (int64_t r = 0; r < rows; r++)
      for (int64_t g = 0; g < scale_groups_; g++) *to++ = from[transposed_ ? g * rows + r : r * scale_groups_ + g];
  }
  if (tables_ > 0) std::copy_n(stored_.table.as<float>().data(), tables_ * entries_, to);
}

Status PackedRows::write_codes(uint32_t* to) const {
  std::fill_n(to, count_ * words_, 0u);
  const ir::TensorView all = stored_.elements.view();
  const int64_t in_word = 32 / bits_, lines = all.shape[0], line = all.count() / lines;
  const uint32_t mask = (1u << bits_) - 1;
  std::vector<float> codes(static_cast<size_t>(line));
  for (int64_t l = 0; l < lines; l++) {
    ops::load_floats(all, l * line, line, codes.data());
    for (int64_t i = 0; i < line; i++) {
      const int64_t row = transposed_ ? i : l, k = transposed_ ? l : i;
      const auto code = static_cast<uint32_t>(static_cast<int32_t>(codes[static_cast<size_t>(i)])) & mask;
      to[row * words_ + k / in_word] |= code << (k % in_word * bits_);
    }
  }
  return {};
}

void PackedRows::prepare_in(KernelChoice& c, std::shared_ptr<PackedRows> self) {
  c.in_prepare_only[static_cast<size_t>(arg_)] = true;
  c.note = describe();
  c.prepare = [self, before = std::move(c.prepare)](PrepareContext& context) -> Status {
    if (before) MOKA_TRY(before(context));
    const std::string key = cat("packed", self->transposed_ ? " columns" : " rows");
    const auto bytes = static_cast<size_t>(self->count_ * self->words_ * 4);
    self->codes_ = MOKA_TRY(context.upload_stored(self->arg_, key, bytes, [&](std::byte* to) -> Status {
      return self->write_codes(reinterpret_cast<uint32_t*>(to));
    }));
    self->parameters_ = MOKA_TRY(context.upload_stored(self->arg_, cat(key, " parameters"), self->parameter_count() * 4,
                                                       [&](std::byte* to) -> Status {
                                                         self->write_parameters(reinterpret_cast<float*>(to));
                                                         return {};
                                                       }));
    return {};
  };
}

std::array<int64_t, 3> PackedRows::groups(int64_t rows) const {
  const int64_t each = card_->rows_of_group();
  if (is_narrow(rows)) return {(count_ + each - 1) / each, rows, 1};
  return card_->shares_tiles() ? tiles_of(*card_, rows, count_, 1, depth_).groups
                               : product_blocks(*card_, rows, count_, 1);
}

std::string PackedRows::refusal(int64_t rows) const { return card_->refusal_of_groups(groups(rows)); }

Status PackedRows::record(Recorder& recorder, Element floats, const After& after, int64_t rows, const Use& x,
                          const Use& bias, const Use& addend, const Use& y) const {
  const bool biased = bias.buffer != nullptr, added = addend.buffer != nullptr;
  const bool is_signed = stored_.elements.dtype() == ir::DType::int8 || stored_.elements.dtype() == ir::DType::int4;
  const int64_t offsets = stored_.offset.empty_handle() ? 0 : scales_;
  auto constants = after.constants({static_cast<uint32_t>(bits_), is_signed, tables_ > 0, scales_ > 0, offsets > 0});
  std::string stem = "matmul_packed";
  if (is_narrow(rows)) {
    stem = lanes_name(*card_, "gemv_packed");
  } else if (card_->shares_tiles()) {
    constants = tiles_of(*card_, rows, count_, 1, depth_).constants(std::move(constants));
  } else {
    stem = "matmul_packed_block";
    const bool fours = depth_ % 4 == 0 && x.offset % (4 * x.element) == 0;
    for (uint32_t v : {u32(fours), card_->block_size()}) constants.push_back(v);
  }
  MOKA_TRY(recorder_of(recorder).dispatch(
      shader_name(stem, floats), std::move(constants),
      {x, Use::read(codes_, 4), Use::read(parameters_, 4), biased ? bias : x.unused(), added ? addend : x.unused(), y},
      PackedParams{AfterParams(after), has_of(biased, added, after), u32(rows), u32(count_), u32(depth_), u32(words_),
                   u32(scale_rows_), u32(scale_depth_), u32(scale_groups_), u32(scales_), u32(scales_ + offsets),
                   u32(table_rows_), u32(entries_)},
      groups_of(groups(rows))));
  recorder_of(recorder).may_share(5);
  return {};
}

}  // namespace moka::devices::gpu
