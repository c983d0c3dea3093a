// SPDX-License-Identifier: Apache-2.0
#include "ir/shape.h"

#include <algorithm>

namespace moka::ir {

Shape::Shape(std::initializer_list<int64_t> dims) : Shape(std::span<const int64_t>(dims.begin(), dims.size())) {}

Shape::Shape(std::span<const int64_t> dims) {
  for (int64_t d : dims)
    if (rank_ < kMaxRank) push_back(d);
}

Result<Shape> Shape::make(std::span<const int64_t> dims) {
  if (dims.size() > kMaxRank)
    return fail(ErrorCode::unsupported, "a tensor of rank ", dims.size(), "; at most rank ", kMaxRank, " is supported");
  return Shape(dims);
}

void Shape::insert(int at, int64_t d) {
  for (int i = rank_; i > at; i--) (*this)[i] = (*this)[i - 1];
  (*this)[at] = d;
  rank_++;
}

void Shape::erase(int at) {
  for (int i = at; i + 1 < rank_; i++) (*this)[i] = (*this)[i + 1];
  rank_--;
  dims_[static_cast<size_t>(rank_)] = 0;
}

bool Shape::is_concrete() const {
  return std::all_of(begin(), end(), [](int64_t d) { return d >= 0; });
}

int64_t Shape::count() const { return count(0, rank_); }

int64_t Shape::count(int from, int to) const {
  uint64_t n = 1;
  for (int i = from; i < to; i++) n *= static_cast<uint64_t>((*this)[i]);
  return static_cast<int64_t>(n);
}

Result<int64_t> Shape::checked_count() const {
  int64_t n = 1;
  bool zero = false;
  for (int64_t d : dims()) {
    if (d < 0) return fail(ErrorCode::unsupported, "the size of shape ", *this, " is not known");
    zero |= d == 0;
    if (d != 0 && (__builtin_mul_overflow(n, d, &n) || n > (int64_t{1} << 62)))
      return fail(ErrorCode::unsupported, "shape ", *this, " has too many elements");
  }
  return zero ? 0 : n;
}

std::array<int64_t, kMaxRank> Shape::strides() const {
  std::array<int64_t, kMaxRank> s{};
  uint64_t n = 1;
  for (int i = rank_ - 1; i >= 0; i--) {
    s[static_cast<size_t>(i)] = static_cast<int64_t>(n);
    n *= static_cast<uint64_t>((*this)[i]);
  }
  return s;
}

bool Shape::operator==(const Shape& o) const { return std::equal(begin(), end(), o.begin(), o.end()); }

void append_to(std::string& out, const Shape& s) {
  out += '[';
  for (int i = 0; i < s.rank(); i++) {
    if (i > 0) out += ", ";
    if (s[i] < 0)
      out += '?';
    else
      moka::append_to(out, s[i]);
  }
  out += ']';
}

Result<Shape> broadcast(const Shape& a, const Shape& b) {
  int rank = std::max(a.rank(), b.rank());
  Shape out;
  for (int i = 0; i < rank; i++) {
    int ia = i - (rank - a.rank()), ib = i - (rank - b.rank());
    int64_t da = ia < 0 ? 1 : a[ia], db = ib < 0 ? 1 : b[ib];
    int64_t d;
    if (da == db)
      d = da;
    else if (da == 1)
      d = db;
    else if (db == 1)
      d = da;
    else if (da < 0 && db < 0)
      d = kAnyDim;
    else if (da < 0)
      d = db;
    else if (db < 0)
      d = da;
    else
      return fail(ErrorCode::invalid_argument, "shapes ", a, " and ", b, " do not broadcast");
    out.push_back(d);
  }
  return out;
}

Result<int> normalize_axis(int64_t axis, int rank, std::string_view what) {
  if (axis < -rank || axis >= rank)
    return fail(ErrorCode::invalid_argument, what, ": expected ", -rank, " to ", rank - 1, " for rank ", rank, ", got ",
                axis);
  return static_cast<int>(axis < 0 ? axis + rank : axis);
}

}  // namespace moka::ir
