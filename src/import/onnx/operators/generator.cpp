// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <numbers>

#include "import/onnx/node.h"

namespace moka::import::onnx {
namespace {

/// A constant keeps its own element type until an operation reads it.
void set_constant(Node& n, Tensor t, DataType type) { n.set(0, Item{nullptr, std::move(t), type}); }

void constant(Node& n) {
  for (const Attribute& given : n.message.attributes) {
    const Attribute* a = n.attribute(given.name);
    if (a == nullptr) continue;
    const std::string& name = given.name;
    if (name == "value" && !a->tensors.empty())
      return set_constant(n, tensor_of(a->tensors[0], n.scope.context.file), a->tensors[0].type);
    if (name == "sparse_value" && !a->sparse_tensors.empty())
      return set_constant(n, tensor_of(a->sparse_tensors[0], n.scope.context.file), a->sparse_tensors[0].values.type);
    if (name == "value_float") return set_constant(n, Tensor::scalar(DType::fp32, a->number), DataType::float32);
    if (name == "value_int") return set_constant(n, Tensor::scalar_i64(DType::int64, a->integer), DataType::int64);
    if (name == "value_string") return set_constant(n, Tensor::text(a->string), DataType::string);
    if (name == "value_floats") {
      const auto count = static_cast<int64_t>(a->numbers.size());
      return set_constant(n, Tensor::f32(Shape{count}, a->numbers), DataType::float32);
    }
    if (name == "value_ints") {
      Tensor t = need(Tensor::zeros(DType::int64, Shape{static_cast<int64_t>(a->integers.size())}));
      std::copy(a->integers.begin(), a->integers.end(), t.mut<int64_t>().begin());
      return set_constant(n, std::move(t), DataType::int64);
    }
    if (name == "value_strings")
      return set_constant(n, Tensor::strings(Shape{static_cast<int64_t>(a->strings.size())}, a->strings),
                          DataType::string);
  }
  n.malformed("a Constant without a value");
}

void constant_of_shape(Node& n) {
  const Attribute* a = n.attribute("value");
  Tensor value = Tensor::scalar(DType::fp32, 0);
  DataType type = DataType::float32;
  if (a != nullptr && !a->tensors.empty()) {
    value = tensor_of(a->tensors[0], n.scope.context.file);
    type = a->tensors[0].type;
  }
  if (value.count() != 1) n.malformed("the value has more than one element");
  const Tensor one = computed(value.reshaped(Shape()), n.message.outputs.empty() ? "" : n.message.outputs[0]);
  Value* shape = n.in(0);
  const std::vector<Size> sizes = n.sizes_of(shape);
  if (sizes.empty()) return n.set(0, n.constant(one), type);
  Value* v = n.op("fill", {{"shape", shape}, {"value", one}});
  if (v->constant() == nullptr && v->type.is_ranked())
    for (size_t i = 0; i < sizes.size(); ++i)
      v->type.shape()[static_cast<int>(i)] = sizes[i].known ? sizes[i].value : sizes[i].symbol;
  n.set(0, v, type);
}

void range(Node& n) {
  Value *start = n.in(0), *limit = n.in(1), *delta = n.in(2);
  const auto scalar = [&](Value* v) { return n.rank(v) == 0 ? v : n.reshape(v, {}); };
  n.set(0, n.op("range_1d", {{"end", scalar(limit)}, {"start", scalar(start)}, {"step", scalar(delta)}}));
}

void eye_like(Node& n) {
  const Shape& s = n.known_shape(n.in(0), "EyeLike");
  if (s.rank() != 2) n.malformed("EyeLike takes a matrix");
  const auto type = static_cast<DataType>(n.integer_or("dtype", static_cast<int64_t>(n.type())));
  const int64_t k = n.integer_or("k", 0);
  constexpr int64_t most = int64_t{1} << 28;
  if (need(s.checked_count()) > most) n.unsupported(cat("a constant of shape ", s));
  Tensor t = need(Tensor::zeros(computed_as(type), s));
  for (int64_t i = 0; i < s[0]; ++i)
    if (i + k >= 0 && i + k < s[1]) ir::store_f64(t.view(), i * s[1] + i + k, 1);
  n.set(0, n.constant(t), type);
}

/// Window functions: coefficients of cosines of multiples of 2 pi i / N.
void window(Node& n, std::initializer_list<double> coefficients) {
  const double size = n.number(0, "size");
  constexpr double most = 1 << 24;
  if (!(size >= 0 && size <= most)) n.malformed(cat("a window of ", size, " elements"));
  const bool periodic = n.integer_or("periodic", 1) != 0;
  const double period = periodic ? size : size - 1;
  const auto type = static_cast<DataType>(n.integer_or("output_datatype", 1));
  Tensor t = need(Tensor::zeros(computed_as(type), Shape{static_cast<int64_t>(size)}));
  for (int64_t i = 0; i < t.count(); ++i) {
    double v = 0;
    int k = 0;
    for (const double c : coefficients) v += c * std::cos(2 * std::numbers::pi * static_cast<double>(i) * k++ / period);
    ir::store_f64(t.view(), i, v);
  }
  n.set(0, n.constant(t), type);
}

void mel_weight_matrix(Node& n) {
  const int64_t bins = n.integer(0, "num_mel_bins"), length = n.integer(1, "dft_length");
  const auto rate = n.number(2, "sample_rate"), low = n.number(3, "lower_edge_hertz"),
             high = n.number(4, "upper_edge_hertz");
  const auto type = static_cast<DataType>(n.integer_or("output_datatype", 1));
  const int64_t rows = length / 2 + 1;
  constexpr int64_t most = 1 << 16;
  if (bins < 1 || bins > most || length < 1 || length > most || !(rate > 0))
    n.malformed("sizes or a rate that make no matrix");
  constexpr double factor = 2595, corner = 700;
  const auto mel = [&](double hertz) { return factor * std::log10(1 + hertz / corner); };
  const double low_mel = mel(low), step = (mel(high) - low_mel) / static_cast<double>(bins + 2);
  std::vector<int64_t> points;
  for (int64_t i = 0; i < bins + 2; ++i) {
    const double hertz = corner * (std::pow(10, (static_cast<double>(i) * step + low_mel) / factor) - 1);
    points.push_back(static_cast<int64_t>(std::floor(static_cast<double>(length + 1) * hertz / rate)));
  }
  Tensor t = need(Tensor::zeros(computed_as(type), Shape{rows, bins}));
  const auto put = [&](int64_t row, int64_t column, double v) {
    if (row >= 0 && row < rows) ir::store_f64(t.view(), row * bins + column, v);
  };
  for (int64_t i = 0; i < bins; ++i) {
    const int64_t lower = points[static_cast<size_t>(i)], center = points[static_cast<size_t>(i) + 1],
                  higher = points[static_cast<size_t>(i) + 2];
    if (center == lower) put(center, i, 1);
    for (int64_t j = lower; j <= center && center > lower; ++j)
      put(j, i, static_cast<double>(j - lower) / static_cast<double>(center - lower));
    for (int64_t j = center; j < higher && higher > center; ++j)
      put(j, i, static_cast<double>(higher - j) / static_cast<double>(higher - center));
  }
  n.set(0, n.constant(t), type);
}

/// Random numbers are drawn when the program runs, with the seed of the node if it has one.
void random(Node& n, bool normal, bool like) {
  Value* shape = like ? n.shape_of(n.in(0)) : n.integers_constant(n.integers_or("shape"));
  const auto type = static_cast<DataType>(n.integer_or("dtype", like ? static_cast<int64_t>(n.type()) : 1));
  const DType own = computed_as(type);
  const int seed = n.attribute("seed") != nullptr ? static_cast<int>(n.number_or("seed", 0)) : -1;
  const auto number = [&](std::string_view name, float otherwise) {
    return NamedArg(normal ? (name == "mean" ? "mean" : "stddev") : std::string(name),
                    Tensor::scalar(own, n.number_or(normal && name == "stddev" ? "scale" : name, otherwise)));
  };
  std::vector<NamedArg> args{{"shape", shape}};
  args.push_back(normal ? number("mean", 0) : number("low", 0));
  args.push_back(normal ? number("stddev", 1) : number("high", 1));
  args.emplace_back("seed", seed);
  n.set(0, n.op(normal ? "random_normal" : "random_uniform", std::move(args)), type);
}

void multinomial(Node& n) {
  const auto type = static_cast<DataType>(n.integer_or("dtype", static_cast<int64_t>(DataType::int32)));
  const int seed = n.attribute("seed") != nullptr ? static_cast<int>(n.number_or("seed", 0)) : -1;
  Value* drawn = n.op(
      "random_categorical",
      {{"x", n.in(0)}, {"mode", "logits"}, {"size", static_cast<int>(n.integer_or("sample_size", 1))}, {"seed", seed}});
  n.set(0, n.cast(drawn, computed_as(type)), type);
}

void bernoulli(Node& n) {
  Value* x = n.in(0);
  const auto type = static_cast<DataType>(n.integer_or("dtype", static_cast<int64_t>(n.type())));
  const int seed = n.attribute("seed") != nullptr ? static_cast<int>(n.number_or("seed", 0)) : -1;
  Value* drawn =
      n.op("random_uniform", {{"shape", n.shape_of(x)}, n.arg("low", 0, x), n.arg("high", 1, x), {"seed", seed}});
  n.set(0, n.cast(n.binary("less", drawn, x), computed_as(type)), type);
}

constexpr OperatorImport kGeneratorOperators[] = {
    {"Constant", constant},
    {"ConstantOfShape", constant_of_shape},
    {"Range", range},
    {"EyeLike", eye_like},
    {"HannWindow",
     [](Node& n) {
       window(n, {0.5, -0.5});
     }},
    {"HammingWindow",
     [](Node& n) {
       window(n, {25.0 / 46, -21.0 / 46});
     }},
    {"BlackmanWindow",
     [](Node& n) {
       window(n, {0.42, -0.5, 0.08});
     }},
    {"MelWeightMatrix", mel_weight_matrix},
    {"RandomNormal", [](Node& n) { random(n, true, false); }},
    {"RandomNormalLike", [](Node& n) { random(n, true, true); }},
    {"RandomUniform", [](Node& n) { random(n, false, false); }},
    {"RandomUniformLike", [](Node& n) { random(n, false, true); }},
    {"Bernoulli", bernoulli},
    {"Multinomial", multinomial},
};

}  // namespace

std::span<const OperatorImport> operators_generator() { return kGeneratorOperators; }

}  // namespace moka::import::onnx
