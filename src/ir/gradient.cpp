// SPDX-License-Identifier: Apache-2.0
#include "ir/gradient.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

namespace moka::ir {

namespace {

Constant number_like(const Value& v, double x) { return Constant(Tensor::scalar(v.type.dtype(), x)); }

Term binary(std::string_view op, Term a, Term b) { return a.gradient().call(op, {{"x", a.value()}, {"y", b.value()}}); }
Term binary(std::string_view op, Term a, double b) {
  return a.gradient().call(op, {{"x", a.value()}, {"y", number_like(*a.value(), b)}});
}
Term binary(std::string_view op, double a, Term b) {
  return b.gradient().call(op, {{"x", number_like(*b.value(), a)}, {"y", b.value()}});
}

}  // namespace

Term operator+(Term a, Term b) { return binary("add", a, b); }
Term operator-(Term a, Term b) { return binary("sub", a, b); }
Term operator*(Term a, Term b) { return binary("mul", a, b); }
Term operator/(Term a, Term b) { return binary("real_div", a, b); }
Term operator+(Term a, double b) { return binary("add", a, b); }
Term operator-(Term a, double b) { return binary("sub", a, b); }
Term operator*(Term a, double b) { return binary("mul", a, b); }
Term operator/(Term a, double b) { return binary("real_div", a, b); }
Term operator+(double a, Term b) { return binary("add", b, a); }
Term operator-(double a, Term b) { return binary("sub", a, b); }
Term operator*(double a, Term b) { return binary("mul", b, a); }
Term operator/(double a, Term b) { return binary("real_div", a, b); }
Term operator-(Term a) { return binary("mul", a, -1.0); }
Term square(Term x) { return apply("square", x); }
Term apply(std::string_view op, Term x) { return x.gradient().call(op, {{"x", x.value()}}); }
Term compare(std::string_view op, Term x, Term y) { return binary(op, x, y); }
Term compare(std::string_view op, Term x, double y) { return binary(op, x, y); }
Term select(Term condition, Term yes, Term no) {
  return yes.gradient().call("select", {{"cond", condition.value()}, {"a", yes.value()}, {"b", no.value()}});
}
Term select(Term condition, Term yes, double no) {
  return yes.gradient().call("select",
                             {{"cond", condition.value()}, {"a", yes.value()}, {"b", number_like(*yes.value(), no)}});
}

Term select(Term condition, double yes, Term no) {
  return no.gradient().call("select",
                            {{"cond", condition.value()}, {"a", number_like(*no.value(), yes)}, {"b", no.value()}});
}

void no_gradient(Gradient&) {}

Gradient::Gradient(Builder& builder, const Op& op, std::vector<Value*> outputs, std::vector<const Value*> wanted,
                   std::vector<Value*> captured)
    : builder_(builder),
      op_(op),
      known_(op),
      outputs_(std::move(outputs)),
      captured_(std::move(captured)),
      captured_results_(captured_.size()) {
  for (const Operand& o : op.operands())
    for (const Value* v : o.values) wanted_.push_back(std::find(wanted.begin(), wanted.end(), v) != wanted.end());
  results_.resize(wanted_.size());
}

size_t Gradient::position(std::string_view param, size_t i) const {
  const int p = op_.version().param_index(param);
  size_t at = 0;
  for (const Operand& o : op_.operands()) {
    if (o.param == p) return i < o.values.size() ? at + i : wanted_.size();
    at += o.values.size();
  }
  return wanted_.size();
}

bool Gradient::wants(std::string_view param, size_t i) const {
  const size_t at = position(param, i);
  return at < wanted_.size() && wanted_[at];
}

Term Gradient::in(std::string_view param, size_t i) {
  const Term v{*this, op_.inputs(param)[i]};
  const DType to = op_.output()->type.is_tensor() ? op_.output()->type.dtype() : DType::none;
  return is_float(v.value()->type.dtype()) && is_float(to) ? cast(v, to) : v;
}

Term Gradient::cast(Term x, DType to) {
  if (x.value()->type.dtype() == to) return x;
  return call("cast", {{"x", x.value()}, {"dtype", std::string(to_string(to))}});
}

Term Gradient::dy(size_t i) {
  if (outputs_[i] == nullptr) outputs_[i] = fill(op_.output(i)->type.shape(), 0).value();
  return {*this, outputs_[i]};
}

void Gradient::set(std::string_view param, Term gradient, size_t i) {
  if (!wants(param, i) || error_) return;
  const Type& to = op_.inputs(param)[i]->type;
  const Term t = cast(to_shape(gradient, to.shape()), to.dtype());
  if (!error_) results_[position(param, i)] = t.value();
}

void Gradient::add(std::string_view param, Term gradient, size_t i) {
  if (!wants(param, i) || error_) return;
  Value* before = results_[position(param, i)];
  set(param, before == nullptr ? gradient : Term(*this, before) + gradient, i);
}

Term Gradient::call(std::string_view op, std::vector<NamedArg> args) {
  if (!error_) {
    auto v = builder_.op(op, std::move(args), cat(op_.name, "_gradient"));
    if (v.ok()) return {*this, *v};
    error_ = std::move(v).error();
  }
  return {*this, op_.output()};
}

std::vector<Term> Gradient::call_all(std::string_view op, std::vector<NamedArg> args, size_t count) {
  std::vector<Term> out(count, Term(*this, op_.output()));
  if (error_) return out;
  auto made = builder_.append({op, std::move(args), cat(op_.name, "_gradient")});
  if (!made.ok()) {
    error_ = std::move(made).error();
    return out;
  }
  for (size_t i = 0; i < count; i++) out[i] = Term(*this, (*made)->output(i));
  return out;
}

Term Gradient::fill(const Shape& shape, double value) {
  Ints dims;
  for (int64_t d : shape) dims.push_back(d);
  return call("fill", {{"shape", dims}, {"value", number_like(*op_.output(), value)}});
}

Term Gradient::reshape(Term x, const Shape& shape) {
  if (x.shape() == shape) return x;
  Ints dims;
  for (int64_t d : shape) dims.push_back(d);
  return call("reshape", {{"x", x.value()}, {"shape", dims}});
}

Term Gradient::transpose(Term x, const Ints& axes) { return call("transpose", {{"x", x.value()}, {"perm", axes}}); }

Term Gradient::sum(Term x, const Ints& axes, bool keep_dims) {
  if (axes.empty()) return x;
  return call("reduce_sum", {{"x", x.value()}, {"axes", axes}, {"keep_dims", keep_dims}});
}

Term Gradient::product(Term a, bool ta, Term b, bool tb) {
  return call("matmul", {{"x", a.value()}, {"y", b.value()}, {"transpose_x", ta}, {"transpose_y", tb}});
}

Constant Gradient::scalar(double value) const { return number_like(*op_.output(), value); }

Term Gradient::again(Term x) { return again_as(op_.type_name(), {{"x", x.value()}}); }

Term Gradient::again_as(std::string_view op, std::vector<NamedArg> args,
                        std::initializer_list<std::string_view> without) {
  const size_t given = args.size();
  for (const Operand& o : op_.operands()) {
    const std::string& param = op_.version().params[static_cast<size_t>(o.param)].name;
    const auto has_name = [&](const NamedArg& a) { return a.name == param; };
    if (std::any_of(args.begin(), args.begin() + static_cast<std::ptrdiff_t>(given), has_name) ||
        std::find(without.begin(), without.end(), param) != without.end())
      continue;
    if (o.tuple)
      args.emplace_back(param, o.values);
    else
      args.emplace_back(param, o.values[0]);
  }
  return call(op, std::move(args));
}

Term Gradient::to_shape(Term x, const Shape& shape) {
  if (x.shape() == shape || error_) return x;
  const int more = x.rank() - shape.rank();
  Ints summed, reps;
  Shape kept;
  for (int i = 0; i < x.rank(); i++) {
    const int64_t from = x.shape()[i], to = i < more ? 1 : shape[i - more];
    if (to == 1 && from != 1) summed.push_back(i);
    kept.push_back(to == 1 ? 1 : from);
  }
  x = sum(x, summed, true);
  if (more < 0) {
    Shape longer;
    for (int i = more; i < 0; i++) longer.push_back(1);
    for (int64_t d : kept) longer.push_back(d);
    x = reshape(x, longer);
    kept = longer;
  }
  bool repeats = false;
  for (int i = 0; i < kept.rank(); i++) {
    const int64_t to = i < more ? 1 : shape[i - std::max(more, 0)];
    reps.push_back(kept[i] == 1 ? to : 1);
    repeats |= kept[i] == 1 && to != 1;
  }
  if (repeats) x = call("tile", {{"x", x.value()}, {"reps", reps}});
  return reshape(x, shape);
}

double Gradient::number(std::string_view param) { return take(known().number(param)); }
int64_t Gradient::integer(std::string_view param) { return take(known().integer(param)); }
bool Gradient::flag(std::string_view param) { return take(known().flag(param)); }
std::string_view Gradient::text(std::string_view param) { return take(known().text(param)); }
Ints Gradient::ints(std::string_view param) { return take(known().ints(param)); }

void Gradient::fail(Error error) {
  if (!error_) error_ = std::move(error);
}

Status Gradient::take_status() {
  if (error_) return std::move(*error_);
  return {};
}

namespace {

bool is_differentiable(const Value& v) { return v.type.is_tensor() && is_float(v.type.dtype()); }

/// Whether the operation or its blocks read one of the values.
bool reads(const Op& op, const std::unordered_set<const Value*>& values) {
  const auto is_one = [&](const Value* v) { return values.contains(v); };
  for (const Operand& o : op.operands())
    if (std::any_of(o.values.begin(), o.values.end(), is_one)) return true;
  for (size_t i = 0; i < op.block_count(); i++) {
    const Block& inner = *op.block(i);
    if (std::any_of(inner.outputs().begin(), inner.outputs().end(), is_one)) return true;
    for (const auto& p : inner.ops())
      if (reads(*p, values)) return true;
  }
  return false;
}

/// Appends the values among `of` that the blocks of the operation read.
void add_captured(const Op& op, const std::unordered_set<const Value*>& of, std::vector<Value*>& to) {
  const auto add = [&](Value* v) {
    if (of.contains(v) && std::find(to.begin(), to.end(), v) == to.end()) to.push_back(v);
  };
  for (size_t i = 0; i < op.block_count(); i++) {
    for (Value* v : op.block(i)->outputs()) add(v);
    for (const auto& inner : op.block(i)->ops()) {
      for (const Operand& o : inner->operands())
        for (Value* v : o.values) add(v);
      add_captured(*inner, of, to);
    }
  }
}

/// The values of the block that depend on the targets through floats.
std::unordered_set<const Value*> dependents(const Block& block, std::span<Value* const> targets) {
  std::unordered_set<const Value*> out(targets.begin(), targets.end());
  for (const auto& op : block.ops()) {
    if (!reads(*op, out)) continue;
    for (size_t i = 0; i < op->output_count(); i++)
      if (is_differentiable(*op->output(i))) out.insert(op->output(i));
  }
  return out;
}

class Walk {
 public:
  Walk(Builder& builder, std::unordered_set<const Value*> dependents)
      : builder_(builder), dependents_(std::move(dependents)) {}

