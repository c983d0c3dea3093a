// SPDX-License-Identifier: Apache-2.0
#include "diff/compare.h"

#include <algorithm>
#include <tuple>

#include "diff/pairing.h"

namespace moka::diff {
namespace {

using Kind = ModelComparison::Kind;

/// The constants in the computation of two that differ which make the difference. Those that an operation has for
/// itself count as the operation.
std::pair<const ir::Value*, const ir::Value*> sources(const ir::Value* u, const ir::Value* v) {
  const ir::Op *x = u->producer(), *y = v->producer();
  if (x == nullptr || y == nullptr || x->type_name() != y->type_name() || x->operands().size() != y->operands().size())
    return {u, v};
  for (size_t i = 0; i < x->operands().size(); ++i) {
    const auto &ours = x->operands()[i].values, &theirs = y->operands()[i].values;
    for (size_t n = 0; n < std::min(ours.size(), theirs.size()); ++n) {
      if (ours[n]->is_inline_constant() || theirs[n]->is_inline_constant()) continue;
      const auto s = tensor_of(*ours[n]), t = tensor_of(*theirs[n]);
      if (s && t && difference_of(&*s, &*t)) return sources(ours[n], theirs[n]);
    }
  }
  return {u, v};
}

std::string name_of_constant(const ir::Value& value) {
  return value.producer() != nullptr ? value.producer()->name : value.name;
}

class Comparer {
 public:
  Comparer(const ir::Function& a, const ir::Function& b) : a_(a), b_(b), pairs_(a_, b_) {}

  ModelComparison run() {
    list(a_, out_.a);
    list(b_, out_.b);
    for (size_t i = 0; i < out_.a.size(); ++i) {
      out_.a[i].partner = pairs_.partner(static_cast<int>(i));
      out_.a[i].paired_by = pairs_.reason(static_cast<int>(i));
      out_.a[i].fused_into = pairs_.fused_into(static_cast<int>(i));
    }
    for (size_t j = 0; j < out_.b.size(); ++j) {
      out_.b[j].partner = pairs_.partner_of_b(static_cast<int>(j));
      out_.b[j].fused_into = pairs_.fused_into_of_b(static_cast<int>(j));
      if (out_.b[j].partner >= 0) out_.b[j].paired_by = out_.a[static_cast<size_t>(out_.b[j].partner)].paired_by;
    }
    for (size_t i = 0; i < out_.a.size(); ++i)
      if (out_.a[i].partner >= 0) compare(static_cast<int>(i), out_.a[i].partner);
    const auto ours = a_.function().body().outputs(), theirs = b_.function().body().outputs();
    for (size_t n = 0; n < std::min(ours.size(), theirs.size()); ++n)
      compare(-1, -1, theirs[n]->name, ours[n], theirs[n], nullptr, nullptr);
    add_values();
    return std::move(out_);
  }

 private:
  static void list(const Graph& graph, std::vector<ModelComparison::Operation>& to) {
    for (const Graph::Node& node : graph.nodes()) {
      ModelComparison::Operation op{node.op->name, node.op->type_name()};
      op.depth = node.depth;
      op.is_transparent = node.is_transparent;
      for (const ir::Operand& operand : node.op->operands()) {
        std::vector<std::string> names;
        for (const ir::Value* value : operand.values)
          if (!graph.is_constant(value)) names.push_back(graph.resolved(value)->name);
        if (!names.empty()) op.inputs.emplace_back(Graph::parameter(*node.op, operand), std::move(names));
      }
      for (size_t i = 0; i < node.op->output_count(); ++i) {
        std::string type;
        append_to(type, node.op->output(i)->type);
        op.outputs.emplace_back(node.op->output(i)->name, std::move(type));
      }
      to.push_back(std::move(op));
    }
  }

  void compare(int i, int j) {
    const ir::Op &x = *a_.nodes()[static_cast<size_t>(i)].op, &y = *b_.nodes()[static_cast<size_t>(j)].op;
    if (x.type_name() != y.type_name()) {
      ModelComparison::Difference d{Kind::type, i, j};
      d.first = x.type_name();
      d.second = y.type_name();
      out_.differences.push_back(std::move(d));
      return;
    }
    if (out_.a[static_cast<size_t>(i)].is_transparent) return;
    std::vector<std::string_view> parameters;
    for (const ir::Op* op : {&x, &y})
      for (const ir::Operand& operand : op->operands()) {
        const std::string_view name = Graph::parameter(*op, operand);
        if (std::find(parameters.begin(), parameters.end(), name) == parameters.end()) parameters.push_back(name);
      }
    if (x.has_trait(ir::Trait::commutative) && is_swapped(x, y)) return;
    for (const std::string_view parameter : parameters) {
      const auto ours = Graph::values(x, parameter), theirs = Graph::values(y, parameter);
      for (size_t n = 0; n < std::max(ours.size(), theirs.size()); ++n)
        compare(i, j, ours.size() > 1 || theirs.size() > 1 ? cat(parameter, "[", n, "]") : std::string(parameter),
                n < ours.size() ? ours[n] : nullptr, n < theirs.size() ? theirs[n] : nullptr,
                x.version().param(parameter), y.version().param(parameter));
    }
    for (size_t n = 0; n < std::min(x.block_count(), y.block_count()); ++n) {
      const auto ours = x.block(n)->outputs(), theirs = y.block(n)->outputs();
      for (size_t k = 0; k < std::min(ours.size(), theirs.size()); ++k)
        compare(i, j, cat("block ", n, ", output ", k), ours[k], theirs[k], nullptr, nullptr);
    }
  }

