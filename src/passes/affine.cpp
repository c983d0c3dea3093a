#include "passes/affine.h"

#include "passes/rewrite.h"

namespace moka::passes {

using namespace ir;

std::optional<std::vector<double>> vector_of(const Op& op, std::string_view param, size_t channels, double missing,
                                             size_t max_bytes) {
  const Value* v = op.input(param);
  if (v == nullptr) return std::vector<double>(channels, missing);
  const auto t = constant_value(*v, max_bytes);
  if (!t || static_cast<size_t>(t->count()) != channels) return std::nullopt;
  return as_doubles(*t);
}

namespace {

/// The entries of a constant that varies only along dimension `axis` of a tensor of rank `rank`.
std::optional<std::vector<double>> per_channel(const Value* v, int rank, int axis, int64_t channels) {
  const Tensor* t = tensor_constant(v);
  if (t == nullptr || !is_float(t->dtype()) || t->shape().rank() > rank) return std::nullopt;
  for (int i = 0; i < t->shape().rank(); i++) {
    const int64_t d = t->shape()[i];
    if (d != 1 && (i + rank - t->shape().rank() != axis || d != channels)) return std::nullopt;
  }
  return as_doubles(*t);
}

std::optional<Affine> batch_norm(const Op& op, int64_t channels, size_t max_bytes) {
  const auto n = static_cast<size_t>(channels);
  const auto mean = vector_of(op, "mean", n, 0, max_bytes), variance = vector_of(op, "variance", n, 1, max_bytes),
             gamma = vector_of(op, "gamma", n, 1, max_bytes), beta = vector_of(op, "beta", n, 0, max_bytes);
  const auto epsilon = number_of(op, "epsilon");
  if (!mean || !variance || !gamma || !beta || !epsilon) return std::nullopt;
  Affine a{std::vector<double>(n), std::vector<double>(n)};
  for (size_t i = 0; i < n; i++) {
    a.scale[i] = (*gamma)[i] / std::sqrt((*variance)[i] + *epsilon);
    a.shift[i] = (*beta)[i] - (*mean)[i] * a.scale[i];
  }
  return a;
}

}  // namespace

std::optional<Affine> affine_of(const Op& op, const Value& x, int axis, int64_t channels, size_t max_bytes) {
  const std::string& type = op.type_name();
  const int rank = x.type.rank();
  if (!op.epilogue.empty()) return std::nullopt;
  if (type == "batch_norm")
    return axis == 1 && op.input("x") == &x ? batch_norm(op, channels, max_bytes) : std::nullopt;
  if (type == "linear_activation") {
    const auto alpha = number_of(op, "alpha"), beta = number_of(op, "beta");
    if (!alpha || !beta) return std::nullopt;
    return Affine{{*alpha}, {*beta}};
  }
  if (type != "add" && type != "mul" && type != "sub" && type != "real_div") return std::nullopt;
  const bool first = op.input("x") == &x;
  if (op.input("x") == nullptr || op.input("y") == nullptr) return std::nullopt;
  const Value* other = op.input(first ? "y" : "x");
  if (other == &x || (!first && type == "real_div")) return std::nullopt;
  auto c = per_channel(other, rank, axis, channels);
  if (!c || (c->size() > 1 && x.type.shape()[axis] != channels)) return std::nullopt;
  if (type == "mul") return Affine{std::move(*c), {0}};
  if (type == "real_div") {
    for (double& v : *c) v = 1 / v;
    return Affine{std::move(*c), {0}};
  }
  if (type == "sub" && first)
    for (double& v : *c) v = -v;
  return Affine{{type == "sub" && !first ? -1.0 : 1.0}, std::move(*c)};
}

}  // namespace moka::passes