  Status visit(const Op& op) {
    std::vector<Value*> outputs;
    bool is_reached = false;
    for (size_t i = 0; i < op.output_count(); i++) {
      outputs.push_back(of(*op.output(i)));
      is_reached |= outputs.back() != nullptr;
    }
    std::vector<Value*> inputs;
    std::vector<const Value*> wanted;
    for (const Operand& o : op.operands())
      for (Value* v : o.values) {
        inputs.push_back(v);
        if (dependents_.contains(v)) wanted.push_back(v);
      }
    if (!is_reached || !reads(op, dependents_)) return {};
    if (!op.version().def->gradient)
      return moka::fail(ErrorCode::unsupported, "operation '", op.name, "' (", op.type_name(),
                        ") has no gradient, and the loss depends on it");
    if (!op.epilogue.empty())
      return moka::fail(ErrorCode::internal, "operation '", op.name, "' has an epilogue, which has no gradient");
    for (size_t i = 0; i < op.output_count() + inputs.size(); i++) {
      const Value& v = i < op.output_count() ? *op.output(i) : *inputs[i - op.output_count()];
      if (!v.type.is_concrete())
        return moka::fail(ErrorCode::unsupported, "operation '", op.name, "' (", op.type_name(), "): the gradient of '",
                          v.name, "', whose size (", v.type, ") depends on values");
    }
    std::vector<Value*> captured;
    add_captured(op, dependents_, captured);
    Gradient g(builder_, op, std::move(outputs), std::move(wanted), captured);
    op.version().def->gradient(g);
    MOKA_TRY_IN(g.take_status(), cat("gradient of operation '", op.name, "' (", op.type_name(), ")"));
    for (size_t i = 0; i < inputs.size(); i++)
      if (g.results()[i] != nullptr) MOKA_TRY(add(*inputs[i], *g.results()[i]));
    for (size_t i = 0; i < captured.size(); i++)
      if (g.captured_results()[i] != nullptr) MOKA_TRY(add(*captured[i], *g.captured_results()[i]));
    return {};
  }

