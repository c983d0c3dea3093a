// SPDX-License-Identifier: Apache-2.0
#include "devices/gpu/common/copies.h"
#include "devices/gpu/kernels/family.h"
#include "ops/common/common.h"

namespace moka::devices::gpu {

namespace {

Element result_element(const MatchCall& m) {
  const ir::DType dtype = m.outputs[0].dtype();
  return dtype == ir::DType::fp32 ? float_element(m) : *element_of(features_of(m), dtype);
}

std::string shader_of(std::string_view stem, Element e) { return cat(stem, "_u", 8 * size_of(e)); }

double value_of(const ir::TensorView& v) {
  return ir::is_float(v.dtype) ? ir::load_f64(v, 0) : static_cast<double>(ir::load_i64(v, 0));
}

Match match_fill(const MatchCall& m) {
  if (std::string why = refusal_of(m, {}); !why.empty()) return Match::no(why);
  const ir::TensorView* value = m.call.value("value");
  if (value == nullptr) return Match::no("a value that is not constant");
  const Element e = result_element(m);
  KernelChoice c = choice_of(m, "fill", {}, e);
  set_cost(c, m);
  c.record = [e, bits = bits_of(value_of(*value), e)](Recorder& recorder, const RecordArgs& args) {
    return record_fill(recorder, bits, e, args.out[0]);
  };
  return Match::yes(std::move(c));
}

struct OneHotParams {
  uint32_t count, depth, inner, on, off;
};

Match match_one_hot(const MatchCall& m) {
  if (std::string why = refusal_of(m, {"indices"}); !why.empty()) return Match::no(why);
  const ir::TensorView *on = m.call.value("on_value"), *off = m.call.value("off_value");
  const ir::Shape& y = m.outputs[0].shape();
  // The axis counts from the end of the result's shape.
  const auto axis = ops::axis_of(m.call, "axis", y.rank());
  if (on == nullptr || off == nullptr || !axis.ok()) return Match::no("a parameter that is not constant");
  const Element e = result_element(m);
  const OneHotParams params{u32(y.count()), u32(y[*axis]), u32(y.count(*axis + 1, y.rank())), bits_of(value_of(*on), e),
                            bits_of(value_of(*off), e)};
  const int in = m.call.arg_index("indices");
  KernelChoice c = choice_of(m, "one_hot", {"indices"}, e);
  set_cost(c, m);
  c.record = [=](Recorder& recorder, const RecordArgs& args) {
    return recorder_of(recorder).dispatch(shader_of("one_hot", e), {},
                                          {Use::read(view(args.in, in)), Use::write(args.out[0])}, params,
                                          CommandRecorder::lines(params.count));
  };
  return Match::yes(std::move(c));
}

struct BandParams {
  uint32_t count, rows, columns;
  int32_t lower, upper;
};

Match match_band(const MatchCall& m) {
  if (std::string why = refusal_of(m, {"x"}); !why.empty()) return Match::no(why);
  const auto lower = m.call.integer("lower"), upper = m.call.integer("upper");
  if (!lower.ok() || !upper.ok()) return Match::no("a band that is not constant");
  const ir::Shape& x = m.call.shape("x");
  const BandParams params{u32(x.count()), u32(x[x.rank() - 2]), u32(x[x.rank() - 1]), static_cast<int32_t>(*lower),
                          static_cast<int32_t>(*upper)};
  const Element e = moved_element(m, "x");
  const int in = m.call.arg_index("x");
  KernelChoice c = choice_of(m, "band_part", {"x"}, e);
  c.in_place = in;
  set_cost(c, m);
  c.record = [=](Recorder& recorder, const RecordArgs& args) {
    return recorder_of(recorder).dispatch(shader_of("band_part", e), {},
                                          {Use::read(view(args.in, in)), Use::write(args.out[0])}, params,
                                          CommandRecorder::lines(params.count));
  };
  return Match::yes(std::move(c));
}

struct ReverseParams {
  uint32_t count, sequence, sequence_step, batch, batch_step;
};

Match match_reverse_sequence(const MatchCall& m) {
  if (std::string why = refusal_of(m, {"x", "lengths"}); !why.empty()) return Match::no(why);
  if (!m.is_constant("lengths")) return Match::no("lengths that are checked while running");
  const ir::Shape& x = m.call.shape("x");
  const auto sequence = ops::axis_of(m.call, "seq_axis", x.rank()),
             batch = ops::axis_of(m.call, "batch_axis", x.rank());
  if (!sequence.ok() || !batch.ok()) return Match::no("axes that are not constant");
  if (*sequence == *batch) return Match::no("one axis twice");
  const ReverseParams params{u32(x.count()), u32(x[*sequence]), u32(x.count(*sequence + 1, x.rank())), u32(x[*batch]),
                             u32(x.count(*batch + 1, x.rank()))};
  const Element e = moved_element(m, "x");
  const int in = m.call.arg_index("x"), lengths = m.call.arg_index("lengths");
  KernelChoice c = choice_of(m, "reverse_sequence", {"x", "lengths"}, e);
  set_cost(c, m);
  c.record = [=](Recorder& recorder, const RecordArgs& args) {
    return recorder_of(recorder).dispatch(
        shader_of("reverse_sequence", e), {},
        {Use::read(view(args.in, in)), Use::read(view(args.in, lengths)), Use::write(args.out[0])}, params,
        CommandRecorder::lines(params.count));
  };
  return Match::yes(std::move(c));
}

}  // namespace

KernelFamily family_fill() {
  static const KernelDef defs[] = {{"fill", {"fill", "fill_like"}, match_fill},
                                   {"one_hot", {"one_hot"}, match_one_hot},
                                   {"band_part", {"band_part"}, match_band},
                                   {"reverse_sequence", {"reverse_sequence"}, match_reverse_sequence}};
  return {defs};
}

}  // namespace moka::devices::gpu
