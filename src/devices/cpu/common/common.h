// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <functional>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "devices/cpu/isa.h"
#include "kernel/kernel.h"

/// Shared by all kernel families.
namespace moka::devices::cpu {

using kernel::KernelArgs;
using kernel::KernelChoice;
using kernel::KernelDef;
using kernel::Layout;
using kernel::Match;
using kernel::MatchCall;

/// A refusal unless all outputs and these parameters (if given) are non-empty fp32 tensors; empty otherwise.
std::string require_fp32(const MatchCall& m, std::initializer_list<std::string_view> params);

/// Whether elements are whole bytes, so that runs of them can be copied as bytes.
inline bool has_bytes(ir::DType t) { return t != ir::DType::string && ir::bits(t) % 8 == 0; }

/// The blocked layout for this processor.
inline Layout blocked() { return Layout::blocked(channel_block()); }
/// The layout in which the input arrives.
inline Layout layout_of(const MatchCall& m, std::string_view param) {
  return m.layouts[static_cast<size_t>(m.call.arg_index(param))];
}
/// `layout` for the input `param`, row-major for all others.
std::vector<Layout> in_layouts(const MatchCall& m, std::string_view param, Layout layout);

/// Estimated seconds for a kernel that uses all threads.
double cost_of(const MatchCall& m, double flops, double bytes);
/// The same call with no more threads than this much work keeps busy.
MatchCall with_threads_for(const MatchCall& m, double flops);
/// Bytes of all inputs and outputs.
double traffic(const MatchCall& m);

/// A constant input, packed in the order in which a kernel reads it.
struct PackedFloats {
  std::shared_ptr<const std::byte> bytes;
  const float* data() const { return reinterpret_cast<const float*>(bytes.get()); }
};
/// Makes `c` pack a constant fp32 input before its first run. `fill` writes `count` floats, which the returned object
/// then holds. The input is not read at run time. `key` is as in PrepareContext::pack. Anything that `c` already
/// prepares is kept.
std::shared_ptr<const PackedFloats> packed_before(KernelChoice& c, const MatchCall& m, int arg, std::string key,
                                                  int64_t count,
                                                  std::function<void(const float* value, float* to)> fill);

/// What distinguishes the content of constants, for the keys of what is packed from several of them.
std::string content_key(std::span<const ir::TensorView> values);

/// Data of the fp32 input with this index in all_args; nullptr for -1.
inline const float* data_of(const KernelArgs& args, int index) {
  return index < 0 ? nullptr : args.in[static_cast<size_t>(index)].as<float>();
}

/// The number of elements of a tensor in `layout`, padding included.
int64_t storage_count(const ir::Shape& shape, Layout layout);
/// Zeroes the padding channels in elements [begin, end) of a blocked fp32 tensor. Both are block boundaries.
void clear_padding(const ir::Shape& shape, Layout layout, float* data, int64_t begin, int64_t end);
bool has_padding(const ir::Shape& shape, Layout layout);

/// Tiles of blocked images, [images, blocks of channels, rows, ...]. Images are divided by rows, so that the data that
/// a thread wrote in the previous step is in its caches. Images with few rows are divided by blocks of channels.
struct BlockedTiles {
  int64_t groups, rows, bands;  ///< groups: blocks of channels; bands: divisions of the rows
  struct Tile {
    int64_t plane;        ///< number of the block, counted over all images
    int64_t top, bottom;  ///< the block's rows
  };
  Tile at(int64_t tile) const {
    const int64_t band = tile / groups % bands, image = tile / groups / bands;
    return {image * groups + tile % groups, rows * band / bands, rows * (band + 1) / bands};
  }
};
BlockedTiles blocked_tiles(int64_t images, int64_t groups, int64_t rows, int threads);

/// Divides a flat array of `count` elements into tiles.
struct Chunks {
  static constexpr int64_t kElements = 16384;
  int64_t count = 0;
  int64_t tiles() const { return std::max<int64_t>(1, (count + kElements - 1) / kElements); }
  int64_t first(int64_t tile) const { return std::min(count, tile * kElements); }
};

}  // namespace moka::devices::cpu
