// SPDX-License-Identifier: Apache-2.0
#include "devices/gpu/kernels/family.h"
#include "ops/common/packed.h"

namespace moka::devices::gpu {

namespace {

struct AffineParams {
  uint32_t count, inner, entries;
};

/// Scales and zero points, which are scalars or vectors along one axis.
struct Affine {
  std::shared_ptr<const Uploaded> scale, zero;
  uint32_t inner = 1, entries = 1;

  Use zero_or_scale() const { return Use::read((zero ? zero : scale)->buffer, 4); }
};

/// Why the device can run neither quantize nor dequantize on these types; empty: it can. `bytes`: type of the integers.
std::string refusal_of_bytes(const MatchCall& m, const ir::Type& floats, const ir::Type& bytes) {
  if (!element_of(features_of(m), ir::DType::boolean)) return "bytes that the driver cannot store";
  if (!element_of(features_of(m), floats.dtype())) return cat("element type ", floats.dtype());
  if (bytes.dtype() != ir::DType::int8 && bytes.dtype() != ir::DType::uint8) return cat("element type ", bytes.dtype());
  const int64_t n = floats.shape().count();
  if (n == 0) return "an empty tensor";
  if (n > INT32_MAX / 4) return "a tensor of more than 2^29 elements";
  if (!m.is_constant("scale") || (m.call.has("zero_point") && !m.is_constant("zero_point")))
    return "a scale that is not constant";
  return {};
}

std::optional<Affine> affine_of(const MatchCall& m, KernelChoice& c) {
  Affine a;
  const ir::Shape& x = m.call.shape("input");
  auto upload = [&](std::string_view param) {
    return uploaded_before(c, m.call.arg_index(param), "values", m.call.shape(param).count(), Element::f32,
                           [](const ir::TensorView& value, float* to) -> Status {
                             ops::load_floats(value, 0, value.count(), to);
                             return {};
                           });
  };
  a.scale = upload("scale");
  if (m.call.has("zero_point")) a.zero = upload("zero_point");
  if (m.call.rank("scale") > 0) {
    auto axis = m.call.integer("axis");
    if (!axis.ok()) return std::nullopt;
    const int at = static_cast<int>(*axis < 0 ? *axis + x.rank() : *axis);
    a.entries = u32(x[at]);
    a.inner = u32(x.count(at + 1, x.rank()));
  }
  if (a.zero && m.call.rank("zero_point") != m.call.rank("scale")) return std::nullopt;
  return a;
}

/// Records one of the two shaders.
Match affine_choice(const MatchCall& m, KernelChoice c, std::string shader, std::vector<uint32_t> constants) {
  const auto a = affine_of(m, c);
  if (!a) return Match::no("a scale and a zero point along different axes");
  constants.insert(constants.begin() + 1, a->zero != nullptr);
  set_cost(c, m);
  const int x = m.call.arg_index("input");
  c.record = [=, a = *a](Recorder& recorder, const RecordArgs& args) -> Status {
    const auto n = static_cast<uint64_t>(args.out[0].shape.count());
    return recorder_of(recorder).dispatch(
        shader, constants,
        {Use::read(view(args.in, x)), Use::read(a.scale->buffer, 4), a.zero_or_scale(), Use::write(args.out[0])},
        AffineParams{static_cast<uint32_t>(n), a.inner, a.entries}, CommandRecorder::lines(n));
  };
  return Match::yes(std::move(c));
}

Match match_quantize(const MatchCall& m) {
  const ir::Type& x = m.call.type("input");
  if (std::string why = refusal_of_bytes(m, x, m.outputs[0]); !why.empty()) return Match::no(why);
  const auto at = static_cast<size_t>(m.call.arg_index("input"));
  KernelChoice c = choice_of(m, "quantize", {"input"});
  if (m.layouts[at].half && m.layouts[at].kind == Layout::Kind::row_major) c.in[at] = m.layouts[at];
  const Element e = *element_of(features_of(m), x.dtype(), c.in[at]);
  return affine_choice(m, std::move(c), cat("quantize_", name_of(e), "_u8"),
                       {m.outputs[0].dtype() == ir::DType::int8, x.dtype() == ir::DType::fp16});
}

Match match_dequantize(const MatchCall& m) {
  const ir::Type& x = m.call.type("input");
  if (std::string why = refusal_of_bytes(m, m.outputs[0], x); !why.empty()) return Match::no(why);
  const Element e = float_element(m);
  KernelChoice c = choice_of(m, "dequantize", {"input"}, e);
  return affine_choice(m, std::move(c), cat("dequantize_u8_", name_of(e)), {x.dtype() == ir::DType::int8});
}

struct FakeParams {
  uint32_t count;
  float scale, zero, low;
};

Match match_fake_quantize(const MatchCall& m) {
  if (std::string why = refusal_of_floats(m, {"x"}); !why.empty()) return Match::no(why);
  auto scale = m.call.number("scale");
  auto zero = m.call.integer("zero_point");
  auto dtype = m.call.text("dtype");
  if (!scale.ok() || !zero.ok() || !dtype.ok()) return Match::no("a parameter that is not constant");
  const Element e = float_element(m);
  const int x = m.call.arg_index("x");
  KernelChoice c = choice_of(m, "fake_quantize", {"x"}, e);
  c.in_place = x;
  set_cost(c, m);
  const FakeParams params{0, static_cast<float>(*scale), static_cast<float>(*zero), *dtype == "int8" ? -128.0f : 0.0f};
  c.record = [=](Recorder& recorder, const RecordArgs& args) -> Status {
    FakeParams p = params;
    p.count = u32(args.out[0].shape.count());
    return recorder_of(recorder).dispatch(shader_name("fake_quantize", e), {},
                                          {Use::read(view(args.in, x)), Use::write(args.out[0])}, p,
                                          CommandRecorder::lines(p.count));
  };
  return Match::yes(std::move(c));
}

}  // namespace

KernelFamily family_quantize() {
  static const KernelDef defs[] = {{"quantize", {"quantize"}, match_quantize},
                                   {"dequantize", {"dequantize"}, match_dequantize},
                                   {"fake_quantize", {"moka_fake_quantize"}, match_fake_quantize}};
  return {defs};
}

}  // namespace moka::devices::gpu
