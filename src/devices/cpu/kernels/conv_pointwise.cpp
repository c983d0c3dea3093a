// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>

#include "base/half.h"
#include "devices/cpu/common/activations.h"
#include "devices/cpu/common/compressed_weights.h"
#include "devices/cpu/common/file_weights.h"
#include "devices/cpu/common/half_weights.h"
#include "devices/cpu/kernels/family.h"
#include "devices/cpu/vector/gemm.h"
#include "devices/cpu/vector/pointwise.h"
#include "ops/common/window.h"

namespace moka::devices::cpu {

namespace {

using ops::Window;
using vector::pointwise;

constexpr int64_t kMostPanel = 48;
constexpr int64_t kManyPixels = 192;   // pixels at least for which a panel is widened before them, if there are as many
constexpr int64_t kFinished = 8 * 14;  // pixels of a panel that stay in the L1 cache until the epilogues are applied

struct PointwiseBlocking {
  int64_t images, pixels, in, out;
  int64_t in_groups, out_groups;  ///< blocks of channels
  int64_t chunks, parts;          ///< divisions of an image's pixels and of the panels
  int64_t unit;                   ///< chunks hold multiples of this number of pixels

  /// Vectors of output channels. A panel has two of them, and the first panel three when their number is odd.
  int64_t vectors() const { return out_groups * pointwise().block / pointwise().lanes; }
  int64_t panels() const { return std::max<int64_t>(1, vectors() / 2); }
  int64_t column(int64_t panel) const { return panel == 0 ? 0 : (2 * panel + vectors() % 2) * pointwise().lanes; }
  int64_t width(int64_t panel) const {
    return (panel + 1 == panels() ? vectors() * pointwise().lanes : column(panel + 1)) - column(panel);
  }
  /// Whether the last vector is at most half full. Its channels are then stored twice, and two pixels share the vector.
  bool twice() const {
    const int64_t lanes = pointwise().lanes, last = out - (vectors() - 1) * lanes;
    return vectors() > 1 && last <= pointwise().half;
  }
  int64_t first_panel(int64_t part) const { return panels() * part / parts; }
  int64_t first_pixel(int64_t chunk) const { return chunk == chunks ? pixels : pixels / unit * chunk / chunks * unit; }
  int64_t columns() const { return out_groups * pointwise().block; }
  int64_t weight_count() const { return out_groups * pointwise().block * in; }
};

/// Copies the first half of the vector that ends at `end` to its second half.
void repeat_half(float* end) { std::copy_n(end - 2 * pointwise().half, pointwise().half, end - pointwise().half); }

/// Packs a panel whose channels begin at w.
void pack_panel(const PointwiseBlocking& p, int64_t panel, const float* w, float* to) {
  const int64_t width = p.width(panel), columns = std::min(width, p.out - p.column(panel));
  vector::gemm().pack_panel(w, p.in, p.in, columns, width, to, nullptr);
  const bool twice = p.twice() && panel + 1 == p.panels();
  for (int64_t c = 0; c < p.in && twice; c++) repeat_half(to + (c + 1) * width);
}

void pack_weights(const PointwiseBlocking& p, const float* w, float* to) {
  for (int64_t panel = 0; panel < p.panels(); panel++)
    pack_panel(p, panel, w + p.column(panel) * p.in, to + p.column(panel) * p.in);
}

void pack_halves(const PointwiseBlocking& p, const LoadValues& load, uint16_t* to) {
  std::vector<float> values(static_cast<size_t>(kMostPanel * p.in)), packed(values.size());
  for (int64_t panel = 0; panel < p.panels(); panel++) {
    const int64_t first = p.column(panel), width = p.width(panel);
    load(first * p.in, std::min(width, p.out - first) * p.in, values.data());
    pack_panel(p, panel, values.data(), packed.data());
    float_to_half(packed.data(), to + first * p.in, static_cast<size_t>(width * p.in));
  }
}

void pack_compressed(const PointwiseBlocking& p, CompressedWeights::Packer& packer) {
  for (int64_t panel = 0; panel < p.panels(); panel++) {
    const int64_t column = p.column(panel), width = p.width(panel);
    const auto pack = [&](const float* from, int64_t depth, float* made) {
      PointwiseBlocking part = p;
      part.in = depth;
      pack_panel(part, panel, from, made);
    };
    packer.pack(column, std::min(width, p.out - column), width, pack);
  }
}

/// Weights that `prepare` packs, as float16 or in fewer bits if the file stores them so.
struct PackedWeights {
  bool as_half = false;
  std::shared_ptr<const CompressedWeights> compressed;
  PackedBytes bytes;
  std::optional<FileWeights> unpacked;  ///< read until they are packed

