// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/sha256.h"
#include "devices/gpu/common/groups.h"
#include "devices/gpu/kernels/family.h"
#include "ir/affine.h"
#include "ops/common/common.h"

namespace moka::devices::gpu {

namespace {

/// Which elements of x belong together, and which of gamma and beta belong to them (shaders/norm.comp).
struct Parameters {
  int64_t period = 1, step = 0, run = 1;
};

struct NormParams {
  uint32_t groups, members;
  float epsilon;
  AfterParams after;
  uint32_t period, step, run;
  GroupWalk::Params walk;
};

/// `shape` is that of x with axes split or merged.
Match normalized(const MatchCall& m, std::string_view kernel, const ir::Shape& shape, const ir::Ints& axes,
                 Parameters params, bool centerd) {
  if (std::string why = refusal_of_floats(m, centerd ? std::initializer_list<std::string_view>{"x", "gamma", "beta"}
                                                     : std::initializer_list<std::string_view>{"x"});
      !why.empty())
    return Match::no(why);
  const auto epsilon = m.call.number("epsilon");
  if (!epsilon.ok()) return Match::no("an epsilon that is not constant");
  const GroupWalk walk{features_of(m), ops::Groups(shape, axes)};
  const Element e = float_element(m);
  const int x = m.call.arg_index("x");
  const int gamma = centerd ? m.call.arg_index("gamma") : -1, beta = centerd ? m.call.arg_index("beta") : -1;
  const After after = after_of(m.epilogue);
  KernelChoice c = centerd ? choice_of(m, kernel, {"x", "gamma", "beta"}, e) : choice_of(m, kernel, {"x"}, e);
  c.in_place = x;
  c.epilogues = after.count;
  set_cost(c, m, 6 * static_cast<double>(shape.count()));
  c.record = [=, epsilon = static_cast<float>(*epsilon)](Recorder& recorder, const RecordArgs& args) -> Status {
    const Use in = Use::read(view(args.in, x));
    const auto given = [&](int arg) { return arg >= 0 ? Use::read(view(args.in, arg)) : in.unused(); };
    return recorder_of(recorder).dispatch(
        shader_name("norm", e),
        walk.constants({centerd, gamma >= 0, beta >= 0, after.functions[0].number, after.functions[1].number}),
        {in, given(gamma), given(beta), Use::write(args.out[0])},
        NormParams{walk.groups, walk.members, epsilon, AfterParams(after), u32(params.period), u32(params.step),
                   u32(params.run), walk.params},
        walk.work_groups());
  };
  return Match::yes(std::move(c));
}

Match match_layer_norm(const MatchCall& m) {
  const ir::Shape& x = m.call.shape("x");
  ir::Ints axes;
  if (m.call.has("axes")) {
    auto given = ops::axes_of(m.call, "axes", x.rank());
    if (!given.ok()) return Match::no("axes that are not constant");
    axes = *given;
  } else {
    for (int i = 0; i < x.rank(); i++) axes.push_back(i);
  }
  return normalized(m, "layer_norm", x, axes, {}, true);
}

Match match_instance_norm(const MatchCall& m) {
  const ir::Shape& x = m.call.shape("x");
  const int64_t inner = x.count(2, x.rank());
  return normalized(m, "instance_norm", {x[0] * x[1], inner}, {1}, {x[1], 1, std::max<int64_t>(inner, 1)}, true);
}

Match match_group_norm(const MatchCall& m) {
  const ir::Shape& x = m.call.shape("x");
  const auto groups = m.call.integer("groups");
  if (!groups.ok()) return Match::no("groups that are not constant");
  const int64_t inner = x.count(2, x.rank()), channels = x[1] / *groups;
  return normalized(m, "group_norm", {x[0] * *groups, channels * inner}, {1},
                    {*groups, channels, std::max<int64_t>(inner, 1)}, true);
}

Match match_l2_norm(const MatchCall& m) {
  const ir::Shape& x = m.call.shape("x");
  const int rank = x.rank();
  return normalized(m, "l2_norm", {x.count(0, rank - 3), x.count(rank - 3, rank)}, {1}, {}, false);
}

struct ChannelParams {
  uint32_t count, channels, inner;
  float epsilon;
  AfterParams after;
};

/// `a` and `b` are required, `scale` and `shift` are not.
Match by_channels(const MatchCall& m, std::string_view kernel, uint32_t number, std::string_view a, std::string_view b,
                  std::string_view scale, std::string_view shift, float epsilon) {
  if (std::string why = refusal_of_floats(m, {"x", a, b, scale, shift}); !why.empty()) return Match::no(why);
  const ir::Shape& shape = m.call.shape("x");
  const Element e = float_element(m);
  const auto index = [&](std::string_view p) { return m.call.arg_index(p); };
  const std::array<int, 5> in{index("x"), index(a), index(b), index(scale), index(shift)};
  const After after = after_of(m.epilogue);
  KernelChoice c = choice_of(m, kernel, {"x", a, b, scale, shift}, e);
  c.in_place = in[0];
  c.epilogues = after.count;
  set_cost(c, m);
  c.record = [=](Recorder& recorder, const RecordArgs& args) -> Status {
    std::vector<Use> uses;
    for (int i : in) uses.push_back(i >= 0 ? Use::read(view(args.in, i)) : uses[1].unused());
    uses.push_back(Use::write(args.out[0]));
    const auto n = static_cast<uint64_t>(shape.count());
    return recorder_of(recorder).dispatch(shader_name("channels", e), after.constants({number, in[3] >= 0, in[4] >= 0}),
                                          std::move(uses),
                                          ChannelParams{static_cast<uint32_t>(n), u32(shape[1]),
                                                        u32(shape.count(2, shape.rank())), epsilon, AfterParams(after)},
                                          CommandRecorder::lines(n));
  };
  return Match::yes(std::move(c));
}

/// The known statistics of a batch norm.
struct NormConstants {
  std::array<int, 4> args;  ///< mean, variance, gamma, beta; -1: none
  int64_t channels;
  double epsilon;

