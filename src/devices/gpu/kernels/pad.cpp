// SPDX-License-Identifier: Apache-2.0
#include "devices/gpu/common/copies.h"
#include "devices/gpu/kernels/family.h"
#include "ops/common/pixel_blocks.h"

namespace moka::devices::gpu {

namespace {

/// The margins around a tensor, the innermost dimension first; dimensions without margins are merged.
struct Margins {
  static constexpr size_t kRank = 6;
  struct Params {
    uint32_t count = 1, constant = 0;
    std::array<int32_t, kRank> size{1, 1, 1, 1, 1, 1}, before{}, extent{1, 1, 1, 1, 1, 1};
  };
  Params params;
  uint32_t rank = 0;
  bool fits = true;

  /// Adds a dimension; calls go from the innermost dimension outwards.
  void add(int64_t extent, int64_t before, int64_t after) {
    params.count *= u32(extent + before + after);
    const bool plain = before == 0 && after == 0;
    if (plain && rank > 0 && plain_) {
      params.size[rank - 1] *= static_cast<int32_t>(extent);
      params.extent[rank - 1] *= static_cast<int32_t>(extent);
      return;
    }
    plain_ = plain;
    if (rank == kRank) {
      fits = false;
      return;
    }
    params.size[rank] = static_cast<int32_t>(extent + before + after);
    params.before[rank] = static_cast<int32_t>(before);
    params.extent[rank++] = static_cast<int32_t>(extent);
  }
  Status record(Recorder& recorder, uint32_t mode, Element e, const Use& x, const Use& y) const {
    return recorder_of(recorder).dispatch(e == Element::f16 ? "pad_u16" : "pad_u32", {mode, std::max(rank, 1u)}, {x, y},
                                          params, CommandRecorder::lines(params.count));
  }

 private:
  bool plain_ = false;
};

Match match_pad(const MatchCall& m) {
  if (std::string why = refusal_of_floats(m, {"x"}); !why.empty()) return Match::no(why);
  const ir::TensorView* pad = m.call.value("pad");
  const auto mode = m.call.text("mode");
  if (pad == nullptr || !mode.ok()) return Match::no("margins that are known only while running");
  const uint32_t number = *mode == "constant" ? PAD_CONSTANT : *mode == "reflect" ? PAD_REFLECT : PAD_REPLICATE;
  const ir::Shape &x = m.call.shape("x"), &y = m.outputs[0].shape();
  Margins margins;
  int64_t entry = pad->count();
  for (int i = x.rank() - 1; i >= 0; i--, entry -= 2) {
    const int64_t before = entry >= 2 ? ir::load_i64(*pad, entry - 2) : 0;
    const int64_t after = entry >= 2 ? ir::load_i64(*pad, entry - 1) : 0;
    if (x[i] + before + after != y[i]) return Match::no("another shape than planned");
    margins.add(x[i], before, after);
  }
  if (!margins.fits) return Match::no("margins of more than 6 dimensions");
  const Element e = moved_element(m, "x");
  if (number == PAD_CONSTANT) {
    const ir::TensorView* value = m.call.value("constant_val");
    if (value == nullptr) return Match::no("a constant that is known only while running");
    margins.params.constant = bits_of(ir::load_f64(*value, 0), e);
  }
  const int in = m.call.arg_index("x");
  KernelChoice c = choice_of(m, "pad", {"x"}, e);
  set_cost(c, m);
  c.record = [=](Recorder& recorder, const RecordArgs& args) {
    return margins.record(recorder, number, e, Use::read(view(args.in, in)), Use::write(args.out[0]));
  };
  return Match::yes(std::move(c));
}

/// The copy of space_to_batch (`to_batch`) and batch_to_space, between x, [n, c, h, w], and its blocks,
/// [position y, position x, n, c, h / block, w / block].
GridCopy blocks_copy(const ir::Shape& x, const int64_t (&block)[2], bool to_batch) {
  const auto pixels = x.strides();
  const ir::Shape part{x[0], x[1], x[2] / block[0], x[3] / block[1]};
  const auto blocks = part.strides();
  GridCopy copy;
  const auto add = [&](int64_t size, int64_t of_block, int64_t of_pixels) {
    copy.grid.add(size, to_batch ? of_block : of_pixels, to_batch ? of_pixels : of_block);
  };
  add(block[0], block[1] * part.count(), pixels[2]);
  add(block[1], part.count(), pixels[3]);
  add(x[0], blocks[0], pixels[0]);
  add(x[1], blocks[1], pixels[1]);
  add(part[2], blocks[2], block[0] * pixels[2]);
  add(part[3], blocks[3], block[1] * pixels[3]);
  return copy;
}

/// The scratch as a tensor.
Use pad_scratch(const RecordArgs& args, size_t bytes, Element e, bool written) {
  return {args.scratch.buffer, args.scratch.offset, bytes, size_of(e), written};
}

Match match_blocks(const MatchCall& m) {
  if (std::string why = refusal_of_floats(m, {"x"}); !why.empty()) return Match::no(why);
  const bool to_batch = m.call.version().def->name == "space_to_batch";
  const auto b = ops::batch_blocks(m.call, to_batch ? "paddings" : "crops");
  if (!b.ok()) return Match::no("a block that is not constant");
  // The image with its margins.
  const ir::Shape &x = m.call.shape("x"), &y = m.outputs[0].shape();
  const ir::Shape& bare = to_batch ? x : y;
  ir::Shape full = bare;
  for (int i = 0; i < 2; i++) full[2 + i] += b->margin[i][0] + b->margin[i][1];
  const bool margins = !(full == bare);
  const GridCopy blocks = blocks_copy(full, b->block, to_batch);
  Margins padded;
  GridCopy cropped;
  const auto strides = full.strides(), bare_strides = bare.strides();
  for (int i = 3; i >= 0; i--) {
    const int64_t before = i < 2 ? 0 : b->margin[i - 2][0], after = i < 2 ? 0 : b->margin[i - 2][1];
    const auto u = static_cast<size_t>(i);
    padded.add(bare[i], before, after);
    cropped.grid.add(bare[i], bare_strides[u], strides[u]);
    cropped.from += before * strides[u];
  }
  if (!can_copy(blocks.grid)) return Match::no(kManyDimensions);
  const Element e = moved_element(m, "x");
  const int in = m.call.arg_index("x");
  const size_t bytes = static_cast<size_t>(full.count()) * size_of(e);
  KernelChoice c = choice_of(m, to_batch ? "space_to_batch" : "batch_to_space", {"x"}, e);
  if (margins) c.scratch = bytes;
  set_cost(c, m);
  c.record = [=](Recorder& recorder, const RecordArgs& args) -> Status {
    const Use from = Use::read(view(args.in, in)), to = Use::write(args.out[0]);
    if (!margins) return record_copy(recorder, blocks, size_of(e), from, to);
    const Use middle = pad_scratch(args, bytes, e, true), made = pad_scratch(args, bytes, e, false);
    if (to_batch) {
      MOKA_TRY(padded.record(recorder, PAD_CONSTANT, e, from, middle));
      return record_copy(recorder, blocks, size_of(e), made, to);
    }
    MOKA_TRY(record_copy(recorder, blocks, size_of(e), from, middle));
    return record_copy(recorder, cropped, size_of(e), made, to);
  };
  return Match::yes(std::move(c));
}

}  // namespace

KernelFamily family_pad() {
  static const KernelDef defs[] = {{"pad", {"pad"}, match_pad},
                                   {"blocks", {"space_to_batch", "batch_to_space"}, match_blocks}};
  return {defs};
}

}  // namespace moka::devices::gpu
