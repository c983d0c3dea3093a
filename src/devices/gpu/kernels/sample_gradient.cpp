// SPDX-License-Identifier: Apache-2.0
#include "devices/gpu/common/sampling.h"
#include "devices/gpu/kernels/family.h"

namespace moka::devices::gpu {

namespace {

/// The bands into which rows are divided, so that there are enough invocations. Each reads the places of all samples.
int32_t bands_of(const Features& card, int64_t planes, int64_t rows) {
  const int64_t enough = card.is_processor ? 16 : card.is_large ? 1 << 15 : 1 << 12;
  return static_cast<int32_t>(std::clamp<int64_t>(enough / planes, 1, rows));
}

struct ResampleGradientParams {
  uint32_t count;
  int32_t height, width, area, channels, bands;
  float pad;
};

Match match_resample_gradient(const MatchCall& m) {
  if (std::string why = refusal_of_floats(m, {"x", "coordinates", "dy"}); !why.empty()) return Match::no(why);
  for (std::string_view p : {"x", "coordinates"})
    if (m.call.dtype(p) != ir::DType::fp32) return Match::no(cat("element type ", m.call.dtype(p)));
  const auto sample = sample_constants(m);
  const auto pad = m.call.number("padding_value");
  if (!sample || !pad.ok()) return Match::no("a parameter that is not constant");
  const ir::Shape &x = m.call.shape("x"), &dy = m.call.shape("dy");
  const auto i32 = [](int64_t v) { return static_cast<int32_t>(v); };
  ResampleGradientParams params{0,
                                i32(x[2]),
                                i32(x[3]),
                                i32(dy[2] * dy[3]),
                                i32(x[1]),
                                bands_of(features_of(m), x[0] * x[1], x[2]),
                                static_cast<float>(*pad)};
  const int in = m.call.arg_index("x"), at = m.call.arg_index("coordinates"), by = m.call.arg_index("dy");
  KernelChoice c = choice_of(m, "resample_gradient", {"x", "coordinates", "dy"});
  set_cost(c, m, static_cast<double>(dy.count()) * (16 + params.bands));
  const std::array<int64_t, 2> counts{x[0] * x[1] * params.bands, dy[0] * dy[2] * dy[3]};
  c.record = [=](Recorder& recorder, const RecordArgs& args) -> Status {
    for (const bool coordinates : {false, true}) {
      ResampleGradientParams p = params;
      p.count = u32(counts[coordinates]);
      MOKA_TRY(recorder_of(recorder).dispatch(
          "resample_gradient_f32", {coordinates, sample->linear, sample->padding, sample->range, sample->align},
          {Use::read(view(args.in, in)), Use::read(view(args.in, at)), Use::read(view(args.in, by)),
           Use::write(args.out[coordinates])},
          p, CommandRecorder::lines(p.count)));
    }
    return {};
  };
  return Match::yes(std::move(c));
}

struct CropResizeGradientParams {
  uint32_t count;
  int32_t channels, height, width, to_height, to_width, box_count, bands;
  float scale, row_scale, column_scale;
};

Match match_crop_resize_gradient(const MatchCall& m) {
  if (std::string why = refusal_of_floats(m, {"x", "boxes", "dy"}); !why.empty()) return Match::no(why);
  if (std::string why = refusal_of(m, {"box_indices"}); !why.empty()) return Match::no(why);
  for (std::string_view p : {"x", "boxes"})
    if (m.call.dtype(p) != ir::DType::fp32) return Match::no(cat("element type ", m.call.dtype(p)));
  const auto box = box_constants(m);
  if (!box) return Match::no("a parameter that is not constant");
  const ir::Shape &x = m.call.shape("x"), &dy = m.call.shape("dy");
  if (std::string why = refusal_of_images(m, "box_indices", x[0]); !why.empty()) return Match::no(why);
  const auto i32 = [](int64_t v) { return static_cast<int32_t>(v); };
  const int32_t bands = bands_of(features_of(m), x[0] * x[1], x[2]);
  const CropResizeGradientParams params{u32(x[0] * x[1] * bands),
                                        i32(x[1]),
                                        i32(x[2]),
                                        i32(x[3]),
                                        i32(dy[2]),
                                        i32(dy[3]),
                                        i32(dy[0]),
                                        bands,
                                        box->scale,
                                        box->row_scale,
                                        box->column_scale};
  const int numbers = m.call.arg_index("boxes"), images = m.call.arg_index("box_indices"), by = m.call.arg_index("dy");
  KernelChoice c = choice_of(m, "crop_resize_gradient", {"boxes", "box_indices", "dy"});
  set_cost(c, m, 16 * static_cast<double>(dy.count()));
  c.record = [=, box = *box](Recorder& recorder, const RecordArgs& args) {
    return recorder_of(recorder).dispatch("crop_resize_gradient_f32", {0, box.height_first, box.center, box.sampling},
                                          {Use::read(view(args.in, numbers)), Use::read(view(args.in, images)),
                                           Use::read(view(args.in, by)), Use::write(args.out[0])},
                                          params, CommandRecorder::lines(params.count));
  };
  return Match::yes(std::move(c));
}

}  // namespace

KernelFamily family_sample_gradient() {
  static const KernelDef defs[] = {{"resample_gradient", {"moka_resample_gradient"}, match_resample_gradient},
                                   {"crop_resize_gradient", {"moka_crop_resize_gradient"}, match_crop_resize_gradient}};
  return {defs};
}

}  // namespace moka::devices::gpu
