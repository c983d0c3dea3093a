#include "devices/vulkan/kernels/conv.h"
#include "ops/common/packed.h"

namespace moka::devices::vulkan {

namespace {

constexpr int64_t kTaps = 16;                     // of F(2x2, 3x3): products that a convolution becomes
constexpr double kLeastWork = 1e8;                // multiply-adds that are worth two more dispatches
constexpr double kLeastSaved = 16;                // multiply-adds for each byte more: GPUs do 7 to 40 in its time
constexpr int64_t kMostBytes = int64_t{1} << 27;  // of the transformed input, and of the products

/// Multiply-adds that the transforms save for each byte more that is moved: 4 instead of 9 for each pixel and pair of
/// channels, but 16 numbers instead of 9 for each kernel, and what is transformed is written and read.
double saved_for_a_byte(const Conv& conv) {
  const auto channels = static_cast<double>(conv.channels), made = static_cast<double>(conv.made);
  const double pixels = static_cast<double>(conv.batch) * static_cast<double>(conv.window.out_count());
  return 5 * channels * made * pixels / (4 * (7 * channels * made + 8 * (channels + made) * pixels));
}

struct InputParams {
  uint32_t count, channels, columns, in_image, across;
  std::array<int32_t, 2> in_size, pads;
};

struct OutputParams {
  AfterParams after;
  uint32_t count, made, columns, in_image, across;
  std::array<int32_t, 2> out_size;
};

/// The weights as [16, channels, made / 4] of four: G w G^T of each kernel.
Status transform_weights(const Conv& conv, const ir::TensorView& value, float* to) {
  const int64_t padded = (conv.made + 3) / 4 * 4;
  std::fill_n(to, kTaps * conv.channels * padded, 0.0f);
  auto line = [](const float* w, int64_t step, float* out) {
    const float a = w[0], b = w[step], c = w[2 * step];
    out[0] = a;
    out[1] = (a + b + c) / 2;
    out[2] = (a - b + c) / 2;
    out[3] = c;
  };
  std::vector<float> kernels(static_cast<size_t>(conv.channels * 9));
  for (int64_t r = 0; r < conv.made; r++) {
    ops::load_floats(value, r * conv.channels * 9, conv.channels * 9, kernels.data());
    for (int64_t c = 0; c < conv.channels; c++) {
      float rows[12], all[16];  // [3][4], [4][4]
      for (int i = 0; i < 3; i++) line(kernels.data() + c * 9 + static_cast<ptrdiff_t>(3) * i, 1, rows + 4 * i);
      for (int i = 0; i < 4; i++) {
        float column[4];
        line(rows + i, 4, column);
        for (int k = 0; k < 4; k++) all[k * 4 + i] = column[k];
      }
      for (int64_t e = 0; e < kTaps; e++) to[(e * conv.channels + c) * padded + r] = all[e];
    }
  }
  return {};
}

}  // namespace

Match match_conv_winograd(const MatchCall& m) {
  std::string refusal;
  const auto conv = conv_of(m, refusal);
  if (!conv) return Match::no(refusal);
  const ops::Window& w = conv->window;
  bool fits = w.groups == 1 && w.in[0] == 1 && w.kernel[0] == 1 && w.pads_begin[0] == 0 && w.out[0] == 1;
  for (int i = 1; i < 3; i++) fits &= w.kernel[i] == 3 && w.strides[i] == 1 && w.dilations[i] == 1;
  if (!fits) return Match::no("a window other than 3 x 3 without strides");
  if (!m.is_constant("weight")) return Match::no("weights that are not constant");
  if (refusal = refusal_of_floats(m, {"x", "bias"}); !refusal.empty()) return Match::no(refusal);
  if (conv->channels < 16 || conv->made < 16 || (conv->multiply_adds() < kLeastWork && !m.asked))
    return Match::no("too little work");
  if (saved_for_a_byte(*conv) < kLeastSaved && !m.asked) return Match::no("less saved than moved");
  const int64_t across = (w.out[2] + 1) / 2, in_image = (w.out[1] + 1) / 2 * across, columns = conv->batch * in_image;
  const int64_t inputs = kTaps * conv->channels * columns, products = kTaps * conv->made * columns;
  if (std::max(inputs, products) * 4 > kMostBytes) return Match::no("transformed tensors of more than 128 MiB");
  const Tiles tiles = tiles_of(conv->made, columns, kTaps);
  if (std::string why = refusal_of_groups(tiles.groups); !why.empty()) return Match::no(why);
  KernelChoice c = choice_of(m, "vulkan.conv.winograd", {"x", "bias", "addend"}, conv->floats);
  const After after = after_of(m.epilogue);
  c.epilogues = after.count;
  c.scratch = static_cast<size_t>(inputs + products) * 4;
  const auto held = uploaded_before(
      c, conv->weight, "winograd", kTaps * conv->channels * ((conv->made + 3) / 4 * 4), Element::f32,
      [conv = *conv](const ir::TensorView& value, float* to) { return transform_weights(conv, value, to); });
  set_cost(c, m, conv->multiply_adds() / 2.25);
  c.record = [=, conv = *conv](Recorder& recorder, const RecordArgs& args) -> Status {
    const ops::Window& w = conv.window;
    VulkanRecorder& r = recorder_of(recorder);
    const Use scratch = scratch_of(args, inputs + products), x = conv.use(args.in, conv.x);
    const Use in = scratch.part(0, inputs), out = scratch.part(inputs, products);
    auto size = [](const ir::Ints& v) {
      return std::array<int32_t, 2>{static_cast<int32_t>(v[1]), static_cast<int32_t>(v[2])};
    };
    const auto n = static_cast<uint32_t>(columns), image = u32(in_image), row = u32(across);
    MOKA_TRY(r.dispatch(
        shader_name("winograd_input", conv.floats), {}, {x, in},
        InputParams{u32(conv.channels * columns), u32(conv.channels), n, image, row, size(w.in), size(w.pads_begin)},
        VulkanRecorder::lines(static_cast<uint64_t>(conv.channels * columns))));
    // 16 plain convolutions of one pixel.
    ops::Window plain = w;
    for (int i = 0; i < 3; i++) {
      plain.in[i] = plain.out[i] = i < 2 ? 1 : columns;
      plain.pads_begin[i] = 0;
    }
    MOKA_TRY(r.dispatch(
        "conv_f32", tiles.constants({1, 1, 1, 1, 0, 0, F_NONE, F_NONE}),
        {in.to_read(), Use::read(held->buffer, 16), in.to_read(), in.to_read(), out, in.to_read()},
        ConvParams{AfterParams(After{}), u32(conv.channels), u32(conv.made), u32(kTaps), WindowParams(plain)},
        groups_of(tiles.groups)));
    return r.dispatch(
        shader_name("winograd_output", conv.floats), after.constants({conv.bias >= 0, conv.addend >= 0}),
        {out.to_read(), conv.bias >= 0 ? conv.use(args.in, conv.bias) : x,
         conv.addend >= 0 ? conv.use(args.in, conv.addend) : x, Use::write(args.out[0])},
        OutputParams{AfterParams(after), u32(conv.made * columns), u32(conv.made), n, image, row, size(w.out)},
        VulkanRecorder::lines(static_cast<uint64_t>(conv.made * columns)));
  };
  return Match::yes(std::move(c));
}

}  // namespace moka::devices::vulkan
