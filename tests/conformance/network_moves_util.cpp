// SPDX-License-Identifier: Apache-2.0
#include "conformance/network_moves_util.h"

#include <algorithm>

namespace moka::conformance {

using namespace ir;

void NetworkMoves::keep(Value* v) {
  if (v != nullptr && v->type.dtype() == dtype_ && v->type.rank() > 0) values_.push_back(v);
}

Value* NetworkMoves::any() {
  const auto n = static_cast<uint32_t>(values_.size());
  return c_.one_in(3) ? values_[c_.below(n)] : values_.back();
}

Value* NetworkMoves::like(Value* x) {
  std::vector<Value*> all;
  for (Value* v : values_)
    if (v->type == x->type) all.push_back(v);
  return all.empty() ? x : c_.pick(all);
}

void NetworkMoves::reshape(Value* x) {
  Sizes s = sizes(x);
  const auto rank = s.size();
  if (c_.one_in(2) && rank > 1) {  // merges two dimensions
    const size_t i = c_.below(static_cast<uint32_t>(rank - 1));
    s[i] *= s[i + 1];
    s.erase(s.begin() + static_cast<int64_t>(i) + 1);
  } else if (rank < 5) {  // splits one
    const size_t i = c_.below(static_cast<uint32_t>(rank));
    Sizes divisors;
    for (int64_t d = 1; d <= s[i]; ++d)
      if (s[i] % d == 0) divisors.push_back(d);
    const int64_t d = c_.pick(divisors);
    s[i] /= d;
    s.insert(s.begin() + static_cast<int64_t>(i), d);
  }
  if (c_.one_in(4)) s[c_.below(static_cast<uint32_t>(s.size()))] = -1;
  keep(op("reshape", {{"x", x}, {"shape", ints(s)}}));
}

void NetworkMoves::measured(Value* x) {
  Value* shape = builder_.op("shape", {{"x", x}}, function_->unique_name("shape")).value();
  auto first =
      builder_.op("slice_by_index", {{"x", shape}, {"begin", ints({0})}, {"end", ints({1})}, {"stride", ints({1})}},
                  function_->unique_name("first"));
  if (!first.ok()) return;
  auto rest = builder_.constant(function_->unique_name("rest"), ints({-1}));
  auto wanted = builder_.op("concat", {{"values", std::vector<Value*>{*first, *rest}}, {"axis", 0}},
                            function_->unique_name("wanted"));
  if (!wanted.ok()) return;
  auto made = builder_.op("reshape", {{"x", x}, {"shape", *wanted}}, function_->unique_name("measured"));
  if (!made.ok() || !(*made)->type.is_ranked()) return;
  // The sizes are known here, even if the inference does not follow them.
  (*made)->type = Type::tensor(dtype_, Shape{sizes(x)[0], x->type.shape().count() / std::max<int64_t>(sizes(x)[0], 1)});
  keep(*made);
}

void NetworkMoves::squeeze(Value* x) {
  const Sizes s = sizes(x);
  if (c_.one_in(2) && s.size() < 5)
    return keep(op("expand_dims", {{"x", x}, {"axes", ints({c_.from_to(0, static_cast<int64_t>(s.size()))})}}));
  if (std::find(s.begin(), s.end(), 1) != s.end() && s.size() > 2) keep(op("squeeze", {{"x", x}}));
}

void NetworkMoves::pad(Value* x) {
  const Sizes s = sizes(x);
  const auto padded = 1 + c_.below(static_cast<uint32_t>(std::min<size_t>(s.size(), 2)));
  Sizes margins;
  for (uint32_t i = 0; i < 2 * padded; ++i) margins.push_back(c_.from_to(0, 2));
  const char* modes[] = {"constant", "constant", "reflect", "replicate"};
  const auto mode = c_.below(4);
  std::vector<NamedArg> args{{"x", x}, {"pad", ints(margins)}, {"mode", modes[mode]}};
  if (mode < 2) args.emplace_back("constant_val", number(c_.one_in(3) ? 0.5 : 0));
  keep(op("pad", std::move(args)));
}

void NetworkMoves::pool(Value* x) {
  const Sizes s = sizes(x);
  if (s.size() < 3 || s.size() > 5) return;
  Sizes kernel, strides, pads;
  for (size_t i = 2; i < s.size(); ++i) {
    kernel.push_back(c_.from_to(1, 3));
    strides.push_back(c_.from_to(1, 2));
    for (int side = 0; side < 2; ++side) pads.push_back(c_.from_to(0, kernel.back() - 1));
  }
  const char* kinds[] = {"valid", "same", "custom"};
  const auto kind = c_.below(3);
  const bool average = c_.one_in(2);
  std::vector<NamedArg> args{
      {"x", x}, {"kernel_sizes", ints(kernel)}, {"strides", ints(strides)}, {"pad_type", kinds[kind]}};
  if (kind == 2) args.emplace_back("pad", ints(pads));
  if (average) args.emplace_back("exclude_padding_from_average", c_.one_in(2));
  keep(op(average ? "avg_pool" : "max_pool", std::move(args)));
}

void NetworkMoves::concat(Value* x) {
  const auto axis = c_.below(static_cast<uint32_t>(sizes(x).size()));
  std::vector<Value*> parts{x};
  for (Value* v : values_) {
    Sizes a = sizes(v), b = sizes(x);
    if (a.size() != b.size()) continue;
    a[axis] = b[axis] = 1;
    if (a == b && c_.one_in(2) && parts.size() < 4) parts.push_back(v);
  }
  if (c_.one_in(3)) parts.push_back(x);
  if (c_.one_in(3)) std::reverse(parts.begin(), parts.end());
  keep(op("concat", {{"values", parts}, {"axis", static_cast<int>(axis)}, {"interleave", c_.one_in(6)}}));
}

void NetworkMoves::stack(Value* x) {
  if (sizes(x).size() > 4) return;
  keep(op("stack", {{"values", std::vector<Value*>{x, like(x)}},
                    {"axis", static_cast<int>(c_.below(static_cast<uint32_t>(sizes(x).size())))}}));
}

void NetworkMoves::slice(Value* x) {
  const Sizes s = sizes(x);
  Sizes begin, end, stride;
  for (const int64_t n : s) {
    const bool whole = c_.one_in(2);
    begin.push_back(whole ? 0 : c_.from_to(0, n - 1));
    end.push_back(whole ? n : c_.from_to(begin.back() + 1, n));
    stride.push_back(whole || !c_.one_in(4) ? 1 : 2);
  }
  keep(op("slice_by_index", {{"x", x}, {"begin", ints(begin)}, {"end", ints(end)}, {"stride", ints(stride)}}));
}

void NetworkMoves::gather(Value* x) {
  const Sizes s = sizes(x);
  const auto axis = c_.below(static_cast<uint32_t>(s.size()));
  if (c_.one_in(3)) return keep(op("reverse", {{"x", x}, {"axes", ints({static_cast<int64_t>(axis)})}}));
  Sizes indices;
  for (int64_t n = c_.from_to(1, 4); n > 0; --n) indices.push_back(c_.from_to(0, s[axis] - 1));
  keep(op("gather", {{"x", x}, given("indices", ints(indices)), {"axis", static_cast<int>(axis)}}));
}

Value* NetworkMoves::replaced(Value* x, Value* from) {
  if (x == nullptr) return nullptr;
  const Sizes s = sizes(x);
  const size_t axis = c_.below(static_cast<uint32_t>(s.size()));
  const int64_t count = c_.from_to(1, s[axis]);
  Sizes begin(s.size(), 0), end = s;
  const auto at = [&](int64_t first) {
    begin[axis] = first;
    end[axis] = first + count;
  };
  at(c_.from_to(0, s[axis] - count));
  Value* update = op("slice_by_index", {{"x", from}, {"begin", ints(begin)}, {"end", ints(end)}});
  if (c_.one_in(2)) at(c_.from_to(0, s[axis] - count));
  return op("slice_update", {{"x", x}, {"update", update}, given("begin", ints(begin)), given("end", ints(end))});
}

void NetworkMoves::replace(Value* x) {
  if (function_->opset >= Opset::ios18) return keep(replaced(x, like(x)));
  keep(op("cumsum", {{"x", x}, {"axis", static_cast<int>(c_.below(static_cast<uint32_t>(sizes(x).size())))}}));
}

void NetworkMoves::tile(Value* x) {
  Sizes reps;
  for (size_t i = 0; i < sizes(x).size(); ++i) reps.push_back(c_.one_in(3) ? 2 : 1);
  keep(op("tile", {{"x", x}, {"reps", ints(reps)}}));
}

void NetworkMoves::shuffle(Value* x) {
  const Sizes s = sizes(x);
  if (s.size() != 4) return;
  switch (c_.below(4)) {
    case 0: return keep(op("pixel_shuffle", {{"x", x}, {"upscale_factor", 2}}));
    case 1: return keep(op("space_to_depth", {{"x", x}, {"block_size", 2}}));
    case 2: return keep(op("depth_to_space", {{"x", x}, {"block_size", 2}}));
    default: {
      if (s[1] % 2 != 0) return;
      Value* v = op("reshape", {{"x", x}, {"shape", ints({s[0], 2, s[1] / 2, s[2], s[3]})}});
      v = op("transpose", {{"x", v}, {"perm", ints({0, 2, 1, 3, 4})}});
      return keep(op("reshape", {{"x", v}, {"shape", ints(s)}}));
    }
  }
}

void NetworkMoves::resize(Value* x) {
  if (sizes(x).size() != 4) return;
  const int height = 1 + static_cast<int>(c_.below(2)), width = 1 + static_cast<int>(c_.below(3));
  if (c_.one_in(2))
    return keep(
        op("upsample_nearest_neighbor", {{"x", x}, {"scale_factor_height", height}, {"scale_factor_width", width}}));
  keep(op("upsample_bilinear",
          {{"x", x}, {"scale_factor_height", height}, {"scale_factor_width", width}, {"align_corners", c_.one_in(2)}}));
}

}  // namespace moka::conformance
