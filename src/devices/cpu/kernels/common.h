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

/// What the kernel families share.
namespace moka::devices::cpu {

using kernel::KernelArgs;
using kernel::KernelChoice;
using kernel::KernelDef;
using kernel::Layout;
using kernel::Match;
using kernel::MatchCall;

/// Empty when these parameters (those that are there) and all outputs are non-empty fp32 tensors, else the refusal.
std::string require_fp32(const MatchCall& m, std::initializer_list<std::string_view> params);

/// Element types whose runs are bytes.
inline bool has_bytes(ir::DType t) { return t != ir::DType::string && ir::bits(t) % 8 == 0; }

/// The blocked layout of this processor.
inline Layout blocked() { return Layout::blocked(channel_block()); }
/// How the input arrives.
inline Layout layout_of(const MatchCall& m, std::string_view param) {
  return m.layouts[static_cast<size_t>(m.call.arg_index(param))];
}
/// All inputs row-major but `param`.
std::vector<Layout> in_layouts(const MatchCall& m, std::string_view param, Layout layout);

/// Estimated seconds of a kernel that uses all threads.
double cost_of(const MatchCall& m, double flops, double bytes);
/// The same call with no more threads than this much work can feed.
MatchCall with_threads_for(const MatchCall& m, double flops);
/// Bytes of all inputs and outputs.
double traffic(const MatchCall& m);

/// A constant input in the order in which a kernel reads it.
struct PackedFloats {
  std::shared_ptr<const std::byte> bytes;
  const float* data() const { return reinterpret_cast<const float*>(bytes.get()); }
};
/// Makes `c` read the constant fp32 input only before its first run, where `fill` packs it into `count` numbers; `key`
/// as in PrepareContext::pack. What is returned holds them from then on. What `c` prepares already it still does.
std::shared_ptr<const PackedFloats> packed_before(KernelChoice& c, const MatchCall& m, int arg, std::string key,
                                                  int64_t count,
                                                  std::function<void(const float* value, float* to)> fill);

/// The fp32 input of this index in all_args; nullptr for -1.
inline const float* data_of(const KernelArgs& args, int index) {
  return index < 0 ? nullptr : args.in[static_cast<size_t>(index)].as<float>();
}

/// Elements of a tensor in `layout`, padding included.
int64_t storage_count(const ir::Shape& shape, Layout layout);
/// Zeroes the padding channels of elements [begin, end) of a blocked fp32 tensor; both on a block boundary.
void clear_padding(const ir::Shape& shape, Layout layout, float* data, int64_t begin, int64_t end);
bool has_padding(const ir::Shape& shape, Layout layout);

/// Divisions of blocked images, [images, groups of channels, rows, ...], among threads: by rows, so that what a thread
/// made of an image in one step is in its caches in the next one, but for few rows, which are divided by groups.
struct BlockedTiles {
  int64_t groups, rows, bands;  ///< bands: divisions of the rows
  struct Tile {
    int64_t plane;        ///< of all images' groups
    int64_t top, bottom;  ///< its rows
  };
  Tile at(int64_t tile) const {
    const int64_t band = tile / groups % bands, image = tile / groups / bands;
    return {image * groups + tile % groups, rows * band / bands, rows * (band + 1) / bands};
  }
};
BlockedTiles blocked_tiles(int64_t images, int64_t groups, int64_t rows, int threads);

/// Ranges of a flat array for threads: element range of tiles [begin, end).
struct Chunks {
  static constexpr int64_t kElements = 16384;
  int64_t count = 0;
  int64_t tiles() const { return std::max<int64_t>(1, (count + kElements - 1) / kElements); }
  int64_t first(int64_t tile) const { return std::min(count, tile * kElements); }
};

}  // namespace moka::devices::cpu
