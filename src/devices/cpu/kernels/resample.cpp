// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <limits>

#include "devices/cpu/kernels/family.h"
#include "ops/common/resampling.h"

namespace moka::devices::cpu {

namespace {

constexpr int64_t kResamplePixels = 128;  // results of a tile in each channel
constexpr int32_t kOutside = -1;

/// The offsets and weights of the neighbors of some positions in a plane.
struct Neighbors {
  int32_t at[4][kResamplePixels];  ///< top left, top right, bottom left, bottom right; kOutside: padding
  float right[kResamplePixels], below[kResamplePixels];
};

/// Two neighbors along an axis. A neighbor of weight 0 may be infinite, so it is replaced by the other one.
struct ResamplePair {
  int64_t low, high;
  float part;
};
ResamplePair pair_at(double position) {
  const double low = std::floor(position);
  const auto first = static_cast<int64_t>(low);
  if (low == position) return {first, first, 0.5f};
  return {first, first + 1, static_cast<float>(position - low)};
}

void find(const ops::ResampleSettings& s, double py, double px, int64_t height, int64_t width, int64_t i,
          Neighbors& to) {
  ResamplePair down{-1, -1, 0.5f}, across{-1, -1, 0.5f};
  if (s.bilinear) {
    if (px > -1 && py > -1 && px < static_cast<double>(width) && py < static_cast<double>(height)) {
      down = pair_at(py);
      across = pair_at(px);
    }
  } else {
    const double ny = std::nearbyint(py), nx = std::nearbyint(px);
    if (ny >= 0 && nx >= 0 && ny < static_cast<double>(height) && nx < static_cast<double>(width)) {
      down = pair_at(ny);
      across = pair_at(nx);
    }
  }
  for (int k = 0; k < 4; k++) {
    const int64_t y = k < 2 ? down.low : down.high, x = k % 2 == 0 ? across.low : across.high;
    const bool inside = y >= 0 && y < height && x >= 0 && x < width;
    to.at[k][i] = inside ? static_cast<int32_t>(y * width + x) : kOutside;
  }
  to.right[i] = across.part;
  to.below[i] = down.part;
}

float mix(float a, float b, float part) { return a * (1 - part) + b * part; }

void sample(const Neighbors& n, const float* plane, float pad, int64_t count, float* y) {
  for (int64_t i = 0; i < count; i++) {
    float v[4];
    for (int k = 0; k < 4; k++) v[k] = n.at[k][i] != kOutside ? plane[n.at[k][i]] : pad;
    y[i] = mix(mix(v[0], v[1], n.right[i]), mix(v[2], v[3], n.right[i]), n.below[i]);
  }
}

/// Computes the positions once for all channels.
Match match_resample(const MatchCall& m) {
  if (std::string why = require_fp32(m, {"x"}); !why.empty()) return Match::no(why);
  const auto settings = ops::resample_settings_of(m.call);
  if (!settings.ok()) return Match::no("unknown settings");
  const ir::Shape x = m.call.shape("x"), y = m.outputs[0].shape();
  const int64_t channels = x[1], height = x[2], width = x[3], area = y[2] * y[3];
  if (height * width > std::numeric_limits<int32_t>::max()) return Match::no("a plane of more than 2^31 pixels");
  const auto in = static_cast<size_t>(m.call.arg_index("x")), at = static_cast<size_t>(m.call.arg_index("coordinates"));
  const int64_t parts = (area + kResamplePixels - 1) / kResamplePixels;
  KernelChoice c;
  c.kernel = "cpu.resample";
  c.tiles = y[0] * parts;
  c.cost = cost_of(m, 40.0 * static_cast<double>(y.count()), traffic(m));
  c.run = [=, s = *settings](const KernelArgs& args) -> Status {
    Neighbors neighbors;
    for (int64_t t = args.begin; t < args.end; t++) {
      const int64_t image = t / parts, first = t % parts * kResamplePixels,
                    count = std::min(kResamplePixels, area - first);
      for (int64_t i = 0; i < count; i++) {
        const int64_t position = (image * area + first + i) * 2;
        find(s, ops::resample_position(s, ir::load_f64(args.in[at], position + 1), height),
             ops::resample_position(s, ir::load_f64(args.in[at], position), width), height, width, i, neighbors);
      }
      for (int64_t k = image * channels; k < (image + 1) * channels; k++)
        sample(neighbors, args.in[in].as<float>() + k * height * width, static_cast<float>(s.pad), count,
               args.out[0].as<float>() + k * area + first);
    }
    return {};
  };
  return Match::yes(std::move(c));
}

}  // namespace

KernelFamily family_resample() {
  static const KernelDef defs[] = {{.name = "cpu.resample", .ops = {"resample"}, .match = match_resample}};
  return {200, defs};
}

}  // namespace moka::devices::cpu
