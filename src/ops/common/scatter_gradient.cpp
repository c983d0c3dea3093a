// SPDX-License-Identifier: Apache-2.0
#include "ops/common/scatter_gradient.h"

#include <algorithm>

#include "ops/common/gradients.h"
#include "ops/common/indexing.h"

namespace moka::ops {

namespace {

class ScatterGradient {
 public:
  ScatterGradient(Gradient& g, std::string_view gather)
      : g_(g),
        gather_(gather),
        has_axis_(gather != "gather_nd"),
        axis_(has_axis_ ? g.take(axis_of(g.known(), "axis", g.in("data").rank())) : 0),
        indices_(positions()),
        inside_(is_inside()) {}

  void run(Combine rule) {
    const Term data = g_.in("data"), updates = g_.in("updates"), dy = g_.dy();
    switch (rule) {
      case Combine::update: return set(covered(dy), own(dy, winners()));
      case Combine::add: return set(dy, own(dy));
      case Combine::sub: return set(dy, -own(dy));
      case Combine::mul: return set(dy * product(), own(dy * data) * others());
      case Combine::div: return set(dy / product(), -own(dy * g_.y()) / updates);
      case Combine::max:
      case Combine::min: return shared();
    }
  }

 private:
  void set(Term data, Term updates) {
    g_.set("data", data);
    g_.set("updates", updates);
  }

  /// Sizes of the axes that the components of an index address.
  Ints sizes() const {
    const Shape& data = g_.op().input("data")->type.shape();
    const Shape& indices = g_.op().input("indices")->type.shape();
    if (has_axis_) return {data[axis_]};
    Ints out;
    for (int i = 0; i < indices[indices.rank() - 1]; i++) out.push_back(data[i]);
    return out;
  }
  Constant bounds() const {
    const Ints s = sizes();
    return Constant(has_axis_ ? Tensor::scalar_i64(DType::int32, s[0]) : Tensor::i32(s.span()));
  }

  /// The indices as the newest opset reads them: negative ones are outside.
  Term positions() {
    const Term i = g_.cast(g_.in("indices"), DType::int32);
    if (g_.op().version().since >= Opset::ios17) return i;
    const Term from_end = g_.call("add", {{"x", i.value()}, {"y", bounds()}});
    return g_.call("select", {{"cond", is_negative(i).value()}, {"a", from_end.value()}, {"b", i.value()}});
  }
  Term is_negative(Term i) {
    return g_.call("less", {{"x", i.value()}, {"y", Constant(Tensor::scalar_i64(DType::int32, 0))}});
  }

  /// 1 for each update that counts and 0 for each that is outside, in a shape that broadcasts with updates.
  Term is_inside() {
    const DType type = g_.y().value()->type.dtype();
    const Term least = g_.cast(g_.call("logical_not", {{"x", is_negative(indices_).value()}}), type);
    const Term below = g_.cast(g_.call("less", {{"x", indices_.value()}, {"y", bounds()}}), type);
    Term inside = least * below;
    const Shape& updates = g_.op().input("updates")->type.shape();
    if (!has_axis_)
      inside = g_.call("reduce_min", {{"x", inside.value()}, {"axes", Ints{inside.rank() - 1}}, {"keep_dims", false}});
    Shape shape = inside.shape();
    const int before = gather_ == "gather" ? axis_ : 0;
    for (int i = 0; i < before; i++) shape.insert(0, 1);
    while (shape.rank() < updates.rank()) shape.push_back(1);
    return g_.reshape(inside, shape);
  }

  std::vector<NamedArg> arguments(std::vector<NamedArg> args) const {
    args.emplace_back("indices", indices_.value());
    if (has_axis_) args.emplace_back("axis", axis_);
    return args;
  }
  Term scatter(Term data, Term updates, std::string_view mode) {
    return g_.call(g_.op().type_name(),
                   arguments({{"data", data.value()}, {"updates", updates.value()}, {"mode", std::string(mode)}}));
  }
  Term gathered(Term x) { return g_.call(gather_, arguments({{"x", x.value()}})); }
  /// What each update gets of x, which has the shape of data.
  Term own(Term x) { return own(x, inside_); }
  Term own(Term x, Term weights) { return select(compare("equal", weights, 0.0), 0.0, gathered(x) * weights); }

  Term ones() { return g_.fill(g_.in("data").shape(), 1); }
  Term zeros() { return g_.fill(g_.in("data").shape(), 0); }
  Term covered(Term dy) { return scatter(dy, g_.fill(g_.in("updates").shape(), 0), "update"); }
  Term product() { return scatter(ones(), g_.in("updates"), "mul"); }
  Term others() {
    return product_of_others(g_.in("updates"), [&](Term x, bool is_product) {
      return gathered(is_product ? scatter(ones(), x, "mul") : scatter(zeros(), x, "add"));
    });
  }

  /// 1 for the last of the updates of an element.
  Term winners() {
    const Term order = counted(g_, g_.in("updates").shape());
    const Term none = g_.cast(zeros(), DType::int32);
    const Term last = gathered(scatter(none, order, "update"));
    const Term wins = g_.call("equal", {{"x", last.value()}, {"y", order.value()}});
    return g_.cast(wins, g_.y().value()->type.dtype()) * inside_;
  }

  /// Equal largest or smallest ones share the gradient.
  void shared() {
    const DType type = g_.y().value()->type.dtype();
    const Term from_data = g_.cast(compare("equal", g_.in("data"), g_.y()), type);
    const Term from_updates = g_.cast(compare("equal", g_.in("updates"), gathered(g_.y())), type) * inside_;
    const Term share = g_.dy() / scatter(from_data, from_updates, "add");
    set(from_data * share, own(share, from_updates));
  }

  Gradient& g_;
  std::string gather_;
  bool has_axis_;
  int axis_;
  Term indices_, inside_;
};

}  // namespace

void gradient_of_scatter(Gradient& g, std::string_view gather) {
  const Combine rule = g.take(combine_of(g.known()));
  if (g.has_failed()) return;
  if (g.op().input("updates")->type.shape().count() == 0) {
    if (g.wants("updates")) g.set("updates", g.fill(g.in("updates").shape(), 0));
    return g.set("data", g.dy());
  }
  ScatterGradient(g, gather).run(rule);
}

}  // namespace moka::ops
