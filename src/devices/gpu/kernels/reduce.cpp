// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "devices/gpu/common/groups.h"
#include "devices/gpu/kernels/family.h"
#include "ops/common/common.h"
#include "ops/common/reduction.h"

namespace moka::devices::gpu {

namespace {

struct Kind {
  std::string_view op;
  uint32_t number;
  bool whole;  // of integers, too
};

constexpr Kind kKinds[] = {{"reduce_sum", R_SUM, true},          {"reduce_mean", R_MEAN, false},
                           {"reduce_max", R_MAX, true},          {"reduce_min", R_MIN, true},
                           {"reduce_prod", R_PROD, true},        {"reduce_l1_norm", R_L1, true},
                           {"reduce_l2_norm", R_L2, false},      {"reduce_sum_square", R_SUM_SQUARE, true},
                           {"reduce_log_sum", R_LOG_SUM, false}, {"reduce_log_sum_exp", R_LOG_SUM_EXP, false}};

struct ReduceParams {
  uint32_t groups, members;
  AfterParams after;
  GroupWalk::Params walk;
};

/// The element type in which x arrives, or float16 where the result is.
Element input_element(const MatchCall& m) {
  const ir::DType dtype = m.call.dtype("x");
  const bool half = m.layouts[static_cast<size_t>(m.call.arg_index("x"))].half;
  return *element_of(features_of(m), dtype, dtype == ir::DType::fp32 && half ? Layout{}.as_half() : Layout{});
}

Match match_reduce(const MatchCall& m) {
  if (std::string why = refusal_of(m, {"x"}); !why.empty()) return Match::no(why);
  const std::string_view op = m.call.version().def->name;
  const auto* kind = std::find_if(std::begin(kKinds), std::end(kKinds), [&](auto& k) { return k.op == op; });
  const bool floats = ir::is_float(m.call.dtype("x"));
  if (!floats && !kind->whole) return Match::no("integers, which need sums of more bits");
  const ir::Shape& shape = m.call.shape("x");
  auto axes = ops::reduced_axes(m.call, shape.rank());
  if (!axes.ok()) return Match::no("axes that are not constant");
  const GroupWalk walk{features_of(m), ops::Groups(shape, *axes)};
  const Element e = floats ? float_element(m) : Element::i32;
  const int x = m.call.arg_index("x");
  const After after = floats ? after_of(m.epilogue) : After{};
  KernelChoice c = choice_of(m, "reduce", {"x"}, e);
  c.epilogues = after.count;
  set_cost(c, m, static_cast<double>(shape.count()));
  c.record = [=, number = kind->number](Recorder& recorder, const RecordArgs& args) -> Status {
    return recorder_of(recorder).dispatch(
        shader_name("reduce", e), walk.constants({number, after.functions[0].number, after.functions[1].number}),
        {Use::read(view(args.in, x)), Use::write(args.out[0])},
        ReduceParams{walk.groups, walk.members, AfterParams(after), walk.params}, walk.work_groups());
  };
  return Match::yes(std::move(c));
}

struct ReduceArgParams {
  uint32_t groups, members;
  GroupWalk::Params walk;
};

Match match_reduce_arg(const MatchCall& m) {
  if (std::string why = refusal_of(m, {"x"}); !why.empty()) return Match::no(why);
  const ir::Shape& shape = m.call.shape("x");
  const auto axis = ops::axis_of(m.call, "axis", shape.rank());
  if (!axis.ok()) return Match::no("an axis that is not constant");
  const GroupWalk walk{features_of(m), ops::Groups(shape, {*axis})};
  const Element e = input_element(m);
  const int x = m.call.arg_index("x");
  const bool least = m.call.version().def->name == "reduce_argmin";
  KernelChoice c = choice_of(m, "reduce_arg", {"x"}, e);
  set_cost(c, m, static_cast<double>(shape.count()));
  c.record = [=](Recorder& recorder, const RecordArgs& args) -> Status {
    return recorder_of(recorder).dispatch(cat("reduce_arg_", name_of(e), "_i32"), walk.constants({least}),
                                          {Use::read(view(args.in, x)), Use::write(args.out[0])},
                                          ReduceArgParams{walk.groups, walk.members, walk.params}, walk.work_groups());
  };
  return Match::yes(std::move(c));
}

Match match_softmax(const MatchCall& m) {
  if (std::string why = refusal_of_floats(m, {"x"}); !why.empty()) return Match::no(why);
  const ir::Shape& shape = m.call.shape("x");
  const auto axis = ops::axis_of(m.call, "axis", shape.rank());
  if (!axis.ok()) return Match::no("an axis that is not constant");
  const GroupWalk walk{features_of(m), ops::Groups(shape, {*axis})};
  const Element e = float_element(m);
  const int x = m.call.arg_index("x");
  const After after = after_of(m.epilogue);
  KernelChoice c = choice_of(m, "softmax", {"x"}, e);
  c.in_place = x;
  c.epilogues = after.count;
  set_cost(c, m, 8 * static_cast<double>(shape.count()));
  c.record = [=](Recorder& recorder, const RecordArgs& args) -> Status {
    return recorder_of(recorder).dispatch(
        shader_name("softmax", e), walk.constants({after.functions[0].number, after.functions[1].number}),
        {Use::read(view(args.in, x)), Use::write(args.out[0])},
        ReduceParams{walk.groups, walk.members, AfterParams(after), walk.params}, walk.work_groups());
  };
  return Match::yes(std::move(c));
}

}  // namespace

KernelFamily family_reduce() {
  static const auto* reductions = [] {
    auto* v = new std::vector<std::string_view>;
    for (const Kind& k : kKinds) v->push_back(k.op);
    return v;
  }();
  static const KernelDef defs[] = {{"reduce", *reductions, match_reduce},
                                   {"reduce_arg", {"reduce_argmax", "reduce_argmin"}, match_reduce_arg},
                                   {"softmax", {"softmax"}, match_softmax}};
  return {defs};
}

}  // namespace moka::devices::gpu
