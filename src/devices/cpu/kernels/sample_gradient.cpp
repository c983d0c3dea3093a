// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <limits>

#include "devices/cpu/kernels/family.h"
#include "devices/cpu/vector/sampled.h"
#include "kernel/parallel.h"
#include "ops/common/boxes.h"
#include "ops/common/resampling.h"

/// Gradients of samples of images. Threads divide the samples to find their places, and then the channels.
namespace moka::devices::cpu {

namespace {

using vector::sampled;
using vector::Sampled;
using Place = Sampled::Place;

constexpr int64_t kSamplesAtOnce = 512;
constexpr Place kNoPlace{{-1, -1, -1, -1}, 0, 0};

/// Calls f(first, last) for parts of [0, count).
template <class F>
void in_parts(int threads, int64_t count, const F& f) {
  kernel::parallel_for(threads, (count + kSamplesAtOnce - 1) / kSamplesAtOnce,
                       [&](int64_t i, int) { f(i * kSamplesAtOnce, std::min(count, (i + 1) * kSamplesAtOnce)); });
}

int32_t pixel_at(int64_t row, int64_t column, int64_t height, int64_t width) {
  const bool is_inside = row >= 0 && row < height && column >= 0 && column < width;
  return is_inside ? static_cast<int32_t>(row * width + column) : -1;
}

/// Images as a kernel divides them: into blocks of channels, or into planes where most of a block would be padding.
struct ImageParts {
  int64_t count, parts, channels, height, width;  ///< parts: of an image; channels: of a part

  explicit ImageParts(const ir::Shape& x) : count(x[0]), parts(x[1]), channels(1), height(x[2]), width(x[3]) {
    if (4 * x[1] <= channel_block()) return;
    channels = channel_block();
    parts = (x[1] + channels - 1) / channels;
  }
  int64_t all() const { return count * parts; }
  int64_t floats() const { return height * width * channels; }
  Layout layout() const { return channels > 1 ? blocked() : Layout{}; }
  auto spread(bool slopes) const {
    const Sampled& s = sampled();
    return channels > 1 ? (slopes ? s.spread_all : s.spread) : slopes ? s.spread_plane_all : s.spread_plane;
  }
};

struct ResampleBack {
  ops::ResampleSettings settings;
  ImageParts images;
  int64_t area;  ///< samples of an image
  int x, coordinates, dy;
  int threads = 1;

