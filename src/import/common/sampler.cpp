// SPDX-License-Identifier: Apache-2.0
#include "import/common/sampler.h"

namespace moka::import {

using ir::DType;
using ir::Shape;
using ir::Tensor;
using ir::Value;

Value* clamped(const Expressions& n, Value* x, double low, double high) {
  return n.op("clip", {{"x", x}, n.arg("alpha", low, x), n.arg("beta", high, x)});
}

Value* reflected(const Expressions& n, Value* x, int64_t size, bool align) {
  const double low = align ? 0 : -0.5, high = align ? static_cast<double>(size) - 1 : static_cast<double>(size) - 0.5;
  const double range = high - low;
  if (range <= 0) return n.mul(x, 0.0);
  Value* d = n.unary("abs", n.add(x, -low));
  Value* rest = n.binary("mod", d, n.scalar(2 * range, x));
  Value* back = n.sub(2 * range, rest);
  return n.add(n.binary("minimum", rest, back), low);
}

namespace {

/// The elements at whole positions, one vector of positions per axis, each [batch, points]: [batch, channels, points].
Value* fetch(const Expressions& n, const Sampler& s, std::vector<Value*> at) {
  Value* inside = nullptr;
  Value* index = nullptr;
  for (size_t a = 0; a < at.size(); ++a) {
    const double last = static_cast<double>(s.sizes[a]) - 1;
    Value* p = at[a];
    if (s.padding == "reflection") p = reflected(n, p, s.sizes[a], s.align);
    if (s.padding == "zeros") {
      Value* here = n.binary("logical_and", n.binary("greater_equal", p, n.scalar(0, p)),
                             n.binary("less_equal", p, n.scalar(last, p)));
      inside = inside == nullptr ? here : n.binary("logical_and", inside, here);
    }
    p = clamped(n, n.unary("round", p), 0, last);
    index = index == nullptr ? p : n.add(n.mul(index, static_cast<double>(s.sizes[a])), p);
  }
  const Shape image = s.image->type.shape();
  Value* whole = n.cast(index, DType::int32);
  Value* spread = n.op("tile", {{"x", n.expand_dims(whole, {1})}, {"reps", Tensor::i32({1, image[1], 1})}});
  Value* out = n.op("gather_along_axis", {{"x", s.image}, {"indices", spread}, {"axis", 2}});
  if (inside == nullptr) return out;
  return n.select(n.expand_dims(inside, {1}), out, n.scalar(0, out));
}

double cubic(double a, int k, int power) {
  // Coefficients of t^power in the weight of neighbor k (-1..2) at distance t behind neighbor 0.
  const double table[4][4] = {{0, a, -2 * a, a}, {1, 0, -(a + 3), a + 2}, {0, -a, 2 * a + 3, -(a + 2)}, {0, 0, a, -a}};
  return table[k + 1][power];
}

/// Weights of the neighbors of a position along an axis, with the distance of its lower neighbor.
std::vector<std::pair<Value*, Value*>> neighbors(const Expressions& n, Value* p, const std::string& mode) {
  if (mode == "nearest") return {{n.unary("round", p), nullptr}};
  Value* low = n.unary("floor", p);
  Value* t = n.sub(p, low);
  if (mode == "linear") return {{low, n.sub(1.0, t)}, {n.add(low, 1.0), t}};
  std::vector<std::pair<Value*, Value*>> out;
  for (int k = -1; k <= 2; ++k) {
    constexpr double a = -0.75;
    Value* w = n.scalar(cubic(a, k, 3), p);
    for (int power = 2; power >= 0; --power) w = n.add(n.mul(w, t), cubic(a, k, power));
    out.emplace_back(n.add(low, static_cast<double>(k)), w);
  }
  return out;
}

}  // namespace

std::vector<Value*> weighted_neighbors(const Expressions& n, const Sampler& s, const std::vector<Value*>& positions,
                                       const std::string& mode) {
  std::vector<std::vector<std::pair<Value*, Value*>>> axes;
  for (Value* p : positions) axes.push_back(neighbors(n, p, mode));
  std::vector<Value*> out;
  std::vector<size_t> at(axes.size(), 0);
  for (bool done = false; !done;) {
    std::vector<Value*> corner;
    Value* weight = nullptr;
    for (size_t a = 0; a < axes.size(); ++a) {
      corner.push_back(axes[a][at[a]].first);
      Value* w = axes[a][at[a]].second;
      if (w != nullptr) weight = weight == nullptr ? w : n.mul(weight, w);
    }
    Value* v = fetch(n, s, corner);
    if (weight != nullptr) v = n.mul(v, n.expand_dims(weight, {1}));
    out.push_back(v);
    done = true;
    for (size_t a = axes.size(); a-- > 0 && done;) {
      if (++at[a] < axes[a].size())
        done = false;
      else
        at[a] = 0;
    }
  }
  return out;
}

Value* sampled(const Expressions& n, const Sampler& s, const std::vector<Value*>& positions, const std::string& mode) {
  const std::vector<Value*> all = weighted_neighbors(n, s, positions, mode);
  Value* total = all[0];
  for (size_t i = 1; i < all.size(); ++i) total = n.add(total, all[i]);
  return total;
}

}  // namespace moka::import
