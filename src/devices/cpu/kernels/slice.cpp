#include "devices/cpu/kernels/family.h"
#include "ops/common/common.h"
#include "ops/common/slicing.h"
#include "ops/common/strided.h"

namespace moka::devices::cpu {

namespace {

/// A slice along one axis: element i of the result is element start + i * step of x.
struct Cut {
  int64_t start = 0, step = 1, size = 0;
};

/// The slices along all axes of x; nullopt: they are known only while running.
std::optional<std::vector<Cut>> cuts_of(const ir::OpCall& call) {
  const ir::Shape& x = call.shape("x");
  std::vector<Cut> cuts;
  if (call.version().def->name == "slice_by_index") {
    for (const char* p : {"begin", "end", "stride"})
      if (call.has(p) && !call.is_known(p)) return std::nullopt;
    auto slice = ops::resolve_slice(call, x);
    if (!slice.ok()) return std::nullopt;
    for (int i = 0; i < slice->rank; i++)
      cuts.push_back({slice->axes[i].start, slice->axes[i].step, slice->axes[i].size});
    return cuts;
  }
  if (call.version().def->name == "reverse") {
    for (int i = 0; i < x.rank(); i++) cuts.push_back({0, 1, x[i]});
    if (!call.has("axes")) {
      for (Cut& c : cuts) c = {c.size - 1, -1, c.size};
      return cuts;
    }
    auto axes = ops::axes_of(call, "axes", x.rank());
    if (!axes.ok()) return std::nullopt;
    for (int64_t a : *axes) cuts[static_cast<size_t>(a)] = {x[static_cast<int>(a)] - 1, -1, x[static_cast<int>(a)]};
    return cuts;
  }
  const ir::TensorView *begin = call.value("begin"), *size = call.value("size");
  if (begin == nullptr || size == nullptr || begin->count() != x.rank() || size->count() != x.rank())
    return std::nullopt;
  for (int i = 0; i < x.rank(); i++) {
    const int64_t b = ir::load_i64(*begin, i), n = ir::load_i64(*size, i), first = b < 0 ? b + x[i] : b;
    cuts.push_back({first, 1, n == -1 ? x[i] - first : n});
  }
  return cuts;
}

/// Where the result begins in x, if it is one contiguous run of it.
std::optional<int64_t> run_of(std::span<const Cut> cuts, const ir::Shape& x) {
  int64_t at = 0;
  bool inside = false;  // whether an axis before this one keeps several elements
  const auto strides = x.strides();
  for (size_t i = 0; i < cuts.size(); i++) {
    const Cut& c = cuts[i];
    if (inside && (c.size != x[static_cast<int>(i)] || c.step != 1)) return std::nullopt;
    if (c.size > 1 && c.step != 1) return std::nullopt;
    inside |= c.size > 1;
    at += c.start * strides[i];
  }
  return at;
}

Match match_slice(const MatchCall& m) {
  const ir::Shape &x = m.call.shape("x"), &y = m.outputs[0].shape();
  const ir::DType dtype = m.call.dtype("x");
  if (!has_bytes(dtype)) return Match::no(cat("element type ", dtype));
  if (y.count() == 0) return Match::no("an empty result");
  auto cuts = cuts_of(m.call);
  if (!cuts) return Match::no("bounds that are known only while running");
  int64_t count = 1;
  for (size_t i = 0; i < cuts->size(); i++) {
    const Cut& c = (*cuts)[i];
    const int64_t last = c.start + (c.size - 1) * c.step, dim = x[static_cast<int>(i)];
    if (c.size < 1 || std::min(c.start, last) < 0 || std::max(c.start, last) >= dim)
      return Match::no("bounds outside of x");
    count *= c.size;
  }
  if (count != y.count()) return Match::no("another shape than planned");

  const auto in = static_cast<size_t>(m.call.arg_index("x"));
  KernelChoice c;
  c.kernel = "cpu.slice";
  const Layout layout = layout_of(m, "x");
  // Whole groups of channels of one image.
  if (layout.kind == Layout::Kind::channel_blocked && y.rank() == x.rank() && x[0] == 1 &&
      (*cuts)[1].start % layout.block == 0 && (*cuts)[1].step == 1 &&
      (y[1] % layout.block == 0 || (*cuts)[1].start + y[1] == x[1]) && y.count(2, y.rank()) == x.count(2, x.rank()) &&
      std::all_of(cuts->begin() + 2, cuts->end(), [](const Cut& k) { return k.step == 1; })) {
    c.kernel = "cpu.slice.blocked";
    c.in = in_layouts(m, "x", layout);
    c.out = {layout};
    const int64_t at = (*cuts)[1].start * x.count(2, x.rank()), n = storage_count(y, layout);
    c.cuts.push_back({static_cast<int>(in), 0, static_cast<size_t>(at) * sizeof(float)});
    c.cost = cost_of(m, 0, traffic(m));
    c.run = [=](const KernelArgs& args) -> Status {
      std::copy_n(args.in[in].as<float>() + at, n, args.out[0].as<float>());
      return {};
    };
    return Match::yes(std::move(c));
  }
  int64_t first = 0;
  ops::StridedCopy copy;
  const auto strides = x.strides();
  int64_t to = count;
  for (size_t i = 0; i < cuts->size(); i++) {
    const Cut& k = (*cuts)[i];
    to /= k.size;
    first += k.start * strides[i];
    copy.add(k.size, to, k.step * strides[i]);
  }
  if (auto at = run_of(*cuts, x))
    c.cuts.push_back({static_cast<int>(in), 0, static_cast<size_t>(*at) * static_cast<size_t>(ir::bits(dtype)) / 8});
  c.cost = cost_of(m, 0, 2 * static_cast<double>(y.count()) * ir::bits(dtype) / 8);
  c.run = [=](const KernelArgs& args) -> Status {
    copy.run(args.out[0], 0, args.in[in], first);
    return {};
  };
  return Match::yes(std::move(c));
}

}  // namespace

KernelFamily family_slice() {
  static const KernelDef defs[] = {
      {.name = "cpu.slice", .ops = {"slice_by_index", "slice_by_size", "reverse"}, .match = match_slice}};
  return {200, defs};
}

}  // namespace moka::devices::cpu
