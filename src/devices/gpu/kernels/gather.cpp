// SPDX-License-Identifier: Apache-2.0
#include "devices/gpu/common/copies.h"
#include "devices/gpu/kernels/family.h"
#include "ops/common/common.h"
#include "ops/common/indexing.h"

namespace moka::devices::gpu {

namespace {

/// How indices address a tensor, in the form that shaders/gather.comp and scatter.comp use.
struct Addresses {
  struct Components {
    std::array<int32_t, ir::kMaxRank> size{};
    std::array<uint32_t, ir::kMaxRank> step{};
  };
  bool along = false;
  uint32_t depth = 1, inner = 1, n = 1, outer = 1, outer_step = 0, outer_of_batch = 1;
  Components components;

  /// Indices of an axis: of rank 1, or with `along` an index for each element.
  static Addresses of_axis(const ir::Shape& x, int axis, int64_t n, bool along) {
    Addresses a;
    a.along = along;
    a.n = u32(n);
    a.outer = u32(x.count(0, axis));
    a.inner = u32(x.count(axis + 1, x.rank()));
    a.outer_step = u32(x.count(axis, x.rank()));
    a.components.size[0] = static_cast<int32_t>(x[axis]);
    a.components.step[0] = a.inner;
    return a;
  }
  /// `n` vectors of indices for each of the `batch` first dimensions.
  static Addresses of_vectors(const ir::Shape& x, int batch, int depth, int64_t n) {
    Addresses a;
    a.depth = static_cast<uint32_t>(depth);
    a.n = u32(n);
    a.outer = u32(x.count(0, batch));
    a.outer_step = u32(x.count(batch, x.rank()));
    a.inner = u32(x.count(batch + depth, x.rank()));
    const auto steps = x.strides();
    for (int d = 0; d < depth; d++) {
      const auto at = static_cast<size_t>(d);
      a.components.size[at] = static_cast<int32_t>(x[batch + d]);
      a.components.step[at] = u32(steps[static_cast<size_t>(batch + d)]);
    }
    return a;
  }
};

/// Constant indices have been checked.
std::string refusal_of_indices(const MatchCall& m, const Result<ops::Indexer>& indexer) {
  if (!indexer.ok()) return "settings that are not constant";
  if (indexer->strict && !m.is_constant("indices")) return "indices that are checked while running";
  return {};
}

struct GatherParams {
  uint32_t count, inner, n, outer_of_batch, outer_step;
  Addresses::Components components;
};

Match match_gather(const MatchCall& m) {
  if (std::string why = refusal_of(m, {"x"}); !why.empty()) return Match::no(why);
  const std::string_view kind = name_of_index(features_of(m), m.call.dtype("indices"));
  if (kind.empty()) return Match::no(cat("indices of ", m.call.dtype("indices")));
  if (m.call.shape("indices").count() == 0) return Match::no("an empty tensor");
  if (std::string why = refusal_of_indices(m, ops::Indexer::of(m.call)); !why.empty()) return Match::no(why);
  const std::string_view op = m.call.version().def->name;
  const ir::Shape &x = m.call.shape("x"), &indices = m.call.shape("indices");
  const auto batch = op == "gather_along_axis" ? Result<int>(0) : ops::batch_dims_of(m.call);
  const auto axis = op == "gather_nd" ? Result<int>(0) : ops::axis_of(m.call, "axis", x.rank());
  if (!batch.ok() || !axis.ok()) return Match::no("settings that are not constant");
  Addresses a;
  if (op == "gather_nd") {
    const int last = indices.rank() - 1;
    a = Addresses::of_vectors(x, *batch, static_cast<int>(indices[last]), indices.count(*batch, last));
  } else if (op == "gather_along_axis") {
    a = Addresses::of_axis(x, *axis, indices[*axis], true);
  } else {
    a = Addresses::of_axis(x, *axis, indices.count(*batch, indices.rank()), false);
    a.outer_of_batch = u32(x.count(*batch, *axis));
  }
  const Element e = moved_element(m, "x");
  const int in = m.call.arg_index("x"), at = m.call.arg_index("indices");
  KernelChoice c = choice_of(m, "gather", {"x", "indices"}, e);
  set_cost(c, m);
  c.record = [=](Recorder& recorder, const RecordArgs& args) {
    const auto n = static_cast<uint64_t>(args.out[0].shape.count());
    return recorder_of(recorder).dispatch(
        cat("gather_u", 8 * size_of(e), "_", kind), {a.along, a.depth},
        {Use::read(view(args.in, in)), Use::read(view(args.in, at)), Use::write(args.out[0])},
        GatherParams{static_cast<uint32_t>(n), a.inner, a.n, a.outer_of_batch, a.outer_step, a.components},
        CommandRecorder::lines(n));
  };
  return Match::yes(std::move(c));
}

struct ScatterParams {
  uint32_t count, inner, n, outer_step;
  Addresses::Components components;
};

Match match_scatter(const MatchCall& m) {
  if (std::string why = refusal_of(m, {"data", "indices", "updates"}); !why.empty()) return Match::no(why);
  const auto indexer = ops::Indexer::of(m.call);
  if (std::string why = refusal_of_indices(m, indexer); !why.empty()) return Match::no(why);
  const auto rule = ops::combine_of(m.call);
  const std::string_view op = m.call.version().def->name;
  const ir::Shape &x = m.call.shape("data"), &indices = m.call.shape("indices");
  const auto axis = op == "scatter_nd" ? Result<int>(0) : ops::axis_of(m.call, "axis", x.rank());
  if (!rule.ok() || !axis.ok()) return Match::no("settings that are not constant");
  Addresses a;
  if (op == "scatter_nd") {
    const int last = indices.rank() - 1;
    a = Addresses::of_vectors(x, 0, static_cast<int>(indices[last]), indices.count(0, last));
  } else {
    const bool along = op == "scatter_along_axis";
    a = Addresses::of_axis(x, *axis, along ? indices[*axis] : indices.count(), along);
  }
  static_assert(static_cast<int>(ops::Combine::min) == SCATTER_MIN);
  const ir::DType dtype = m.call.dtype("data");
  const Element e = dtype == ir::DType::fp32 ? float_element(m) : *element_of(features_of(m), dtype);
  const int data = m.call.arg_index("data"), at = m.call.arg_index("indices"), updates = m.call.arg_index("updates");
  KernelChoice c = choice_of(m, "scatter", {"data", "indices", "updates"}, e);
  c.in_place = data;
  const uint64_t lanes = uint64_t{a.outer} * a.inner;
  set_cost(c, m, static_cast<double>(a.n) * static_cast<double>(lanes));
  c.record = [=, number = static_cast<uint32_t>(*rule), wraps = indexer->wraps](Recorder& recorder,
                                                                                const RecordArgs& args) -> Status {
    record_whole(recorder, view(args.in, data), args.out[0]);
    return recorder_of(recorder).dispatch(
        shader_name("scatter", e), {a.along, a.depth, number, wraps},
        {Use::read(view(args.in, at)), Use::read(view(args.in, updates)), Use::update(args.out[0])},
        ScatterParams{static_cast<uint32_t>(lanes), a.inner, a.n, a.outer_step, a.components},
        CommandRecorder::lines(lanes));
  };
  return Match::yes(std::move(c));
}

}  // namespace

KernelFamily family_gather() {
  static const KernelDef defs[] = {{"gather", {"gather", "gather_along_axis", "gather_nd"}, match_gather},
                                   {"scatter", {"scatter", "scatter_along_axis", "scatter_nd"}, match_scatter}};
  return {defs};
}

}  // namespace moka::devices::gpu