  Result<std::vector<float>> scales(PrepareContext& context) const {
    std::array<std::vector<double>, 4> numbers;
    for (size_t k = 0; k < 4; k++) {
      numbers[k].assign(static_cast<size_t>(channels), k == 1 || k == 2 ? 1.0 : 0.0);
      if (args[k] < 0) continue;
      const ir::TensorView v = MOKA_TRY(context.constant(args[k]));
      for (int64_t i = 0; i < channels; i++) numbers[k][static_cast<size_t>(i)] = ir::load_f64(v, i);
    }
    const ir::Affine a = ir::affine_of_norm(numbers[0], numbers[1], numbers[2], numbers[3], epsilon);
    std::vector<float> pairs;
    for (size_t i = 0; i < static_cast<size_t>(channels); i++) {
      pairs.push_back(static_cast<float>(ir::Affine::at(a.scale, i)));
      pairs.push_back(static_cast<float>(ir::Affine::at(a.shift, i)));
    }
    return pairs;
  }
};

/// Whether an operation becomes part of a chain with neighbors.
bool is_chained(const ir::Op& op) {
  return op.has_trait(ir::Trait::elementwise) && op.output_count() == 1 && op.output()->type.is_tensor() &&
         ir::is_float(op.output()->type.dtype());
}

/// Why the norm is a dispatch of its own; "": another one applies it, as a rule. Where memory lies may prevent that.
std::string why_own_dispatch(const MatchCall& m, bool is_known) {
  const ir::Op* op = m.call.op;
  if (op == nullptr) return {};
  if (float_element(m) != Element::f32) return "a dispatch of its own: its results are float16";
  if (!is_known) return "a dispatch of its own: its numbers are not constant";
  const ir::Value* y = op->output();
  if (y->users().size() == 1 && is_chained(*y->users()[0])) return {};
  const ir::Value* x = op->input("x");
  while (x->producer() != nullptr && x->producer()->has_trait(ir::Trait::alias) && x->users().size() == 1)
    x = x->producer()->input(x->producer()->version().params[0].name);
  if (x->producer() == nullptr) return "a dispatch of its own: its input is the model's";
  if (x->users().size() != 1) return "a dispatch of its own: others read its input, too";
  const ir::Op& before = *x->producer();
  if (is_chained(before) || (before.type_name() == "batch_norm")) return {};
  if (before.type_name() != "conv" && before.type_name() != "conv_transpose")
    return cat("a dispatch of its own: its input is of ", before.type_name());
  if (!m.epilogue.empty()) return "a dispatch of its own: it has functions";
  const ir::Op* weights = before.input("weight")->producer();
  if (weights != nullptr && weights->type_name().starts_with("constexpr"))
    return "a dispatch of its own: the weights before it are compressed";
  return {};
}

/// The norm as a factor and an addend for each channel, which other dispatches can apply.
void describe_norm(CommandRecorder& recorder, const Norm& norm, const ir::Shape& shape, const After& after) {
  Chain chain;
  chain.size = {u32(norm.inner), u32(norm.channels), u32(shape[0])};
  Use scales = norm.scales;
  scales.element = 4;
  chain.inputs = {{norm.from, {1, u32(norm.inner), u32(norm.inner * norm.channels)}},
                  {scales, {0, 2, 0}},
                  {scales.from(1), {0, 2, 0}}};
  chain.out = norm.out;
  chain.add_binary(B_MUL, Chain::input(0), Chain::input(1));
  chain.add_binary(B_ADD, chain.last(), Chain::input(2));
  for (const Function& f : after.functions)
    if (f.number != F_NONE) chain.add(f.number, chain.last(), f.a, f.b);
  recorder.is_chain(std::move(chain));
  if (after.count == 0) recorder.is_norm(norm);
}

Match match_batch_norm(const MatchCall& m) {
  const auto epsilon = m.call.number("epsilon");
  if (!epsilon.ok()) return Match::no("an epsilon that is not constant");
  Match match = by_channels(m, "batch_norm", CHANNELS_BATCH_NORM, "mean", "variance", "gamma", "beta",
                            static_cast<float>(*epsilon));
  bool is_known = true;
  for (const char* p : {"mean", "variance", "gamma", "beta"}) is_known &= !m.call.has(p) || m.is_constant(p);
  if (match.choice == nullptr) return match;
  KernelChoice& c = *match.choice;
  c.note = why_own_dispatch(m, is_known);
  if (!is_known || float_element(m) != Element::f32) return match;
  const ir::Shape& shape = m.call.shape("x");
  const auto index = [&](std::string_view p) { return m.call.arg_index(p); };
  const NormConstants constants{{index("mean"), index("variance"), index("gamma"), index("beta")}, shape[1], *epsilon};
  const auto held = std::make_shared<Uploaded>();
  c.prepare = [=](PrepareContext& context) -> Status {
    const std::vector<float> scales = MOKA_TRY(constants.scales(context));
    const std::span<const std::byte> bytes = std::as_bytes(std::span(scales));
    // Other norms may have the same mean.
    held->buffer = MOKA_TRY(context.upload(constants.args[0], cat("norm ", base64(sha256(bytes))), bytes.size(),
                                           [&](const ir::TensorView&, std::byte* to) -> Status {
                                             std::copy(bytes.begin(), bytes.end(), to);
                                             return {};
                                           }));
    return {};
  };
  c.record = [=, x = index("x"), after = after_of(m.epilogue), alone = std::move(c.record)](
                 Recorder& recorder, const RecordArgs& args) -> Status {
    MOKA_TRY(alone(recorder, args));
    const Norm norm{Use::read(held->buffer, 8), Use::read(view(args.in, x)), Use::write(args.out[0]),
                    constants.channels, shape.count(2, shape.rank())};
    describe_norm(recorder_of(recorder), norm, shape, after);
    return {};
  };
  return match;
}

Match match_softplus(const MatchCall& m) {
  return by_channels(m, "softplus_parametric", CHANNELS_SOFTPLUS, "alpha", "beta", "alpha", "beta", 0);
}

struct ResponseParams {
  uint32_t count, channels, inner;
  int32_t before, after;
  float alpha, beta, k;
};

Match match_response_norm(const MatchCall& m) {
  if (std::string why = refusal_of_floats(m, {"x"}); !why.empty()) return Match::no(why);
  const ir::Shape& x = m.call.shape("x");
  const auto size = m.call.integer("size");
  const auto alpha = m.call.number("alpha"), beta = m.call.number("beta"), k = m.call.number("k");
  if (!size.ok() || !alpha.ok() || !beta.ok() || !k.ok()) return Match::no("a parameter that is not constant");
  const int axis = x.rank() - 3;
  const int64_t channels = x[axis];
  const ResponseParams params{u32(x.count()),
                              u32(channels),
                              u32(x.count(axis + 1, x.rank())),
                              static_cast<int32_t>(std::min(*size / 2, channels)),
                              static_cast<int32_t>(std::min((*size - 1) / 2, channels)),
                              static_cast<float>(*alpha / static_cast<double>(*size)),
                              static_cast<float>(*beta),
                              static_cast<float>(*k)};
  const Element e = float_element(m);
  const int in = m.call.arg_index("x");
  KernelChoice c = choice_of(m, "local_response_norm", {"x"}, e);
  set_cost(c, m, static_cast<double>(x.count() * std::min(*size, channels)));
  c.record = [=](Recorder& recorder, const RecordArgs& args) -> Status {
    return recorder_of(recorder).dispatch(shader_name("local_response_norm", e), {},
                                          {Use::read(view(args.in, in)), Use::write(args.out[0])}, params,
                                          CommandRecorder::lines(params.count));
  };
  return Match::yes(std::move(c));
}

}  // namespace

KernelFamily family_norm() {
  static const KernelDef defs[] = {{"layer_norm", {"layer_norm"}, match_layer_norm},
                                   {"instance_norm", {"instance_norm"}, match_instance_norm},
                                   {"group_norm", {"moka_group_norm"}, match_group_norm},
                                   {"l2_norm", {"l2_norm"}, match_l2_norm},
                                   {"batch_norm", {"batch_norm"}, match_batch_norm},
                                   {"softplus_parametric", {"softplus_parametric"}, match_softplus},
                                   {"local_response_norm", {"local_response_norm"}, match_response_norm}};
  return {defs};
}

}  // namespace moka::devices::gpu
