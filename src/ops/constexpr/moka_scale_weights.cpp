// SPDX-License-Identifier: Apache-2.0
#include <vector>

#include "ops/common/common.h"
#include "ops/common/shapes.h"

namespace moka::ops {

namespace {

/// The dimensions of a layer, derived from its weights.
struct Channels {
  int64_t groups, rows, columns, taps;  ///< rows and columns: the first two dimensions of the weights
  bool transposed;

  int64_t across() const { return columns * groups; }
  int64_t taken() const { return transposed ? rows : across(); }
  int64_t made() const { return transposed ? across() : rows; }
};

Result<Channels> channels_of(const OpCall& call) {
  const Shape& w = call.shape("weight");
  return Channels{MOKA_TRY(call.integer("groups")), w[0], w[1], w.count(2, w.rank()),
                  MOKA_TRY(call.flag("transposed"))};
}

Result<std::vector<Type>> infer_moka_scale_weights(const OpCall& call) {
  const Type& w = call.type("weight");
  if (!w.is_concrete() || w.rank() < 2) return call.error("weight", "a known shape of at least 2 dimensions", cat(w));
  const int64_t groups = MOKA_TRY(call.integer("groups"));
  if (groups < 1 || w.shape()[0] % groups != 0)
    return call.error("groups", cat("a divisor of ", w.shape()[0]), cat(groups));
  MOKA_TRY(multiply_dims(w.shape()[1], groups));
  const Channels c = MOKA_TRY(channels_of(call));
  for (const auto& [param, n] : {std::pair("input_scale", c.taken()), std::pair("output_scale", c.made())}) {
    const Type& s = call.type(param);
    if (s.rank() != 1 || (s.shape()[0] != 1 && s.shape()[0] != n))
      return call.error(param, cat("one entry, or one for each of ", n, " channels"), cat(s));
  }
  return one(w);
}

template <class T>
void scale(const Channels& c, const T* w, const TensorView& input, const TensorView& output, T* y) {
  const auto *in = input.as<double>(), *out = output.as<double>();
  const int64_t in_step = input.count() > 1 ? 1 : 0, out_step = output.count() > 1 ? 1 : 0;
  const double *by_row = c.transposed ? in : out, *by_column = c.transposed ? out : in;
  const int64_t row_step = c.transposed ? in_step : out_step, column_step = c.transposed ? out_step : in_step;
  std::vector<double> factors(static_cast<size_t>(c.columns));
  for (int64_t i = 0; i < c.rows; i++) {
    const double* group = by_column + i / (c.rows / c.groups) * c.columns * column_step;
    for (int64_t j = 0; j < c.columns; j++)
      factors[static_cast<size_t>(j)] = by_row[i * row_step] * group[j * column_step];
    if (c.taps == 1) {
      for (int64_t j = 0; j < c.columns; j++)
        y[j] = static_cast<T>(static_cast<double>(w[j]) * factors[static_cast<size_t>(j)]);
    } else {
      for (int64_t j = 0; j < c.columns; j++)
        for (int64_t t = 0; t < c.taps; t++)
          y[j * c.taps + t] = static_cast<T>(static_cast<double>(w[j * c.taps + t]) * factors[static_cast<size_t>(j)]);
    }
    w += c.columns * c.taps;
    y += c.columns * c.taps;
  }
}

Status moka_scale_weights_reference(const OpCall& call, std::span<const TensorView> out) {
  const Channels c = MOKA_TRY(channels_of(call));
  const TensorView &w = call.in("weight"), &input = call.in("input_scale"), &output = call.in("output_scale");
  if (w.count() == 0) return {};
  if (w.dtype == DType::fp32)
    scale(c, w.as<float>(), input, output, out[0].as<float>());
  else
    scale(c, w.as<double>(), input, output, out[0].as<double>());
  return {};
}

}  // namespace

OpDef define_moka_scale_weights() {
  return OpBuilder("moka_scale_weights",
                   "The weights of a convolution or a linear layer times a scale per input channel and one per output "
                   "channel. A pass makes it of operations before and after the layer.")
      .type_var("T", any_of(DType::fp32, DType::fp64))
      .in("weight", "T")
      .in("input_scale", only(DType::fp64))
      .in("output_scale", only(DType::fp64))
      .constant("groups", kI32)
      .constant("transposed", kBool)
      .infer(infer_moka_scale_weights)
      .reference(moka_scale_weights_reference)
      .note(
          "Products are computed in float64 and rounded once. `transposed`: the first dimension counts input channels.",
          "conv, conv_transpose and linear")
      .build();
}

}  // namespace moka::ops
