// SPDX-License-Identifier: Apache-2.0
#include "devices/gpu/common/copies.h"
#include "devices/gpu/common/groups.h"
#include "devices/gpu/kernels/family.h"
#include "ops/common/common.h"

namespace moka::devices::gpu {

namespace {

struct SumParams {
  uint32_t groups, members;
  GroupWalk::Params walk;
};

Match match_cumsum(const MatchCall& m) {
  if (std::string why = refusal_of(m, {"x"}); !why.empty()) return Match::no(why);
  const ir::Shape& x = m.call.shape("x");
  const auto axis = ops::axis_of(m.call, "axis", x.rank());
  const auto exclusive = m.call.flag("exclusive"), reverse = m.call.flag("reverse");
  if (!axis.ok() || !exclusive.ok() || !reverse.ok()) return Match::no("a parameter that is not constant");
  const GroupWalk walk{features_of(m), ops::Groups(x, {*axis})};
  const Element e = ir::is_float(m.call.dtype("x")) ? float_element(m) : Element::i32;
  const int in = m.call.arg_index("x");
  KernelChoice c = choice_of(m, "cumsum", {"x"}, e);
  set_cost(c, m, 8 * static_cast<double>(x.count()));
  c.record = [=, exclusive = *exclusive, reverse = *reverse](Recorder& recorder, const RecordArgs& args) {
    return recorder_of(recorder).dispatch(shader_name("cumsum", e), walk.constants({exclusive, reverse}),
                                          {Use::read(view(args.in, in)), Use::write(args.out[0])},
                                          SumParams{walk.groups, walk.members, walk.params}, walk.work_groups());
  };
  return Match::yes(std::move(c));
}

/// Each element is compared with all of its row.
constexpr int64_t kLongestRow = 1 << 16;

struct RankParams {
  uint32_t count, n, inner, k;
};

Match match_sort(const MatchCall& m) {
  if (std::string why = refusal_of(m, {"x"}); !why.empty()) return Match::no(why);
  const bool indices_only = m.call.version().def->name == "argsort";
  const ir::Shape &x = m.call.shape("x"), &y = m.outputs[0].shape();
  const auto axis = ops::axis_of(m.call, "axis", x.rank());
  const auto ascending = m.call.flag("ascending");
  if (!axis.ok() || !ascending.ok()) return Match::no("a parameter that is not constant");
  if (x[*axis] > kLongestRow) return Match::no("rows of more than 2^16 elements");
  if (m.call.dtype("x") == ir::DType::boolean) return Match::no("element type bool");
  const RankParams params{u32(x.count()), u32(x[*axis]), u32(x.count(*axis + 1, x.rank())), u32(y[*axis])};
  const Element e = moved_element(m, "x");
  const bool values = !indices_only, indices = indices_only || m.outputs.size() > 1;
  const int in = m.call.arg_index("x");
  KernelChoice c = choice_of(m, indices_only ? "argsort" : "topk", {"x"}, e);
  set_cost(c, m, static_cast<double>(x.count()) * static_cast<double>(x[*axis]));
  c.record = [=, ascending = *ascending](Recorder& recorder, const RecordArgs& args) {
    const Use unused = Use::read(view(args.in, in));
    return recorder_of(recorder).dispatch(shader_name("rank", e), {ascending, values, indices},
                                          {Use::read(view(args.in, in)), values ? Use::write(args.out[0]) : unused,
                                           indices ? Use::write(args.out[values ? 1 : 0]) : unused},
                                          params, CommandRecorder::lines(params.count));
  };
  return Match::yes(std::move(c));
}

}  // namespace

KernelFamily family_order() {
  static const KernelDef defs[] = {{"cumsum", {"cumsum"}, match_cumsum}, {"sort", {"topk", "argsort"}, match_sort}};
  return {defs};
}

}  // namespace moka::devices::gpu
