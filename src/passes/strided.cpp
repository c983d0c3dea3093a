// SPDX-License-Identifier: Apache-2.0
#include "passes/strided.h"

#include "passes/rewrite.h"

namespace moka::passes {

using namespace ir;

namespace {

constexpr int kMaxViews = 24;

std::optional<Strided> whole(Value* v) {
  if (!v->type.is_tensor() || !v->type.is_concrete()) return std::nullopt;
  Strided s;
  s.root = v;
  s.sizes = v->type.shape().to_vector();
  const auto strides = v->type.shape().strides();
  s.steps.assign(strides.begin(), strides.begin() + static_cast<int>(s.sizes.size()));
  return s;
}

/// The number by which `op` multiplies its other operand, which is returned in `x`.
std::optional<double> factor_of(const Op& op, Value*& x) {
  if (op.input("x") == nullptr || op.input("y") == nullptr || op.output()->type.dtype() != DType::fp32)
    return std::nullopt;
  x = op.input("x");
  auto f = number_of(op, "y");
  if (op.type_name() == "real_div") return f && *f != 0 ? std::optional(1 / *f) : std::nullopt;
  if (!f && (f = number_of(op, "x"))) x = op.input("y");
  return f;
}

std::optional<Strided> sliced(const Op& op, Strided x) {
  const size_t rank = x.sizes.size();
  const auto begin = ints_of(op, "begin");
  if (!begin || begin->size() != rank) return std::nullopt;
  const auto stride = ints_of(op, "stride");
  if (stride ? stride->size() != rank : op.input("stride") != nullptr) return std::nullopt;
  auto mask = [&](std::string_view param) -> std::optional<std::vector<int64_t>> {
    if (op.input(param) == nullptr) return std::vector<int64_t>(rank, 0);
    auto m = ints_of(op, param);
    return m && m->size() == rank ? m : std::nullopt;
  };
  const auto from_start = mask("begin_mask"), squeezed = mask("squeeze_mask");
  if (!from_start || !squeezed) return std::nullopt;
  const std::vector<int64_t> made = op.output()->type.shape().to_vector();
  Strided y = x;
  y.sizes.clear();
  y.steps.clear();
  for (size_t i = 0, j = 0; i < rank; i++) {
    const int64_t step = stride ? (*stride)[i] : 1, size = x.sizes[i];
    if (step < 1) return std::nullopt;
    int64_t at = (*from_start)[i] != 0 ? 0 : (*begin)[i];
    if (at < 0) at += size;
    const bool gone = (*squeezed)[i] != 0;
    if (!gone && j >= made.size()) return std::nullopt;
    const int64_t n = gone ? 1 : made[j++];
    if (at < 0 || n < 1 || at + (n - 1) * step >= size) return std::nullopt;
    y.first += at * x.steps[i];
    if (gone) continue;
    y.sizes.push_back(n);
    y.steps.push_back(step * x.steps[i]);
  }
  return y.sizes == made ? std::optional(y) : std::nullopt;
}

std::optional<Strided> view(Value* v, int depth, bool halves);

std::optional<Strided> through(Value* v, int depth, bool halves) {
  const Op* op = v->producer();
  if (op == nullptr || depth == 0 || !op->epilogue.empty() || v->constant() != nullptr) return std::nullopt;
  const std::string& type = op->type_name();
  if (type == "mul" || type == "real_div") {
    Value* x = nullptr;
    const auto f = factor_of(*op, x);
    if (!f || !(x->type == v->type)) return std::nullopt;
    auto s = view(x, depth - 1, halves);
    if (s) s->factor *= *f;
    return s;
  }
  Value* x = op->input("x");
  if (x == nullptr || !x->type.is_tensor() || !x->type.is_concrete()) return std::nullopt;
  if (type == "reshape" || type == "squeeze" || type == "expand_dims" || type == "identity") {
    const auto s = view(x, depth - 1, halves);
    return s ? reshaped(*s, v->type.shape().to_vector()) : std::nullopt;
  }
  if (halves && type == "cast" && x->type.dtype() == DType::fp16 && v->type.dtype() == DType::fp32)
    return view(x, depth - 1, halves);
  if (type == "transpose") {
    const auto perm = ints_of(*op, "perm");
    const auto s = view(x, depth - 1, halves);
    if (!perm || !s || perm->size() != s->sizes.size()) return std::nullopt;
    Strided y = *s;
    for (size_t i = 0; i < perm->size(); i++) {
      const int64_t p = (*perm)[i] < 0 ? (*perm)[i] + static_cast<int64_t>(perm->size()) : (*perm)[i];
      y.sizes[i] = s->sizes[static_cast<size_t>(p)];
      y.steps[i] = s->steps[static_cast<size_t>(p)];
    }
    return y;
  }
  if (type == "slice_by_index") {
    auto s = view(x, depth - 1, halves);
    return s ? sliced(*op, std::move(*s)) : std::nullopt;
  }
  if (type == "split") {
    const auto axis = number_of(*op, "axis");
    auto s = view(x, depth - 1, halves);
    if (!axis || !s) return std::nullopt;
    const auto a = static_cast<size_t>(*axis < 0 ? *axis + static_cast<double>(s->sizes.size()) : *axis);
    for (int i = 0; i < v->index(); i++) {
      const Type& before = op->output(static_cast<size_t>(i))->type;
      if (!before.is_concrete()) return std::nullopt;
      s->first += before.shape()[static_cast<int>(a)] * s->steps[a];
    }
    s->sizes[a] = v->type.shape()[static_cast<int>(a)];
    return s;
  }
  return std::nullopt;
}

std::optional<Strided> view(Value* v, int depth, bool halves) {
  auto self = whole(v);
  if (!self) return self;
  auto s = through(v, depth, halves);
  return s ? s : self;
}

}  // namespace

std::optional<Strided> strided_view(Value* v, bool halves) { return view(v, kMaxViews, halves); }

std::optional<Strided> reshaped(const Strided& from, const std::vector<int64_t>& sizes) {
  // Merge adjacent dimensions that are evenly spaced into runs, innermost first.
  std::vector<std::pair<int64_t, int64_t>> runs;  // size, step
  for (size_t i = from.sizes.size(); i-- > 0;) {
    if (from.sizes[i] == 0) return std::nullopt;
    if (from.sizes[i] == 1) continue;
    if (!runs.empty() && from.steps[i] == runs.back().first * runs.back().second)
      runs.back().first *= from.sizes[i];
    else
      runs.emplace_back(from.sizes[i], from.steps[i]);
  }
  Strided to = from;
  to.sizes = sizes;
  to.steps.assign(sizes.size(), 0);
  size_t run = 0;
  int64_t used = 1;  // elements of the run that are assigned
  for (size_t i = sizes.size(); i-- > 0;) {
    if (sizes[i] == 1) continue;
    if (run < runs.size() && used == runs[run].first) {
      run++;
      used = 1;
    }
    if (sizes[i] == 0 || run == runs.size() || runs[run].first % (used * sizes[i]) != 0) return std::nullopt;
    to.steps[i] = used * runs[run].second;
    used *= sizes[i];
  }
  return to;
}

}  // namespace moka::passes