  int64_t element() const { return compressed ? 1 : as_half ? sizeof(uint16_t) : sizeof(float); }
  template <class T>
  const T* at(int64_t i) const {
    return reinterpret_cast<const T*>(bytes.get()) + i;
  }
};

std::shared_ptr<const PackedWeights> packed_weights(KernelChoice& c, const MatchCall& m, const PointwiseBlocking& p,
                                                    int arg) {
  auto packed = std::make_shared<PackedWeights>();
  packed->compressed =
      CompressedWeights::of(m, arg, p.out, p.in, CompressedWeights::Precision::wide, p.twice() ? pointwise().half : 0);
  packed->as_half = packed->compressed == nullptr && stores_halves(m, arg);
  c.in_prepare_only.resize(m.call.all_args().size());
  c.in_prepare_only[static_cast<size_t>(arg)] = true;
  if (packed->as_half || packed->compressed) {
    c.note = packed->as_half ? "packed as float16" : packed->compressed->note();
    c.thread_scratch = static_cast<size_t>(kMostPanel * p.in) * sizeof(float);
  }
  packed->unpacked = FileWeights::of(m, arg);
  if (packed->unpacked) {
    const int64_t floats = kMostPanel * p.in + packed->unpacked->room(kMostPanel * p.in);
    c.thread_scratch = static_cast<size_t>(floats) * sizeof(float);
    c.unpacked = packed->unpacked->tensor();
  }
  std::string key = cat("pointwise of ", pointwise().lanes, " ", pointwise().block);
  const auto count = static_cast<size_t>(p.weight_count());
  auto stored = packed->as_half ? m.stored_in_any_format(arg) : std::nullopt;
  c.prepare = [=, key = std::move(key), stored = std::move(stored)](kernel::PrepareContext& context) -> Status {
    if (const CompressedWeights* of = packed->compressed.get(); of != nullptr) {
      packed->bytes.set(
          MOKA_TRY(of->packed(context, arg, key, p.columns(), of->bytes(p.columns()),
                              [&](CompressedWeights::Packer& packer, std::byte*) { pack_compressed(p, packer); })));
      return {};
    }
    if (packed->as_half) {
      packed->bytes.set(MOKA_TRY(pack_from_halves(
          context, *stored, arg, cat(key, " as float16"), count * sizeof(uint16_t),
          [&](const LoadValues& load, std::byte* to) { pack_halves(p, load, reinterpret_cast<uint16_t*>(to)); })));
      return {};
    }
    packed->bytes.set(MOKA_TRY(
        context.pack(arg, key, count * sizeof(float), [&](const ir::TensorView& value, std::byte* to) -> Status {
          pack_weights(p, value.as<float>(), reinterpret_cast<float*>(to));
          return {};
        })));
    return {};
  };
  return packed;
}

/// How many pixels go through all panels before the next pixels: as many as fit part of the L2 cache.
int64_t pixels_at_once(const PointwiseBlocking& p) {
  constexpr int64_t kFits = 192 << 10;
  const int64_t tile = pointwise().pixels, floats = p.in_groups * pointwise().block;
  return std::max(tile, kFits / 4 / floats / tile * tile);
}

PointwiseBlocking blocking_of(const ir::Shape& x, int64_t out, int threads) {
  PointwiseBlocking p{};
  const int64_t block = channel_block();
  p.images = x[0];
  p.pixels = x.count(2, x.rank());
  p.in = x[1];
  p.out = out;
  p.in_groups = (p.in + block - 1) / block;
  p.out_groups = (p.out + block - 1) / block;
  const int64_t most = pixels_at_once(p), tiles = p.pixels / pointwise().pixels;
  p.chunks = (p.pixels + most - 1) / most;
  p.parts = 1;
  p.unit = 1;
  if (threads == 1) return p;
  const int64_t shares = 4 * threads;
  if (tiles >= 2 * threads && p.in * p.out <= 2 * p.pixels * (p.in + p.out)) {
    // Divide by pixels: each thread reads all weights, but only the part of the image that it wrote in the previous
    // step.
    p.unit = pointwise().pixels;
    p.chunks = std::min(std::max(p.chunks, shares), tiles / 2) / threads * threads;
  } else {
    p.parts = std::clamp<int64_t>((2 * threads + p.chunks - 1) / p.chunks, 1, p.panels());
    const int64_t each = (shares + p.parts - 1) / p.parts,
                  most_chunks = (p.pixels + 2 * pointwise().pixels - 1) / (2 * pointwise().pixels);
    p.chunks = std::max(p.chunks, std::min((p.chunks + each - 1) / each * each, most_chunks));
  }
  return p;
}

/// Why the kernel does not run the call; "" if it does.
std::string refusal_of(const MatchCall& given) {
  if (isa() == Isa::base && !given.asked) return "vectors of four floats";  // with these oneDNN is faster
  if (std::string why = require_fp32(given, {"x", "weight", "bias"}); !why.empty()) return why;
  auto window = ops::conv_window(given.call);
  if (!window.ok()) return "an invalid window";
  const Window& w = *window;
  for (int i = 0; i < w.rank; i++)
    if (w.kernel[i] != 1 || w.strides[i] != 1 || w.pads_begin[i] != 0 || w.pads_end[i] != 0)
      return "a window of more than one pixel";
  if (w.groups != 1) return "groups";
  if (!given.is_constant("weight")) return "weights that are not constant";
  const ir::Shape &x = given.call.shape("x"), &y = given.outputs[0].shape();
  const bool wide = y[1] >= channel_block() || w.out_count() == 1;
  if (!wide || (x[1] < channel_block() && layout_of(given, "x") != blocked())) return "few channels";
  return {};
}

/// Points `call` to the weights of a panel, which are packed or widened to call.widened where they are not kept so.
void read_panel(const PointwiseBlocking& p, const PackedWeights& weights, bool is_packed, int64_t panel,
                vector::Pointwise::Call& call) {
  const int64_t width = p.width(panel), column = p.column(panel);
  call.weight = call.widened;
  call.halves = nullptr;
  if (!is_packed) {
    const int64_t channels = std::min(width, p.out - column);
    pack_panel(p, panel, weights.unpacked->read(column * p.in, channels * p.in, call.widened + kMostPanel * p.in),
               call.widened);
    call.ahead = call.widened;
  } else if (weights.compressed) {
    weights.compressed->widen(weights.bytes.get(), column, width, p.columns(), 0, p.in, call.widened);
    call.ahead = weights.at<uint8_t>((column + width) * p.in);
  } else if (weights.as_half) {
    call.halves = weights.at<uint16_t>(column * p.in);
    call.ahead = weights.at<uint16_t>((column + width) * p.in);
  } else {
    call.weight = weights.at<float>(column * p.in);
    call.ahead = call.weight + width * p.in;
  }
}

void tell(const PointwiseBlocking& p, kernel::Facts& facts) {
  facts.add("vector", pointwise().lanes, " output channels")
      .add("tile", p.width(0), " output channels x ", pointwise().pixels, " pixels")
      .add("panels", p.panels())
      .add("chunks of pixels", p.chunks, " of each image")
      .add("parts of panels", p.parts);
  if (p.twice()) facts.add("last panel", "two pixels share a vector");
}

Match match_pointwise(const MatchCall& given) {
  if (std::string why = refusal_of(given); !why.empty()) return Match::no(std::move(why));
  const ir::Shape &x = given.call.shape("x"), y = given.outputs[0].shape();
  const double flops = 2.0 * static_cast<double>(y.count() * x[1]);
  const MatchCall m = with_threads_for(given, flops);
  const PointwiseBlocking p = blocking_of(x, y[1], m.threads);
  const FusedSum sum(m);
  KernelChoice c;
  c.kernel = "cpu.conv.pointwise";
  c.in = in_layouts(m, "x", blocked());
  if (sum.addend >= 0) c.in[static_cast<size_t>(sum.addend)] = blocked();
  c.out = {blocked()};
  c.tiles = p.images * p.chunks * p.parts;
  c.epilogues = m.epilogue.size();
  c.cost = cost_of(m, flops, traffic(m));
  c.facts = [p](kernel::Facts& facts) { tell(p, facts); };
  const auto weights = packed_weights(c, m, p, m.call.arg_index("weight"));
  c.run = [=](const KernelArgs& args) -> Status {
    const int64_t block = pointwise().block, plane = p.pixels * block;
    auto* all = args.out[0].as<float>();
    const bool is_packed = weights->bytes.get() != nullptr;
    for (int64_t t = args.begin, next; t < args.end; t = next) {
      const int64_t chunk = t % p.chunks, part = t / p.chunks % p.parts, image = t / p.chunks / p.parts;
      // Several chunks share panels that are packed or widened now.
      const int64_t most = std::min(p.chunks - chunk, args.end - t), first = p.first_pixel(chunk);
      int64_t chunks = is_packed ? 1 : most;
      while (weights->compressed && chunks < most && p.first_pixel(chunk + chunks) - first < kManyPixels) chunks++;
      next = t + chunks;
      const int64_t pixels = p.first_pixel(chunk + chunks) - first;
      for (int64_t panel = p.first_panel(part); panel < p.first_panel(part + 1); panel++) {
        const int64_t width = p.width(panel), column = p.column(panel);
        vector::Pointwise::Call call;
        call.x = args.in[sum.in].as<float>() + image * p.in_groups * plane + first * block;
        call.x_step = plane;
        call.in = p.in;
        call.widened = args.own<float>();
        read_panel(p, *weights, is_packed, panel, call);
        call.ahead_lines = width * weights->element() / vector::Pointwise::kLineBytes + 1;
        call.width = width;
        call.used = std::min(width, p.out - column);
        std::array<float, kMostPanel> start{};
        if (sum.bias >= 0) std::copy_n(data_of(args, sum.bias) + column, call.used, start.begin());
        call.twice = p.twice() && panel + 1 == p.panels();
        if (call.twice) repeat_half(start.data() + width);
        call.bias = start.data();
        call.limits = sum.clamp();
        call.y = all + (image * p.out_groups + column / block) * plane + first * block;
        call.y_step = plane;
        const bool more = sum.is_finished_later();
        for (int64_t left = pixels; left > 0; left -= call.pixels) {
          // A single pixel is summed in another order, so none may be left over, since chunks depend on the threads.
          call.pixels = more && left != kFinished + 1 ? std::min(left, kFinished) : left;
          pointwise().multiply(call);
          call.halves = nullptr;
          for (float* to = call.y; more && to < call.y + width / block * plane; to += plane)
            finish_blocked(y, data_of(args, sum.addend), sum.after, all, to - all, to - all + call.pixels * block);
          call.x += call.pixels * block;
          call.y += call.pixels * block;
        }
      }
    }
    return {};
  };
  return Match::yes(std::move(c));
}

}  // namespace

KernelFamily family_conv_pointwise() {
  static const KernelDef defs[] = {
      {.name = "cpu.conv.pointwise", .ops = {"conv"}, .match = match_pointwise, .addend = true, .measured = true}};
  return {60, defs};
}

}  // namespace moka::devices::cpu
