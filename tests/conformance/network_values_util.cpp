// SPDX-License-Identifier: Apache-2.0
#include "conformance/network_values_util.h"

#include <algorithm>
#include <cmath>

namespace moka::conformance {

using namespace ir;

namespace {

constexpr int64_t kMostElements = 6'000, kMostOfLarge = 60'000;  // of one value

Opset opset_of(Choices& c) { return c.pick(std::vector{Opset::ios15, Opset::ios16, Opset::ios17, Opset::ios18}); }

}  // namespace

NetworkValues::NetworkValues(Choices& c)
    : c_(c),
      function_(std::make_unique<Function>("main", opset_of(c))),
      builder_(ops::table(), function_->body()),
      random_(c.below(1 << 16)),
      dtype_(c.one_in(4) ? DType::fp16 : DType::fp32),
      large_(c.one_in(8)) {}

int64_t NetworkValues::channels() {
  return c_.pick(large_ ? Sizes{16, 24, 32, 48, 64, 65, 96, 128} : Sizes{1, 2, 3, 4, 5, 6, 8, 12, 16, 17, 20, 32});
}

Tensor NetworkValues::random(const Sizes& s, double most, double middle) {
  std::uniform_real_distribution<double> draw(middle - most, middle + most);
  Tensor t = Tensor::zeros(dtype_, Shape(s)).value();
  for (int64_t i = 0; i < t.count(); ++i) store_f64(t.view(), i, draw(random_));
  return t;
}

Tensor NetworkValues::number(double v) {
  Tensor t = Tensor::zeros(dtype_, Shape{}).value();
  store_f64(t.view(), 0, v);
  return t;
}

Tensor NetworkValues::factors(const Value* x, double most, double middle) {
  Sizes s = sizes(x);
  switch (c_.below(6)) {
    case 0: return c_.one_in(2) ? random({}, most, middle) : random({1}, most, middle);
    case 1: break;
    case 2: s = {s.back()}; break;
    case 3:  // one row of several
      for (size_t i = 0; i < s.size(); ++i)
        if (c_.one_in(2)) s[i] = 1;
      break;
    default:  // one number for each channel
      for (size_t i = 0; i < s.size(); ++i)
        if (i != 1) s[i] = 1;
      if (s.size() > 1 && c_.one_in(2)) s.erase(s.begin());
  }
  return random(s, most, middle);
}

Sizes NetworkValues::permutation(size_t rank) {
  Sizes p(rank);
  std::iota(p.begin(), p.end(), 0);
  switch (c_.below(4)) {
    case 0:  // channels last
      if (rank > 2) std::rotate(p.begin() + 1, p.begin() + 2, p.end());
      break;
    case 1:  // channels first
      if (rank > 2) std::rotate(p.begin() + 1, p.end() - 1, p.end());
      break;
    case 2: std::swap(p[rank - 1], p[rank - 2]); break;
    default: std::shuffle(p.begin(), p.end(), random_);
  }
  return p;
}

NamedArg NetworkValues::given(const char* name, Tensor t) {
  if (c_.one_in(2)) return {name, std::move(t)};
  return {name, builder_.constant(function_->unique_name("w"), std::move(t)).value()};
}

Value* NetworkValues::op(std::string_view name, std::vector<NamedArg> args) {
  for (const NamedArg& a : args)
    for (const Value* v : a.values)
      if (v == nullptr) return nullptr;
  auto made = builder_.op(name, std::move(args), function_->unique_name(std::string(name)));
  if (!made.ok()) return nullptr;
  const Type& t = (*made)->type;
  if (!t.is_tensor() || !t.is_concrete() || t.shape().count() > (large_ ? kMostOfLarge : kMostElements)) return nullptr;
  return *made;
}

NamedArg NetworkValues::weights(const char* name, const Sizes& s, int64_t taken) {
  const double most = 1.5 / std::sqrt(static_cast<double>(std::max<int64_t>(taken, 1)));
  Value* v = nullptr;
  if (function_->opset >= Opset::ios16 && c_.one_in(3)) {
    const bool blocks = function_->opset >= Opset::ios18;
    if (c_.one_in(2))
      v = blocks ? palettes(s, most) : palette(s, most);
    else
      v = blocks ? blockwise(s, most) : affine_weights(s, most);
  }
  return v == nullptr ? given(name, random(s, most)) : NamedArg(name, v);
}

Tensor NetworkValues::codes(DType dtype, const Sizes& s) {
  Tensor t = Tensor::zeros(dtype, Shape(s)).value();
  for (int64_t i = 0; i < t.count(); ++i) store_i64(t.view(), i, static_cast<int64_t>(random_()));
  return t;
}

/// A random divisor of `n`.
int64_t NetworkValues::divisor(int64_t n) {
  Sizes all{1, n};
  for (int64_t d = 2; d < n; ++d)
    if (n % d == 0) all.push_back(d);
  return c_.pick(all);
}

/// constexpr_lut_to_dense of iOS16: one table for all weights, indices of 1, 2, 4 or 8 bits.
Value* NetworkValues::palette(const Sizes& s, double most) {
  const int64_t bits = c_.pick(Sizes{1, 2, 4, 8});
  Tensor shape = Tensor::zeros(DType::uint32, Shape{static_cast<int64_t>(s.size())}).value();
  for (size_t i = 0; i < s.size(); ++i) store_i64(shape.view(), static_cast<int64_t>(i), s[i]);
  return op("constexpr_lut_to_dense", {{"indices", codes(DType::uint8, {(product_of(s) * bits + 7) / 8})},
                                       {"lut", random({int64_t{1} << bits}, most)},
                                       {"shape", shape}});
}

/// constexpr_lut_to_dense of iOS18: a table for each group of rows or columns.
Value* NetworkValues::palettes(const Sizes& s, double most) {
  const DType types[] = {DType::uint1, DType::uint2, DType::uint3, DType::uint4, DType::uint6, DType::uint8};
  const DType type = types[c_.below(6)];
  Sizes table(s.size() + 2, 1);
  if (c_.one_in(2)) table[0] = divisor(s[0]);
  if (c_.one_in(3)) table[1] = divisor(s[1]);
  table[s.size()] = int64_t{1} << bits(type);
  return op("constexpr_lut_to_dense", {{"indices", codes(type, s)}, {"lut", random(table, most)}});
}

/// constexpr_affine_dequantize of iOS16: a scale and a zero point for the tensor or for each entry of an axis.
Value* NetworkValues::affine_weights(const Sizes& s, double most) {
  const DType type = c_.one_in(2) ? DType::int8 : DType::uint8;
  const auto axis = c_.below(static_cast<uint32_t>(s.size()));
  const Sizes of_axis = c_.one_in(2) ? Sizes{} : Sizes{s[axis]};
  return op("constexpr_affine_dequantize", {{"quantized_data", codes(type, s)},
                                            {"zero_point", codes(type, c_.one_in(2) ? Sizes{} : of_axis)},
                                            {"scale", random(of_axis, most / 128, most / 64)},
                                            {"axis", static_cast<int>(axis)}});
}

/// constexpr_blockwise_shift_scale of iOS18: a scale for each block, sometimes with an offset.
Value* NetworkValues::blockwise(const Sizes& s, double most) {
  const DType types[] = {DType::int4, DType::uint4, DType::int8, DType::uint8};
  const DType type = types[c_.below(4)];
  Sizes scales(s.size(), 1);
  for (size_t i = 0; i < std::min<size_t>(s.size(), 2); ++i) scales[i] = divisor(s[i]);
  const double unit = most / (bits(type) == 4 ? 8 : 128);
  std::vector<NamedArg> args{{"data", codes(type, s)}, {"scale", random(scales, unit / 2, unit)}};
  if (c_.one_in(2)) args.emplace_back("offset", codes(type, scales));
  return op("constexpr_blockwise_shift_scale", std::move(args));
}

void forget_sizes(Function& f, DType dtype, Choices& c) {
  const auto forget = [](Value& v, const auto& which) {
    for (int i = 0; i < v.type.rank(); ++i)
      if (which(i)) v.type.shape()[i] = kAnyDim;
  };
  for (const auto& v : f.body().inputs())
    if (v->type.is_tensor() && v->type.dtype() == dtype) forget(*v, [&](int i) { return i != 1 && c.one_in(2); });
  const std::function<void(const Block&)> forget_results = [&](const Block& block) {
    for (const auto& op : block.ops()) {
      if (op->has_trait(Trait::constant) || op->has_trait(Trait::constexpr_weight)) continue;
      for (size_t i = 0; i < op->output_count(); ++i) forget(*op->output(i), [](int) { return true; });
      for (size_t i = 0; i < op->block_count(); ++i) {
        for (const auto& v : op->block(i)->inputs()) forget(*v, [](int) { return true; });
        forget_results(*op->block(i));
      }
    }
  };
  forget_results(f.body());
}

}  // namespace moka::conformance