  bool is_swapped(const ir::Op& x, const ir::Op& y) const {
    const ir::Value *x0 = x.input("x"), *x1 = x.input("y"), *y0 = y.input("x"), *y1 = y.input("y");
    const auto equal = [&](const ir::Value* u, const ir::Value* v) {
      if (u == nullptr || v == nullptr || a_.is_constant(u) != b_.is_constant(v)) return false;
      if (!a_.is_constant(u)) return pairs_.are_partners(u, v);
      const auto s = tensor_of(*u), t = tensor_of(*v);
      return s && t && !difference_of(&*s, &*t);
    };
    return equal(x0, y1) && equal(x1, y0) && !(equal(x0, y0) && equal(x1, y1));
  }

  /// Null values: absent. Null parameters: no default.
  void compare(int i, int j, const std::string& parameter, const ir::Value* u, const ir::Value* v,
               const ir::ParamDef* ours, const ir::ParamDef* theirs) {
    const auto constant = [](const Graph& graph, const ir::Value* value,
                             const ir::ParamDef* definition) -> std::optional<ir::Tensor> {
      if (value != nullptr) return graph.is_constant(value) ? tensor_of(*value) : std::nullopt;
      if (definition == nullptr || definition->default_value.tensor.empty_handle()) return std::nullopt;
      return definition->default_value.tensor;
    };
    const auto a = constant(a_, u, ours), b = constant(b_, v, theirs);
    const bool is_value_a = u != nullptr && !a_.is_constant(u), is_value_b = v != nullptr && !b_.is_constant(v);
    std::optional<ModelComparison::Difference> d;
    if (is_value_a || is_value_b) {
      if (is_value_a && is_value_b && stands_for(u, v)) return;
      d.emplace();
      d->kind = Kind::input;
      if (a) d->first = text_of(*a);
      if (b) d->second = text_of(*b);
      if (is_value_a) d->first = cat("value '", a_.resolved(u)->name, "'");
      if (is_value_b) d->second = cat("value '", b_.resolved(v)->name, "'");
    } else {
      if (a && b) {
        ++out_.constants;
        out_.elements += a->count();
      }
      d = list_difference(u, v);
      if (!d) d = difference_of(a ? &*a : nullptr, b ? &*b : nullptr);
      if (!d) return;
      if (u != nullptr && v != nullptr) {
        const std::string ours_form = form_of(*u), theirs_form = form_of(*v);
        if (!ours_form.empty()) d->first += cat(", ", ours_form);
        if (!theirs_form.empty()) d->second += cat(", ", theirs_form);
        d->form_changed = ours_form != theirs_form;
        std::tie(u, v) = sources(u, v);
      }
      if (u != nullptr) d->first_name = name_of_constant(*u);
      if (v != nullptr) d->second_name = name_of_constant(*v);
    }
    d->a = i;
    d->b = j;
    d->parameter = parameter;
    out_.differences.push_back(std::move(*d));
  }

  /// The difference of constants that are lists or dictionaries.
  static std::optional<ModelComparison::Difference> list_difference(const ir::Value* u, const ir::Value* v) {
    const auto is_list = [](const ir::Value* value) {
      return value != nullptr && value->constant() != nullptr && !value->type.is_tensor();
    };
    if ((!is_list(u) && !is_list(v)) || (is_list(u) && is_list(v) && *u->constant() == *v->constant()))
      return std::nullopt;
    ModelComparison::Difference out;
    if (is_list(u)) out.first = list_text(*u->constant());
    if (is_list(v)) out.second = list_text(*v->constant());
    return out;
  }

  /// Whether the values are partners, or one is fused into the operation that computes the other.
  bool stands_for(const ir::Value* u, const ir::Value* v) const {
    if (pairs_.are_partners(u, v)) return true;
    u = a_.resolved(u);
    v = b_.resolved(v);
    const int i = u->producer() != nullptr ? a_.index_of(u->producer()) : -1;
    const int j = v->producer() != nullptr ? b_.index_of(v->producer()) : -1;
    if (i < 0 || j < 0) return false;
    return pairs_.fused_into(i) == j || pairs_.fused_into_of_b(j) == i;
  }

  void add_values() {
    // Each value has one partner, which for the result of a fused operation is that of the last operation in it.
    std::vector<bool> taken_a(out_.a.size()), taken_b(out_.b.size());
    const auto add = [&](const ModelComparison::Operation& x, const ModelComparison::Operation& y) {
      for (size_t n = 0; n < std::min(x.outputs.size(), y.outputs.size()); ++n)
        out_.values.emplace_back(x.outputs[n].first, y.outputs[n].first);
    };
    for (size_t i = 0; i < out_.a.size(); ++i)
      if (const int j = out_.a[i].fused_into; j >= 0 && !taken_b[static_cast<size_t>(j)]) {
        taken_b[static_cast<size_t>(j)] = true;
        add(out_.a[i], out_.b[static_cast<size_t>(j)]);
      }
    for (size_t j = 0; j < out_.b.size(); ++j)
      if (const int i = out_.b[j].fused_into; i >= 0 && !taken_a[static_cast<size_t>(i)]) {
        taken_a[static_cast<size_t>(i)] = true;
        add(out_.a[static_cast<size_t>(i)], out_.b[j]);
      }
    for (size_t i = 0; i < out_.a.size(); ++i)
      if (const int j = out_.a[i].partner; j >= 0 && !taken_a[i] && !taken_b[static_cast<size_t>(j)])
        add(out_.a[i], out_.b[static_cast<size_t>(j)]);
  }

  Graph a_, b_;
  Pairing pairs_;
  ModelComparison out_;
};

}  // namespace

ModelComparison compare(const ir::Function& a, const ir::Function& b) { return Comparer(a, b).run(); }

}  // namespace moka::diff
