// SPDX-License-Identifier: Apache-2.0
#include "import/neuralnetwork/network.h"

namespace moka::import::nn {

std::string Layer::place() const { return cat("layer '", p.name(), "' (", type_, ")"); }
Error Layer::malformed(std::string_view what) const { return fail(ErrorCode::malformed, what); }
Error Layer::unsupported(std::string_view what) const { return fail(ErrorCode::unsupported, what); }

Status Layer::arity(int in_min, int in_max, int out_min, int out_max) const {
  auto range = [](int lo, int hi) { return lo == hi ? cat(lo) : cat(lo, " to ", hi); };
  if (inputs() < in_min || inputs() > in_max)
    return malformed(cat("expected ", range(in_min, in_max), " inputs, got ", inputs()));
  if (outputs() < out_min || outputs() > out_max)
    return malformed(cat("expected ", range(out_min, out_max), " outputs, got ", outputs()));
  return {};
}

Result<Blob*> Layer::any_blob(int i) {
  if (i >= inputs()) return malformed(cat("input ", i, " is missing"));
  auto it = net.blobs.find(p.input(i));
  if (it == net.blobs.end())
    return malformed(
        cat("input '", p.input(i), "' is neither an input of the model nor an output of an earlier layer"));
  return &it->second;
}

Result<Blob*> Layer::blob(int i) {
  Blob* b = MOKA_TRY(any_blob(i));
  if (!b->is_ranked())
    return unsupported(cat("input '", p.input(i), "': a blob whose rank is known only when it runs"));
  return b;
}

Result<Value*> Layer::in(int i) {
  MOKA_TRY(blob(i));
  return any(i);
}

Result<Value*> Layer::with_rank(int i, int rank) {
  Value* v = MOKA_TRY(any(i));
  if (v->type.is_ranked()) return v;
  const ir::Type declared = unknown_sizes(v->type.dtype(), rank);
  Value* shape = MOKA_TRY(op("shape", {{"x", v}}));
  return op("reshape", {{"x", v}, {"shape", shape}}, &declared);
}

Result<int> Layer::axis(int64_t axis, const Value* x) {
  if (x->type.is_ranked()) return ir::normalize_axis(axis, x->type.rank());
  if (axis < -ir::kMaxRank || axis >= ir::kMaxRank) return malformed(cat("axis ", axis));
  return static_cast<int>(axis);
}

Result<Value*> Layer::in(int i, Form form) {
  Blob* b = MOKA_TRY(any_blob(i));
  return MOKA_TRY_IN(net.as(*b, form), cat("input '", p.input(i), "'"));
}

Result<Form> Layer::cheap_form(int i) {
  Blob* b = MOKA_TRY(any_blob(i));
  for (Form f : {Form::matrix, Form::nchw, Form::exact})
    if (b->form(f) != nullptr) return f;
  return Form::exact;
}

Result<Form> Layer::common_form() {
  bool matrix = true, folded = true;
  Blob* first = MOKA_TRY(any_blob(0));
  for (int i = 0; i < inputs(); i++) {
    Blob* b = MOKA_TRY(any_blob(i));
    if (!b->is_ranked()) return Form::exact;
    if (b->form(Form::matrix) == nullptr) matrix = false;
    if (b->rank() < 3 || b->rank() != first->rank()) folded = false;
    for (int d = 0; folded && d + 3 < b->rank(); d++) {
      const Dim& x = b->dims[static_cast<size_t>(d)];
      const Dim& y = first->dims[static_cast<size_t>(d)];
      bool same = x.known() ? x.size == y.size : !y.known() && x.from == y.from && x.axis == y.axis;
      if (!same) folded = false;
    }
  }
  if (!folded) return Form::exact;
  return matrix ? Form::matrix : Form::nchw;
}

Result<Value*> Layer::int32(int i) {
  Value* v = MOKA_TRY(any(i));
  if (v->type.dtype() == DType::int32) return v;
  return op("cast", {{"x", v}, {"dtype", "int32"}});
}

Result<Value*> Layer::int32_vector(int i) {
  if (const Value* fixed = MOKA_TRY(any(i)); fixed->constant() != nullptr && fixed->type.is_tensor()) {
    const ir::TensorView numbers = fixed->constant()->tensor.view();
    if (numbers.count() > 2 * ir::kMaxRank)
      return malformed(cat("input '", p.input(i), "': ", numbers.count(), " numbers"));
    std::vector<int64_t> entries;
    for (int64_t k = 0; k < numbers.count(); ++k) entries.push_back(ir::load_i64(numbers, k));
    return constant(Tensor::i32(entries), cat("input", i));
  }
  Value* v = MOKA_TRY(int32(i));
  if (v->type.is_ranked() && v->type.rank() == 1) return v;
  const int64_t n = v->type.is_concrete() ? v->type.shape().count() : -1;
  return op("reshape", {{"x", v}, {"shape", Ints{n}}});
}

Result<Value*> Layer::channels(int i) {
  const int rank = MOKA_TRY(blob(i))->rank();
  if (rank >= 3) return nchw(i);
  return op("expand_dims", {{"x", MOKA_TRY(in(i))}, {"axes", rank == 2 ? Ints{2, 3} : Ints{0, 2, 3}}});
}

Status Layer::set_channels(int i, Value* v) {
  const int rank = MOKA_TRY(blob(0))->rank();
  if (rank >= 3) return set(i, v, Form::nchw);
  return set(i, MOKA_TRY(op("squeeze", {{"x", v}, {"axes", rank == 2 ? Ints{2, 3} : Ints{0, 2, 3}}})));
}

Status Layer::set(int i, Value* v, Form form, int like) {
  if (form == Form::exact || inputs() == 0) return set_folded(i, v, form, {});
  const Blob* b = MOKA_TRY(any_blob(like));
  if (!b->is_ranked()) return set_folded(i, MOKA_TRY(net.unfold(v, form, *b, p.name())), Form::exact, {});
  return set_folded(i, v, form, b->lead());
}

Status Layer::set_folded(int i, Value* v, Form form, std::vector<Dim> lead) {
  if (i >= outputs()) return {};
  if (v->type.is_tensor() && v->type.dtype() != DType::fp32) v = MOKA_TRY(f32(v));
  const bool scalar = form == Form::exact && v->type.is_tensor() && v->type.is_ranked() && v->type.rank() == 0;
  if (scalar) v = MOKA_TRY(op("expand_dims", {{"x", v}, {"axes", Ints{0}}}));
  Blob b = MOKA_TRY(net.blob(v, form, std::move(lead)));
  b.scalar = scalar;
  const std::string& name = p.output(i);
  bool passed_on = v->producer() == nullptr;
  for (const std::string& input : p.input())
    if (auto it = net.blobs.find(input); it != net.blobs.end())
      for (const Value* f : it->second.forms) passed_on |= f == v;
  if (!passed_on) v->name = net.builder().function().unique_name(identifier(net.context().prefix + name));
  net.blobs[name] = std::move(b);
  return {};
}

Result<Value*> Layer::op(std::string_view op, std::vector<NamedArg> args, const ir::Type* declared) {
  return net.op(op, std::move(args), p.name(), declared);
}

Result<ir::Op*> Layer::multi(std::string_view op, std::vector<NamedArg> args) {
  return net.builder().append({op, std::move(args), net.context().prefix + p.name(), {}, {}});
}

Result<Value*> Layer::constant(Tensor t, std::string_view what) {
  return net.constant(std::move(t), cat(p.name(), "_", what));
}

Result<Value*> Layer::fp32_constant(std::initializer_list<float> values, const Shape& shape, std::string_view what) {
  return constant(Tensor::f32(shape, std::span(values.begin(), values.size())), what);
}

Result<Shape> Layer::shape(std::initializer_list<uint64_t> dims, std::string_view what) {
  Shape s;
  for (uint64_t d : dims) {
    if (d == 0 || d > (uint64_t{1} << 31)) return malformed(cat(what, ": a dimension of ", d));
    s.push_back(static_cast<int64_t>(d));
  }
  MOKA_TRY_IN(s.checked_count(), what);
  return s;
}

}  // namespace moka::import::nn