  Status add(const Value& to, Value& gradient) {
    Value*& sum = gradients_[&to];
    sum = sum == nullptr ? &gradient
                         : MOKA_TRY(builder_.op("add", {{"x", sum}, {"y", &gradient}}, cat(to.name, "_gradient")));
    return {};
  }

  Value* of(const Value& v) const {
    const auto it = gradients_.find(&v);
    return it == gradients_.end() ? nullptr : it->second;
  }

 private:
  Builder& builder_;
  std::unordered_set<const Value*> dependents_;
  std::unordered_map<const Value*, Value*> gradients_;
};

}  // namespace

Result<std::vector<Value*>> differentiate(Builder& builder, Value& loss, std::span<Value* const> targets) {
  if (!is_differentiable(loss) || !loss.type.is_concrete() || loss.type.shape().count() != 1)
    return moka::fail(ErrorCode::invalid_argument, "loss '", loss.name, "': expected one number of a float type, got ",
                      loss.type);
  auto one = MOKA_TRY(Tensor::zeros(loss.type.dtype(), loss.type.shape()));
  store_f64(one.view(), 0, 1);
  const Known known{&loss, MOKA_TRY(builder.constant(cat(loss.name, "_gradient"), Constant(std::move(one))))};
  return differentiate(builder, std::span(&known, 1), targets);
}

Result<std::vector<Value*>> differentiate(Builder& builder, std::span<const Known> known,
                                          std::span<Value* const> targets) {
  std::vector<const Op*> order;
  for (const auto& op : builder.block().ops()) order.push_back(op.get());
  Walk walk(builder, dependents(builder.block(), targets));
  for (const Known& k : known) MOKA_TRY(walk.add(*k.value, *k.gradient));
  for (auto op = order.rbegin(); op != order.rend(); ++op) MOKA_TRY(walk.visit(**op));
  std::vector<Value*> out;
  for (const Value* t : targets) out.push_back(walk.of(*t));
  return out;
}

}  // namespace moka::ir
