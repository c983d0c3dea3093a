// SPDX-License-Identifier: Apache-2.0
#include "devices/gpu/common/copies.h"
#include "devices/gpu/kernels/family.h"
#include "ops/common/sampling.h"

namespace moka::devices::gpu {

namespace {

using ops::Sampling;

/// Output i of an axis reads x at (times * i + plus) / by.
struct Line {
  int64_t times = 1, plus = 0, by = 1;

  /// ops::grid_point
  static Line of(Sampling mode, int64_t in, int64_t out) {
    switch (mode) {
      case Sampling::default_: return {in, 0, out};
      case Sampling::strict_align_corners: return out > 1 ? Line{in - 1, 0, out - 1} : Line{0, 0, 1};
      case Sampling::align_corners: return out > 1 ? Line{in - 1, 0, out - 1} : Line{0, in - 1, 2};
      case Sampling::offset_corners: {
        const int64_t n = std::max<int64_t>(1, in - 1);
        return {2 * n, n, 2 * out};
      }
      case Sampling::unalign_corners: return {2 * in, in - out, 2 * out};
    }
    return {};
  }
  /// floor((i + 0.5) * in / out)
  static Line half_pixel(int64_t in, int64_t out) { return {2 * in, in, 2 * out}; }
  /// Half an element further, where the nearest one is that before.
  Line nearest() const { return {2 * times, 2 * plus + by, 2 * by}; }
  bool fits(int64_t out) const {
    return times * out + plus <= INT32_MAX && plus >= INT32_MIN && by <= INT32_MAX && times <= INT32_MAX;
  }
};

struct Params {
  uint32_t count;
  int32_t height, width, to_height, to_width;
  int32_t row_times, row_plus, row_by, column_times, column_plus, column_by;
};

struct Wanted {
  bool linear = false;
  int dims = 2;
  std::function<Line(int64_t in, int64_t out)> line;
};

/// nullopt: a parameter is not known.
std::optional<Wanted> wanted_of(const ir::OpCall& call) {
  const std::string_view op = call.version().def->name;
  const auto linear = [](const Result<Sampling>& mode) -> std::optional<Wanted> {
    if (!mode.ok()) return std::nullopt;
    return Wanted{true, 2, [mode = *mode](int64_t in, int64_t out) { return Line::of(mode, in, out); }};
  };
  if (op == "upsample_nearest_neighbor")
    return Wanted{false, 2, [](int64_t in, int64_t out) { return Line::of(Sampling::default_, in, out); }};
  if (op == "resize_nearest_neighbor") return Wanted{false, 2, Line::half_pixel};
  if (op == "upsample_bilinear") return linear(ops::upsampling_of(call));
  const auto mode = ops::sampling_of(call);
  if (op == "resize_bilinear") return linear(mode);
  const auto text = call.text("interpolation_mode");
  const auto dims = call.integer("resized_dims");
  if (!text.ok() || !mode.ok() || !dims.ok()) return std::nullopt;
  Wanted w{*text == "LINEAR", static_cast<int>(*dims), Line::half_pixel};
  if (w.linear || *mode != Sampling::default_)
    w.line = [mode = *mode, whole = !w.linear](int64_t in, int64_t out) {
      const Line line = Line::of(mode, in, out);
      return whole ? line.nearest() : line;
    };
  return w;
}

Match match_resize(const MatchCall& m) {
  if (std::string why = refusal_of(m, {"x"}); !why.empty()) return Match::no(why);
  const auto wanted = wanted_of(m.call);
  if (!wanted) return Match::no("a parameter that is not constant");
  if (wanted->dims > 2) return Match::no("resizing more than the last two dimensions");
  const ir::Shape &x = m.call.shape("x"), &y = m.outputs[0].shape();
  const bool floats = ir::is_float(m.call.dtype("x"));
  if (!floats && wanted->linear) return Match::no("interpolated integers");
  const int r = x.rank();
  const int64_t height = wanted->dims < 2 ? 1 : x[r - 2], width = wanted->dims < 1 ? 1 : x[r - 1];
  const int64_t to_height = wanted->dims < 2 ? 1 : y[r - 2], to_width = wanted->dims < 1 ? 1 : y[r - 1];
  const Line rows = wanted->dims < 2 ? Line{} : wanted->line(height, to_height);
  const Line columns = wanted->dims < 1 ? Line{} : wanted->line(width, to_width);
  if (!rows.fits(to_height) || !columns.fits(to_width)) return Match::no("an image of more than 2^15 rows or columns");
  const auto i32 = [](int64_t v) { return static_cast<int32_t>(v); };
  const Params params{u32(y.count()),     i32(height),       i32(width),     i32(to_height),
                      i32(to_width),      i32(rows.times),   i32(rows.plus), i32(rows.by),
                      i32(columns.times), i32(columns.plus), i32(columns.by)};
  const Element e = wanted->linear ? float_element(m) : moved_element(m, "x");
  const int in = m.call.arg_index("x");
  KernelChoice c = choice_of(m, "resize", {"x"}, e);
  set_cost(c, m, wanted->linear ? 4 * static_cast<double>(y.count()) : 0);
  c.record = [=, linear = wanted->linear](Recorder& recorder, const RecordArgs& args) {
    return recorder_of(recorder).dispatch(shader_name("resize", e), {linear},
                                          {Use::read(view(args.in, in)), Use::write(args.out[0])}, params,
                                          CommandRecorder::lines(params.count));
  };
  return Match::yes(std::move(c));
}

}  // namespace

KernelFamily family_resize() {
  static const KernelDef defs[] = {
      {"resize",
       {"resize", "resize_bilinear", "resize_nearest_neighbor", "upsample_bilinear", "upsample_nearest_neighbor"},
       match_resize}};
  return {defs};
}

}  // namespace moka::devices::gpu
