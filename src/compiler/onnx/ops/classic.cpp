// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <limits>

#include "compiler/onnx/call.h"

namespace moka::compiler::onnx {
namespace {

bool whole_rows(Call& c) {
  if (c.op.version().param_index("rows") >= 0 && c.flag("rows")) c.refuse("it takes rows");
  return !c.refused();
}

Name doubles(Call& c, const Name& x, DType from) { return from == DType::fp64 ? x : c.cast(x, DType::fp64); }

void convert(Call& c) {
  const ir::Type &from = c.type("x"), &to = c.out();
  if (!from.is_tensor() || !to.is_ranked() || !whole_rows(c)) return c.refuse("its types are not known");
  Name y = c.x();
  if (from.dtype() != to.dtype()) y = c.cast(y, to.dtype());
  if (!from.is_ranked() || !(from.shape() == to.shape())) {
    if (!to.shape().is_concrete()) return c.refuse("its sizes are not known");
    y = c.reshape(y, to.shape().to_vector());
  }
  c.set(y);
}

void extract(Call& c) {
  if (!whole_rows(c)) return;
  Name x = c.x();
  if (!c.type("x").is_ranked() || c.type("x").rank() != 1) x = c.reshape(x, {-1});
  c.set(c.node("Gather", {x, c.i64(c.ints("indices"))}, {attr("axis", 0)}));
}

void feature_vectorize(Call& c) {
  if (!whole_rows(c)) return;
  const std::vector<int64_t> dims = c.ints("dimensions");
  std::vector<Name> parts;
  const auto values = c.op.inputs("values");
  for (size_t i = 0; i < values.size(); i++) {
    const ir::Type t = c.graph.type_of(values[i]);
    if (!t.is_tensor()) return c.refuse("one of its inputs is a dictionary with keys that are not known");
    Name v = doubles(c, c.x(values[i]), t.dtype());
    if (!t.is_ranked() || t.rank() != 1) v = c.reshape(v, {-1});
    if (t.is_ranked() && t.is_concrete() && t.shape().count() < dims[i])
      v = c.pad(v, {0, dims[i] - t.shape().count()}, 0, DType::fp64);
    parts.push_back(v);
  }
  c.set(parts.size() == 1 ? parts[0] : c.node("Concat", std::move(parts), {attr("axis", 0)}));
}

void impute(Call& c) {
  if (!whole_rows(c)) return;
  const auto replaced = c.constant("replaced");
  if (!replaced) return c.refuse("its replaced value is not a constant");
  const DType t = c.dtype("x");
  constexpr int with_texts = 19;
  if (t == DType::string && !c.needs(with_texts)) return;
  const bool nan = ir::is_float(t) && std::isnan(ir::load_f64(replaced->view(), 0));
  const Name missing =
      nan ? c.node("IsNaN", {c.x()}) : c.node("Equal", {c.x(), c.graph.tensor(replaced->reshaped({}))});
  const auto imputed = c.constant("imputed");
  if (!imputed) return c.refuse("its imputed value is not a constant");
  const ir::Type& x = c.type("x");
  Name value = c.x("imputed");
  if (imputed->count() == 1)
    value = c.graph.tensor(imputed->reshaped({}));
  else if (x.is_ranked() && x.is_concrete())
    value = c.graph.tensor(imputed->reshaped(x.shape()));
  c.set(c.node("Where", {missing, value, c.x()}));
}

void scale(Call& c) {
  if (!whole_rows(c)) return;
  const Name x = doubles(c, c.x(), c.dtype("x"));
  const bool flat = c.type("x").is_ranked() && c.type("x").rank() == 1;
  const auto part = [&](const char* param) -> Name {
    const auto t = c.constant(param);
    if (!t) return c.refuse(cat(param, " is not a constant")), Name();
    if (t->count() == 1) return c.graph.tensor(t->reshaped({}));
    return c.graph.tensor(flat ? *t : t->reshaped(c.type("x").shape()));
  };
  if (!flat && !c.type("x").is_concrete()) return c.refuse("its sizes are not known");
  c.set(c.node("Mul", {c.node("Add", {x, part("shift")}), part("scale")}));
}

void normalize(Call& c) {
  if (!whole_rows(c)) return;
  const std::string norm = c.text("norm");
  const Name x = doubles(c, c.x(), c.dtype("x"));
  Name size;
  if (norm == "max")
    size = c.reduce("ReduceMax", c.node("Abs", {x}), {}, false);
  else if (norm == "l1")
    size = c.node("ReduceSum", {c.node("Abs", {x})}, {attr("keepdims", 0)});
  else
    size = c.node("Sqrt", {c.node("ReduceSum", {c.node("Mul", {x, x})}, {attr("keepdims", 0)})});
  // A vector of zeros stays as it is.
  const Name zero = c.node("Equal", {size, c.scalar(DType::fp64, 0)});
  c.set(c.node("Div", {x, c.node("Where", {zero, c.scalar(DType::fp64, 1), size})}));
}

/// Weights and offset by Gemm, in double.
void classic_linear(Call& c) {
  if (!whole_rows(c)) return;
  const Name row = c.unsqueeze(c.x(), {0});
  const Name y = c.node("Gemm", {row, c.x("weights"), c.x("offset")}, {attr("transB", 1)});
  c.set(c.squeeze(y, {0}));
}

void link(Call& c) {
  if (!whole_rows(c)) return;
  const std::string mode = c.text("mode");
  const DType f = DType::fp64;
  if (mode == "logit") return c.set(c.node("Sigmoid", {c.x()}));
  if (mode == "probit") {
    // Erf is common for float32 only.
    const Name scaled = c.node("Mul", {c.x(), c.scalar(f, std::sqrt(0.5))});
    const Name erf = c.cast(c.node("Erf", {c.cast(scaled, DType::fp32)}), f);
    return c.set(c.node("Mul", {c.node("Add", {erf, c.scalar(f, 1)}), c.scalar(f, 0.5)}));
  }
  const auto one = [&](double v) { return c.graph.tensor(ir::Tensor::scalar(f, v).reshaped({1})); };
  if (mode == "complement") return c.set(c.node("Concat", {c.node("Sub", {one(1), c.x()}), c.x()}, {attr("axis", 0)}));
  if (mode == "softmax") return c.set(c.node("Softmax", {c.x()}, {attr("axis", 0)}));
  if (mode == "softmax_with_reference")
    return c.set(c.node("Softmax", {c.node("Concat", {one(0), c.x()}, {attr("axis", 0)})}, {attr("axis", 0)}));
  const Name sum = c.node("ReduceSum", {c.x()}, {attr("keepdims", 0)});
  const double share = 1.0 / static_cast<double>(std::max<int64_t>(1, c.out().shape()[0]));
  const Name some = c.node("Greater", {sum, c.scalar(f, 0)});
  c.set(c.node("Where", {some, c.node("Div", {c.x(), sum}), c.scalar(f, share)}));
}

void classify_list(Call& c) {
  if (!whole_rows(c)) return;
  const int64_t n = c.known().value("classes")->count();
  const Name best = c.node("ArgMax", {c.x()}, {attr("axis", 0), attr("keepdims", 0)});
  c.set(c.node("Gather", {c.x("classes"), best}), 0);
  c.set(c.x(), 1);
  c.graph.represented[c.op.output(1)] = ir::Type::tensor(DType::fp64, {n});
}

std::vector<std::string> texts(const ir::TensorView& t) {
  const auto* s = t.as<const std::string>();
  return {s, s + t.count()};
}
std::vector<int64_t> numbers(const ir::TensorView& t) {
  std::vector<int64_t> out;
  for (int64_t i = 0; i < t.count(); i++) out.push_back(ir::load_i64(t, i));
  return out;
}

/// The keys in the order of their positions.
ox::Attribute by_position(Call& c, const char* keys, const char* for_texts, const char* for_numbers) {
  const ir::TensorView* k = c.known().value(keys);
  const std::vector<int64_t> at = c.ints("positions");
  if (k->dtype == DType::string) {
    std::vector<std::string> from = texts(*k), to(at.size());
    for (size_t i = 0; i < at.size(); i++) to[static_cast<size_t>(at[i])] = from[i];
    return attr(for_texts, to);
  }
  std::vector<int64_t> from = numbers(*k), to(at.size());
  for (size_t i = 0; i < at.size(); i++) to[static_cast<size_t>(at[i])] = from[i];
  return attr(for_numbers, to);
}

/// A dictionary by position is a dense vector in the graph.
void set_vector(Call& c, const Name& y, int64_t n) {
  c.set(y);
  if (c.out().is_dict()) c.graph.represented[c.op.output()] = ir::Type::tensor(DType::fp64, {n});
}

void classic_one_hot(Call& c) {
  if (!whole_rows(c)) return;
  const int64_t n = c.known().value("categories")->count();
  const bool ignore = c.text("handle_unknown") == "ignore";
  Name x = c.x();
  if (ir::is_float(c.dtype("x"))) return c.refuse(cat("its input has type ", c.dtype("x")));
  if (c.dtype("x") != DType::string && c.dtype("x") != DType::int64) x = c.cast(x, DType::int64);
  const Name y = c.ml("OneHotEncoder", {c.reshape(x, {-1})},
                      {by_position(c, "categories", "cats_strings", "cats_int64s"), attr("zeros", ignore ? 1 : 0)});
  set_vector(c, c.cast(c.reshape(y, {-1}), DType::fp64), n);
}

void dict_vectorize(Call& c) {
  const int64_t n = c.known().value("keys")->count();
  const bool text_keys = c.type("x").element(0).dtype() == DType::string;
  if (text_keys != (c.known().value("keys")->dtype == DType::string))
    return c.refuse("the keys of its dictionary have another type than its own");
  const Name y = c.ml("DictVectorizer", {c.x()}, {by_position(c, "keys", "string_vocabulary", "int64_vocabulary")});
  set_vector(c, c.cast(c.reshape(y, {-1}), DType::fp64), n);
}

void map(Call& c) {
  const ir::TensorView *keys = c.known().value("keys"), *values = c.known().value("values");
  const ir::TensorView* unknown = c.known().value("unknown");
  std::vector<ox::Attribute> a;
  Name x = c.x();
  if (keys->dtype == DType::string) {
    a.push_back(attr("keys_strings", texts(*keys)));
  } else {
    a.push_back(attr("keys_int64s", numbers(*keys)));
    if (c.dtype("x") != DType::int64) x = c.cast(x, DType::int64);
  }
  if (values->dtype == DType::string) {
    a.push_back(attr("values_strings", texts(*values)));
    a.push_back(attr("default_string", unknown != nullptr ? texts(*unknown)[0].c_str() : ""));
  } else {
    a.push_back(attr("values_int64s", numbers(*values)));
    a.push_back(attr("default_int64", unknown != nullptr ? numbers(*unknown)[0] : int64_t{-1}));
  }
  c.set(c.ml("LabelEncoder", {x}, std::move(a)));
}

/// Distances to all samples, the nearest ones, and the share of each class.
void nearest_neighbors(Call& c) {
  if (!whole_rows(c)) return;
  const auto samples = c.constant("samples"), labels = c.constant("labels");
  const int64_t classes = c.integer("classes");
  if (!samples || !labels || c.refused()) return c.refuse("its samples are not constants");
  const DType f = DType::fp64;
  const int64_t n = samples->shape()[0], k = std::min(c.integer("k"), n);
  if (n == 0) return c.refuse("it has no samples");
  ir::Tensor points = c.take(ir::Tensor::uninitialized(f, samples->shape()));
  ir::Tensor votes = c.take(ir::Tensor::zeros(f, {n, classes}));
  if (c.refused()) return;
  for (int64_t i = 0; i < points.count(); i++) ir::store_f64(points.view(), i, ir::load_f64(samples->view(), i));
  for (int64_t i = 0; i < n; i++) ir::store_f64(votes.view(), i * classes + ir::load_i64(labels->view(), i), 1);
  const Name difference = c.node("Sub", {c.graph.tensor(points), c.x()});
  const Name distance =
      c.node("ReduceSum", {c.node("Mul", {difference, difference}), c.i64({1})}, {attr("keepdims", 0)});
  const auto near = c.nodes("TopK", {distance, c.i64({k})}, {attr("largest", 0), attr("sorted", 1)}, 2);
  const Name mine = c.node("Gather", {c.graph.tensor(votes), near[1]}, {attr("axis", 0)});
  if (c.text("weighting") != "inverse_distance") return c.set(c.reduce("ReduceMean", mine, {0}, false));
  const Name hits = c.node("Equal", {near[0], c.scalar(f, 0)});
  const Name some = c.node("Equal", {c.node("ReduceMin", {near[0]}, {attr("keepdims", 0)}), c.scalar(f, 0)});
  const Name inverse = c.node("Reciprocal", {c.node("Sqrt", {near[0]})});
  const Name weight = c.node("Where", {some, c.cast(hits, f), inverse});
  const Name sum = c.node("ReduceSum", {weight}, {attr("keepdims", 0)});
  c.set(c.node("Div", {c.node("MatMul", {weight, mine}), sum}));
}

}  // namespace

std::span<const OpWriter> writers_classic();
std::span<const OpWriter> writers_classic() {
  static constexpr OpWriter list[] = {
      {"ml_convert", convert},
      {"ml_extract", extract},
      {"ml_feature_vectorize", feature_vectorize},
      {"ml_impute", impute},
      {"ml_scale", scale},
      {"ml_normalize", normalize},
      {"ml_linear", classic_linear},
      {"ml_link", link},
      {"ml_classify", classify_list},
      {"ml_one_hot", classic_one_hot},
      {"ml_dict_vectorize", dict_vectorize},
      {"ml_map", map},
      {"ml_nearest_neighbors", nearest_neighbors},
  };
  return list;
}

}  // namespace moka::compiler::onnx
