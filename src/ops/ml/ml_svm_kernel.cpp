// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "ops/common/ml.h"

namespace moka::ops {
namespace {

Result<std::vector<Type>> infer_ml_svm_kernel(const OpCall& call) {
  int64_t rows = MOKA_TRY(ml::vector_length(call, "row_begin")) - 1;
  int64_t nodes = MOKA_TRY(ml::vector_length(call, "columns"));
  MOKA_TRY(ml::check_length(call, "values", nodes));
  MOKA_TRY(call.text("kernel"));
  MOKA_TRY(call.number("gamma"));
  MOKA_TRY(call.number("c"));
  MOKA_TRY(call.integer("degree"));
  MOKA_TRY(call.flag("exact"));
  if (rows < 0) return call.error("row_begin", "at least one element", "none");
  auto begin = ml::span_of<int64_t>(*call.value("row_begin"));
  auto columns = ml::span_of<int64_t>(*call.value("columns"));
  if (begin[0] != 0 || begin[static_cast<size_t>(rows)] != nodes || !std::is_sorted(begin.begin(), begin.end()))
    return call.error("row_begin", cat("ascending from 0 to ", nodes), "other values");
  int64_t n = ml::count_of(MOKA_TRY(ml::row_type(call, "x")));
  for (int64_t r = 0; r < rows; ++r) {
    int64_t previous = -1;
    for (int64_t i = begin[static_cast<size_t>(r)]; i < begin[static_cast<size_t>(r) + 1]; ++i) {
      int64_t c = columns[static_cast<size_t>(i)];
      if (c <= previous || (n >= 0 && c >= n))
        return call.error(cat("support vector ", r, " has column ", c, ": expected ascending columns below ", n));
      previous = c;
    }
  }
  return one(MOKA_TRY(ml::vectors_of(call, DType::fp64, rows)));
}

double squared_distance(std::span<const double> x, const int64_t* columns, const double* values, int64_t nodes) {
  double sum = 0;
  size_t k = 0;
  for (int64_t i = 0; i < nodes; ++i) {
    for (; k < static_cast<size_t>(columns[i]); ++k) sum += x[k] * x[k];
    double d = x[k++] - values[i];
    sum += d * d;
  }
  for (; k < x.size(); ++k) sum += x[k] * x[k];
  return sum;
}

Status ml_svm_kernel_reference(const OpCall& call, std::span<const TensorView> out) {
  const ml::Rows rows = MOKA_TRY(ml::rows_of(call, call.in("x")));
  const int64_t vectors = call.in("row_begin").count() - 1;
  const int64_t* begin = call.in("row_begin").as<int64_t>();
  const int64_t* columns = call.in("columns").as<int64_t>();
  const double* values = call.in("values").as<double>();
  std::string_view kernel = MOKA_TRY(call.text("kernel"));
  double gamma = MOKA_TRY(call.number("gamma"));
  double c = MOKA_TRY(call.number("c"));
  double degree = static_cast<double>(MOKA_TRY(call.integer("degree")));
  for (int64_t i = 0; i < rows.count * vectors; ++i) {
    const int64_t r = i % vectors;
    const std::span<const double> x(call.in("x").as<double>() + i / vectors * rows.length,
                                    static_cast<size_t>(rows.length));
    double& y = out[0].as<double>()[i];
    int64_t from = begin[r], n = begin[r + 1] - from;
    if (kernel == "rbf") {
      y = std::exp(-gamma * squared_distance(x, columns + from, values + from, n));
      continue;
    }
    double dot = 0;
    for (int64_t k = from; k < from + n; ++k) dot += x[static_cast<size_t>(columns[k])] * values[k];
    if (kernel == "linear")
      y = dot;
    else if (kernel == "poly")
      y = std::pow(gamma * dot + c, degree);
    else
      y = std::tanh(gamma * dot + c);
  }
  return {};
}

}  // namespace

OpDef define_ml_svm_kernel() {
  return ml::define("ml_svm_kernel",
                    "The kernel of x with each support vector. Vector r is sparse: values at columns "
                    "[row_begin[r], row_begin[r + 1]). `exact`: the last bit matters, as votes between classes may "
                    "depend on it.")
      .in("x", ml::kF64)
      .constant("row_begin", ml::kI64)
      .constant("columns", ml::kI64)
      .constant("values", ml::kF64)
      .constant("kernel", kString)
      .one_of({"linear", "rbf", "poly", "sigmoid"})
      .constant("gamma", ml::kF64)
      .constant("c", ml::kF64)
      .constant("degree", only(DType::int32))
      .constant("exact", kBool)
      .or_else(Tensor::boolean(false))
      .constant("rows", kBool)
      .or_else(Tensor::boolean(false))
      .infer(infer_ml_svm_kernel)
      .reference(ml_svm_kernel_reference)
      .build();
}

}  // namespace moka::ops
