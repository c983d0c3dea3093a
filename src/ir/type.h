// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "ir/dtype.h"
#include "ir/shape.h"

namespace moka::ir {

/// The type of an IR value. Scalars are tensors of rank 0.
class Type {
 public:
  enum class Kind : uint8_t { none, tensor, list, tuple, dict, state };

  Type() = default;
  static Type tensor(DType dtype, Shape shape);
  static Type unranked(DType dtype);
  static Type scalar(DType dtype) { return tensor(dtype, {}); }
  /// `length` is kAnyDim for a list that may grow.
  static Type list(Type element, int64_t length = kAnyDim);
  static Type tuple(std::vector<Type> elements);
  static Type dict(Type key, Type value);
  static Type state(Type wrapped);

  Kind kind() const { return kind_; }
  bool is_tensor() const { return kind_ == Kind::tensor; }
  bool is_list() const { return kind_ == Kind::list; }
  bool is_dict() const { return kind_ == Kind::dict; }
  bool is_state() const { return kind_ == Kind::state; }
  bool is_none() const { return kind_ == Kind::none; }

  /// Tensors only.
  DType dtype() const { return dtype_; }
  const Shape& shape() const { return shape_; }
  Shape& shape() { return shape_; }
  bool is_ranked() const { return ranked_; }
  int rank() const { return shape_.rank(); }

  /// list: [element]; tuple: its elements; dict: [key, value]; state: [wrapped].
  const std::vector<Type>& elements() const;
  const Type& element(size_t i = 0) const { return elements()[i]; }
  int64_t length() const { return length_; }

  /// Whether all dimensions of all parts are known.
  bool is_concrete() const;
  bool operator==(const Type& o) const;

 private:
  Kind kind_ = Kind::none;
  DType dtype_ = DType::none;
  bool ranked_ = true;
  int64_t length_ = kAnyDim;
  Shape shape_;
  std::shared_ptr<const std::vector<Type>> elements_;
};

/// MIL text, e.g. "tensor<fp16, [1, ?]>", "list<tensor<fp32, [1, 8]>, ?>", "dict<tensor<string, []>, ...>".
void append_to(std::string& out, const Type& t);

/// Whether a value of type `from` may be used as `to`: the types are equal up to dimensions that either side leaves
/// unknown.
bool is_compatible(const Type& from, const Type& to);

/// Bytes of a concrete tensor in row-major order (packed for sub-byte types; sizeof(std::string) per string). Errors:
/// unsupported (not concrete, product overflows).
Result<size_t> storage_bytes(DType dtype, const Shape& shape);

}  // namespace moka::ir

extern template class std::vector<moka::ir::Type>;
