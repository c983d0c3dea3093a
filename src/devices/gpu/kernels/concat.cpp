// SPDX-License-Identifier: Apache-2.0
#include "devices/gpu/common/copies.h"
#include "devices/gpu/kernels/family.h"
#include "ops/common/common.h"
#include "ops/common/slicing.h"

namespace moka::devices::gpu {

namespace {

/// Tensors joined along an axis: where each begins in the whole, and its run in each row.
struct Joined {
  int64_t rows = 1, whole = 0;  // elements of a row of the whole
  std::vector<int64_t> at, run;
  int64_t step = 0, inner = 0;  // interleaved: elements between runs of `inner`; 0: one run

  void add(int64_t n) {
    at.push_back(whole);
    run.push_back(n);
    whole += n;
  }
  GridCopy copy_of(size_t part) const {
    GridCopy c;
    c.grid.add(rows, whole, run[part]);
    if (step > 0) {
      c.grid.add(run[part] / inner, step, inner);
      c.grid.add(inner, 1, 1);
      c.to = static_cast<int64_t>(part) * inner;
    } else {
      c.grid.add(run[part], 1, 1);
      c.to = at[part];
    }
    return c;
  }
};

Match match_concat(const MatchCall& m) {
  for (const ir::Arg& a : m.call.args("values"))
    if (!a.type->is_tensor() || a.type->dtype() != m.outputs[0].dtype()) return Match::no("several element types");
  if (std::string why = refusal_of(m, {"values"}); !why.empty()) return Match::no(why);
  const auto values = m.call.args("values");
  const ir::Shape& y = m.outputs[0].shape();
  // The axis of `stack`, too, counts from the end of the result's shape.
  const auto axis = ops::axis_of(m.call, "axis", y.rank());
  const auto interleave = m.call.version().def->name == "stack" ? Result<bool>(false) : m.call.flag("interleave");
  if (!axis.ok() || !interleave.ok()) return Match::no("an axis that is not constant");
  Joined joined;
  joined.rows = y.count(0, *axis);
  for (const ir::Arg& a : values) joined.add(a.type->shape().count() / joined.rows);
  if (*interleave) {
    joined.inner = y.count(*axis + 1, y.rank());
    joined.step = joined.inner * static_cast<int64_t>(values.size());
  }
  const Element e = moved_element(m, "values");
  const auto first = static_cast<size_t>(m.call.arg_index("values"));
  KernelChoice c = choice_of(m, "concat", {"values"}, e);
  for (size_t i = 0; joined.rows == 1 && !*interleave && i < values.size(); i++)
    c.joins.push_back({static_cast<int>(first + i), 0, static_cast<size_t>(joined.at[i]) * size_of(e)});
  set_cost(c, m);
  c.record = [=](Recorder& recorder, const RecordArgs& args) -> Status {
    Use y = Use::write(args.out[0]);
    y.parts = recorder_of(recorder).new_parts();
    for (size_t i = 0; i < joined.run.size(); i++)
      MOKA_TRY(record_copy(recorder, joined.copy_of(i), size_of(e), Use::read(args.in[first + i]), y));
    return {};
  };
  return Match::yes(std::move(c));
}

Match match_split(const MatchCall& m) {
  const ir::Shape& x = m.call.shape("x");
  if (std::string why = refusal_of(m, {"x"}); !why.empty()) return Match::no(why);
  const auto axis = ops::axis_of(m.call, "axis", x.rank());
  if (!axis.ok()) return Match::no("an axis that is not constant");
  Joined joined;
  joined.rows = x.count(0, *axis);
  for (const ir::Type& t : m.outputs) joined.add(t.shape().count() / joined.rows);
  const Element e = moved_element(m, "x");
  const int in = m.call.arg_index("x");
  KernelChoice c = choice_of(m, "split", {"x"}, e);
  for (size_t i = 0; joined.rows == 1 && i < m.outputs.size(); i++)
    c.cuts.push_back({in, static_cast<int>(i), static_cast<size_t>(joined.at[i]) * size_of(e)});
  set_cost(c, m);
  c.record = [=](Recorder& recorder, const RecordArgs& args) -> Status {
    for (size_t i = 0; i < joined.run.size(); i++) {
      GridCopy part;
      part.grid.add(joined.rows, joined.run[i], joined.whole);
      part.grid.add(joined.run[i], 1, 1);
      part.from = joined.at[i];
      MOKA_TRY(record_copy(recorder, part, size_of(e), Use::read(view(args.in, in)), Use::write(args.out[i])));
    }
    return {};
  };
  return Match::yes(std::move(c));
}

/// Works in place when nothing else reads x, and then copies only the update.
Match match_slice_update(const MatchCall& m) {
  if (std::string why = refusal_of(m, {"x", "update"}); !why.empty()) return Match::no(why);
  const ir::Shape& shape = m.call.shape("x");
  for (const char* p : {"begin", "end", "stride"})
    if (m.call.has(p) && !m.call.is_known(p)) return Match::no("bounds that are known only while running");
  const auto slice = ops::resolve_slice(m.call, shape);
  if (!slice.ok()) return Match::no("bounds outside of x");
  if (!(slice->shape() == m.call.shape("update"))) return Match::no("another shape than planned");
  GridCopy copy;
  const auto to = shape.strides();
  int64_t from = m.call.shape("update").count();
  for (int i = 0; i < slice->rank; i++) {
    const ops::Slice::Axis& a = slice->axes[i];
    from /= a.size;
    copy.to += a.start * to[static_cast<size_t>(i)];
    copy.grid.add(a.size, a.step * to[static_cast<size_t>(i)], from);
  }
  if (!can_copy(copy.grid)) return Match::no(kManyDimensions);
  const Element e = moved_element(m, "x");
  const int x = m.call.arg_index("x"), update = m.call.arg_index("update");
  KernelChoice c = choice_of(m, "slice_update", {"x", "update"}, e);
  c.in_place = x;
  set_cost(c, m);
  c.record = [=](Recorder& recorder, const RecordArgs& args) -> Status {
    record_whole(recorder, view(args.in, x), args.out[0]);
    return record_copy(recorder, copy, size_of(e), Use::read(view(args.in, update)), Use::update(args.out[0]));
  };
  return Match::yes(std::move(c));
}

}  // namespace

KernelFamily family_concat() {
  static const KernelDef defs[] = {{"concat", {"concat", "stack"}, match_concat},
                                   {"split", {"split"}, match_split},
                                   {"slice_update", {"slice_update"}, match_slice_update}};
  return {defs};
}

}  // namespace moka::devices::gpu