  int64_t samples() const { return images.count * area; }
  size_t scratch() const {
    return static_cast<size_t>(samples()) * (sizeof(Place) + 2 * sizeof(float) * static_cast<size_t>(images.parts));
  }
  /// The places of `count` samples, at most kSamplesAtOnce.
  void find(const float* at, int64_t count, Place* to) const;
  void run(const KernelArgs& args) const;
};

void ResampleBack::find(const float* at, int64_t count, Place* to) const {
  double columns[kSamplesAtOnce], rows[kSamplesAtOnce];
  for (int64_t i = 0; i < count; i++) {
    columns[i] = ops::resample_position(settings, static_cast<double>(at[2 * i]), images.width);
    rows[i] = ops::resample_position(settings, static_cast<double>(at[2 * i + 1]), images.height);
  }
  if (settings.bilinear) return sampled().find(columns, rows, count, images.height, images.width, to);
  const auto w = static_cast<double>(images.width), h = static_cast<double>(images.height);
  for (int64_t i = 0; i < count; i++) {
    to[i] = kNoPlace;
    const double column = std::nearbyint(columns[i]), row = std::nearbyint(rows[i]);
    if (column >= 0 && row >= 0 && column < w && row < h)
      to[i].at[0] = static_cast<int32_t>(static_cast<int64_t>(row) * images.width + static_cast<int64_t>(column));
  }
}

void ResampleBack::run(const KernelArgs& args) const {
  auto* const places = reinterpret_cast<Place*>(args.scratch);
  auto* const slopes = reinterpret_cast<float*>(places + samples());
  const float* at = data_of(args, coordinates);
  in_parts(threads, samples(),
           [&](int64_t first, int64_t last) { find(at + 2 * first, last - first, places + first); });
  kernel::parallel_for(threads, images.all(), [&](int64_t i, int) {
    const int64_t image = i / images.parts, plane = images.floats();
    float* dx = args.out[0].as<float>() + i * plane;
    std::fill_n(dx, plane, 0.0f);
    const Sampled::Call call{places + image * area,
                             area,
                             data_of(args, dy) + i * area * images.channels,
                             dx,
                             data_of(args, x) + i * plane,
                             static_cast<float>(settings.pad),
                             slopes + i * area * 2};
    images.spread(settings.bilinear)(call);
  });
  float* to = args.out[1].as<float>();
  if (!settings.bilinear) {
    std::fill_n(to, 2 * samples(), 0.0f);
    return;
  }
  in_parts(threads, samples(), [&](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; i++) {
      const float* from = slopes + 2 * (i / area * images.parts * area + i % area);
      double across = 0, down = 0;
      for (int64_t b = 0; b < images.parts; b++, from += 2 * area) {
        across += static_cast<double>(from[0]);
        down += static_cast<double>(from[1]);
      }
      to[2 * i] =
          static_cast<float>(across * ops::resample_slope(settings, static_cast<double>(at[2 * i]), images.width));
      to[2 * i + 1] =
          static_cast<float>(down * ops::resample_slope(settings, static_cast<double>(at[2 * i + 1]), images.height));
    }
  });
}

Match match_resample_gradient(const MatchCall& m) {
  if (std::string why = require_fp32(m, {"x", "coordinates", "dy"}); !why.empty()) return Match::no(why);
  const auto settings = ops::resample_settings_of(m.call);
  if (!settings.ok()) return Match::no("unknown settings");
  const ir::Shape &x = m.call.shape("x"), &dy = m.call.shape("dy");
  if (x[2] * x[3] > std::numeric_limits<int32_t>::max()) return Match::no("a plane of more than 2^31 pixels");
  ResampleBack back{*settings,
                    ImageParts(x),
                    dy[2] * dy[3],
                    m.call.arg_index("x"),
                    m.call.arg_index("coordinates"),
                    m.call.arg_index("dy")};
  const double flops = 16.0 * static_cast<double>(dy.count());
  back.threads = with_threads_for(m, flops).threads;
  KernelChoice c;
  c.kernel = "cpu.resample.gradient";
  c.in = in_layouts(m, "dy", back.images.layout());
  // Samples of the nearest pixels have no gradient of their places, so the values of x do not matter, nor its layout.
  c.in[static_cast<size_t>(back.x)] = settings->bilinear ? back.images.layout() : layout_of(m, "x");
  c.out = {back.images.layout(), {}};
  c.internally_parallel = true;
  c.scratch = back.scratch();
  c.cost = cost_of(m, flops, traffic(m));
  c.run = [back](const KernelArgs& args) -> Status {
    back.run(args);
    return {};
  };
  return Match::yes(std::move(c));
}

struct CropResizeBack {
  ops::BoxSettings settings;
  ir::Shape x_shape, dy_shape;
  ImageParts images;
  int boxes, indices, dy;
  int threads = 1;

