// SPDX-License-Identifier: Apache-2.0
#include "devices/gpu/common/sampling.h"
#include "devices/gpu/kernels/family.h"

namespace moka::devices::gpu {

namespace {

struct SampleParams {
  uint32_t count;
  int32_t height, width, to_height, to_width, channels;
  uint32_t matrix_step;
  float pad;
};

/// `positions` names the input that says where to read. It keeps float32 where x is float16.
Match sampled(const MatchCall& m, std::string_view kernel, std::string_view positions, std::vector<uint32_t> constants,
              uint32_t matrix_step, float pad) {
  if (std::string why = refusal_of(m, {"x", positions}); !why.empty()) return Match::no(why);
  const ir::DType type = m.call.dtype(positions);
  if (type == ir::DType::fp16 && m.call.dtype("x") != type) return Match::no("float16 and float32 mixed");
  const ir::Shape &x = m.call.shape("x"), &y = m.outputs[0].shape();
  const auto i32 = [](int64_t v) { return static_cast<int32_t>(v); };
  const SampleParams params{u32(y.count()), i32(x[2]), i32(x[3]), i32(y[2]), i32(y[3]), i32(x[1]), matrix_step, pad};
  const Element e = float_element(m), at = *element_of(features_of(m), type);
  const int in = m.call.arg_index("x"), where = m.call.arg_index(positions);
  KernelChoice c = choice_of(m, kernel, {"x", positions}, e);
  c.in[static_cast<size_t>(where)] = {};
  set_cost(c, m, 16 * static_cast<double>(y.count()));
  const std::string shader = e == at ? shader_name("sample", e) : cat("sample_", name_of(e), "_", name_of(at));
  c.record = [=](Recorder& recorder, const RecordArgs& args) {
    return recorder_of(recorder).dispatch(
        shader, constants, {Use::read(view(args.in, in)), Use::read(view(args.in, where)), Use::write(args.out[0])},
        params, CommandRecorder::lines(params.count));
  };
  return Match::yes(std::move(c));
}

Match match_resample(const MatchCall& m) {
  const auto constants = sample_constants(m);
  const auto pad = m.call.number("padding_value");
  if (!constants || !pad.ok()) return Match::no("a parameter that is not constant");
  return sampled(m, "resample", "coordinates",
                 {false, constants->linear, constants->padding, constants->range, constants->align}, 0,
                 static_cast<float>(*pad));
}

Match match_affine(const MatchCall& m) {
  const auto align = m.call.flag("align_corners");
  if (!align.ok()) return Match::no("a parameter that is not constant");
  const uint32_t step = m.call.shape("transform_matrix")[0] == 1 ? 0 : 6;
  return sampled(m, "affine", "transform_matrix", {true, true, SAMPLE_CONSTANT, SAMPLE_MINUS_ONE_TO_ONE, *align}, step,
                 0);
}

struct BoxParams {
  uint32_t count;
  int32_t batch, channels, height, width, to_height, to_width, entries;
  float scale, row_scale, column_scale, pad;
};

Match match_crop_resize(const MatchCall& m) {
  const bool apart = m.call.version().since >= ir::Opset::ios17;
  const std::string_view boxes = apart ? "boxes" : "roi";
  const bool listed = apart && m.call.has("box_indices");
  if (std::string why = refusal_of_floats(m, {"x", boxes}); !why.empty()) return Match::no(why);
  if (listed)
    if (std::string why = refusal_of(m, {"box_indices"}); !why.empty()) return Match::no(why);
  const ir::Shape &x = m.call.shape("x"), &y = m.outputs[0].shape();
  const auto box = box_constants(m);
  const auto pad = m.call.version().param_index("pad_value") >= 0 ? m.call.number("pad_value") : Result<double>(0.0);
  if (!box || !pad.ok()) return Match::no("a parameter that is not constant");
  const int64_t entries = apart ? 4 : m.call.shape(boxes)[2], count = m.call.shape(boxes)[0];
  uint32_t image = entries == 5 ? BOX_NAMES_IMAGE : listed ? BOX_INDEX_OF_IMAGE : BOX_IS_IMAGE;
  if (!apart && entries == 4) image = BOX_OF_EVERY_IMAGE;
  // Boxes may name images that do not exist, which is an error.
  if (image == BOX_INDEX_OF_IMAGE)
    if (std::string why = refusal_of_images(m, "box_indices", x[0]); !why.empty()) return Match::no(why);
  if (image == BOX_NAMES_IMAGE) {
    const ir::TensorView* v = m.call.value(boxes);
    if (v == nullptr) return Match::no("numbers of images that are checked while running");
    for (int64_t n = 0; n < count; n++)
      if (const double at = ir::load_f64(*v, n * 5); !(at >= 0 && at < static_cast<double>(x[0])))
        return Match::no("a box of an image that does not exist");
  }
  const int r = y.rank();
  const auto i32 = [](int64_t v) { return static_cast<int32_t>(v); };
  const BoxParams params{u32(y.count()), i32(x[0]),      i32(x[1]),         i32(x[2]),
                         i32(x[3]),      i32(y[r - 2]),  i32(y[r - 1]),     i32(entries),
                         box->scale,     box->row_scale, box->column_scale, static_cast<float>(*pad)};
  // Positions need float32.
  const Element e = *element_of(features_of(m), m.call.dtype("x"));
  const int in = m.call.arg_index("x"), numbers = m.call.arg_index(boxes),
            index = listed ? m.call.arg_index("box_indices") : numbers;
  KernelChoice c = listed ? choice_of(m, "crop_resize", {"x", boxes, "box_indices"}, e)
                          : choice_of(m, "crop_resize", {"x", boxes}, e);
  set_cost(c, m, 16 * static_cast<double>(y.count()));
  c.record = [=, box = *box](Recorder& recorder, const RecordArgs& args) {
    return recorder_of(recorder).dispatch(shader_name("crop_resize", e),
                                          {image, box.height_first, box.center, box.sampling},
                                          {Use::read(view(args.in, in)), Use::read(view(args.in, numbers)),
                                           Use::read(view(args.in, index)), Use::write(args.out[0])},
                                          params, CommandRecorder::lines(params.count));
  };
  return Match::yes(std::move(c));
}

}  // namespace

KernelFamily family_sample() {
  static const KernelDef defs[] = {{"resample", {"resample"}, match_resample},
                                   {"affine", {"affine"}, match_affine},
                                   {"crop_resize", {"crop_resize"}, match_crop_resize}};
  return {defs};
}

}  // namespace moka::devices::gpu