  int64_t area() const { return dy_shape[2] * dy_shape[3]; }
  size_t scratch() const { return static_cast<size_t>(dy_shape[0] * area()) * sizeof(Place); }
  void find(const ops::BoxSides& sides, Place* to) const;
  Status run(const KernelArgs& args) const;
};

/// The places of the samples of a box. A second pixel with a share of 0 gets nothing, whatever the gradient is.
void CropResizeBack::find(const ops::BoxSides& sides, Place* to) const {
  const auto number = [](const ops::Tap& t) { return t.part != 0 ? t.high : -1; };
  for (int64_t i = 0; i < dy_shape[2]; i++) {
    const double row = sides.rows.at(i);
    const ops::Tap down = ops::tap_at(row, images.height);
    for (int64_t j = 0; j < dy_shape[3]; j++, to++) {
      const double column = sides.columns.at(j);
      *to = kNoPlace;
      if (!sides.rows.contains(row) || !sides.columns.contains(column)) continue;
      const ops::Tap across = ops::tap_at(column, images.width);
      *to = {{}, static_cast<float>(across.part), static_cast<float>(down.part)};
      for (int k = 0; k < 4; k++)
        to->at[k] = pixel_at(k / 2 == 0 ? down.low : number(down), k % 2 == 0 ? across.low : number(across),
                             images.height, images.width);
    }
  }
}

Status CropResizeBack::run(const KernelArgs& args) const {
  auto* const places = reinterpret_cast<Place*>(args.scratch);
  const ir::TensorView &all = args.in[static_cast<size_t>(boxes)], &images_of = args.in[static_cast<size_t>(indices)];
  const int64_t count = dy_shape[0], each = area();
  for (int64_t n = 0; n < count; n++)
    if (const int64_t image = ir::load_i64(images_of, n); image < 0 || image >= images.count)
      return fail(ErrorCode::data, "operation '", args.call->name(), "' (moka_crop_resize_gradient): box ", n,
                  " is of image ", image, ", expected 0 to ", images.count - 1);
  kernel::parallel_for(threads, count, [&](int64_t n, int) {
    find(ops::box_sides(settings, all, n * 4, x_shape, dy_shape), places + n * each);
  });
  kernel::parallel_for(threads, images.all(), [&](int64_t i, int) {
    const int64_t plane = images.floats(), b = i % images.parts;
    Sampled::Call call{};
    call.count = each;
    call.dx = args.out[0].as<float>() + i * plane;
    std::fill_n(call.dx, plane, 0.0f);
    for (int64_t n = 0; n < count; n++) {
      if (ir::load_i64(images_of, n) != i / images.parts) continue;
      call.places = places + n * each;
      call.dy = data_of(args, dy) + (n * images.parts + b) * each * images.channels;
      images.spread(false)(call);
    }
  });
  return {};
}

Match match_crop_resize_gradient(const MatchCall& m) {
  if (std::string why = require_fp32(m, {"x", "dy"}); !why.empty()) return Match::no(why);
  const auto settings = ops::box_settings_of(m.call);
  if (!settings.ok()) return Match::no("unknown settings");
  const ir::Shape &x = m.call.shape("x"), &dy = m.call.shape("dy");
  if (x[2] * x[3] > std::numeric_limits<int32_t>::max()) return Match::no("a plane of more than 2^31 pixels");
  CropResizeBack back{*settings,
                      x,
                      dy,
                      ImageParts(x),
                      m.call.arg_index("boxes"),
                      m.call.arg_index("box_indices"),
                      m.call.arg_index("dy")};
  const double flops = 8.0 * static_cast<double>(dy.count());
  back.threads = with_threads_for(m, flops).threads;
  KernelChoice c;
  c.kernel = "cpu.crop_resize.gradient";
  c.in = in_layouts(m, "dy", back.images.layout());
  // The values of x do not matter, and so its layout does not.
  c.in[static_cast<size_t>(m.call.arg_index("x"))] = layout_of(m, "x");
  c.out = {back.images.layout()};
  c.internally_parallel = true;
  c.scratch = back.scratch();
  c.cost = cost_of(m, flops, traffic(m));
  c.run = [back](const KernelArgs& args) { return back.run(args); };
  return Match::yes(std::move(c));
}

}  // namespace

KernelFamily family_sample_gradient() {
  static const KernelDef defs[] = {
      {.name = "cpu.resample.gradient", .ops = {"moka_resample_gradient"}, .match = match_resample_gradient},
      {.name = "cpu.crop_resize.gradient", .ops = {"moka_crop_resize_gradient"}, .match = match_crop_resize_gradient}};
  return {200, defs};
}

}  // namespace moka::devices::cpu
