// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "ir/type.h"

namespace moka::ir {

class List;
struct Dict;

/// A borrowed, dense, row-major tensor; with dtype none, a borrowed List or Dict. For strings `data` points to
/// std::string objects.
struct TensorView {
  DType dtype = DType::none;
  Shape shape;
  void* data = nullptr;

  int64_t count() const { return shape.count(); }
  template <class T>
  T* as() const {
    return static_cast<T*>(data);
  }
  List& list() const { return *static_cast<List*>(data); }
  Dict& dict() const { return *static_cast<Dict*>(data); }
};

/// Loads an element of any numeric dtype and unpacks sub-byte types. Precondition: i < count, not string.
double load_f64(DType dtype, const void* data, int64_t i);
int64_t load_i64(DType dtype, const void* data, int64_t i);
inline double load_f64(const TensorView& t, int64_t i) { return load_f64(t.dtype, t.data, i); }
inline int64_t load_i64(const TensorView& t, int64_t i) { return load_i64(t.dtype, t.data, i); }
/// Floats round to nearest even; storing to an integer truncates toward zero, saturates, and maps NaN to 0.
void store_f64(const TensorView& t, int64_t i, double v);
/// Integers wrap to the width of the dtype, as NumPy's astype does.
void store_i64(const TensorView& t, int64_t i, int64_t v);

/// A tensor that owns its data or refers to a file. Immutable once it is shared.
class Tensor {
 public:
  Tensor() = default;
  /// Zero-filled (strings: empty). Errors: unsupported (size).
  static Result<Tensor> zeros(DType dtype, const Shape& shape);
  /// As `zeros`, but the content is undefined; strings are empty.
  static Result<Tensor> uninitialized(DType dtype, const Shape& shape);
  /// Shares `data`, which must be at least storage_bytes long. Not for strings. Error: malformed when too short.
  static Result<Tensor> wrap(DType dtype, const Shape& shape, Bytes data);
  /// As `wrap`, for numbers that are only read as bytes: unaligned data is shared too.
  static Result<Tensor> wrap_unaligned(DType dtype, const Shape& shape, Bytes data);
  /// A row-major copy. Not for lists and dictionaries.
  static Result<Tensor> copy_of(const TensorView& view);
  static Tensor strings(const Shape& shape, std::vector<std::string> values);
  static Tensor scalar(DType dtype, double v);
  static Tensor scalar_i64(DType dtype, int64_t v);
  static Tensor text(std::string v);
  static Tensor boolean(bool v);
  static Tensor i32(std::span<const int64_t> values);  ///< rank 1, values must fit
  static Tensor i32(std::initializer_list<int64_t> values);
  static Tensor f32(const Shape& shape, std::span<const float> values);

  bool empty_handle() const { return dtype_ == DType::none; }
  DType dtype() const { return dtype_; }
  const Shape& shape() const { return shape_; }
  int64_t count() const { return shape_.count(); }
  size_t bytes() const { return size_; }
  const void* data() const { return data_; }
  /// For the creator only, before the tensor is shared. File-backed data must not be written.
  void* mutable_data() { return view().data; }
  const std::shared_ptr<const void>& owner() const { return owner_; }
  template <class T>
  std::span<const T> as() const {
    return {static_cast<const T*>(data_), static_cast<size_t>(count())};
  }
  template <class T>
  std::span<T> mut() {
    return {static_cast<T*>(mutable_data()), static_cast<size_t>(count())};
  }
  /// Callers may write through the view only where they may use mutable_data(). Views of what is read and of what is
  /// written have one type.
  TensorView view() const { return {dtype_, shape_, const_cast<void*>(data_)}; }
  const std::string& text() const { return *static_cast<const std::string*>(data_); }
  Tensor reshaped(const Shape& shape) const;  ///< same count, shared storage

  bool operator==(const Tensor& o) const;  ///< same type, same bytes

 private:
  static Result<Tensor> allocate(DType dtype, const Shape& shape, std::shared_ptr<void> (*allocator)(size_t));

  DType dtype_ = DType::none;
  Shape shape_;
  const void* data_ = nullptr;
  size_t size_ = 0;
  std::shared_ptr<const void> owner_;
};

/// A TensorList at run time: elements share storage until written.
class List {
 public:
  const std::vector<Tensor>& items() const { return items_; }
  size_t size() const { return items_.size(); }
  const Tensor& operator[](size_t i) const { return items_[i]; }
  /// New elements are empty handles.
  void resize(size_t n);
  /// n empty handles.
  void reset(size_t n);
  void set(size_t i, Tensor item);
  /// Bytes of the list and of its elements. Elements that share storage count separately.
  size_t bytes() const { return bytes_ + items_.size() * sizeof(Tensor); }

 private:
  std::vector<Tensor> items_;
  size_t bytes_ = 0;
};

/// A dictionary at run time. Keys are int64 or string (one kind), values double, int64 or string tensors of rank 0.
struct Dict {
  bool string_keys = true;
  std::vector<std::string> text_keys;
  std::vector<int64_t> int_keys;
  std::vector<double> values;
  size_t size() const { return values.size(); }
};

/// A constant of any IR type: a tensor, or the parts of a list, tuple or dict (key, value, key, value, ...).
struct Constant {
  Type type;
  Tensor tensor;
  std::vector<Constant> parts;

  Constant();
  Constant(Tensor t);
  Constant(Type t, std::vector<Constant> p);
  Constant(const Constant&);
  Constant(Constant&&) noexcept;
  Constant& operator=(const Constant&);
  Constant& operator=(Constant&&) noexcept;
  ~Constant();
  bool operator==(const Constant& o) const;
  /// Path and offset in a weights file, kept for text output. Empty path: immediate.
  std::string blob_path;
  uint64_t blob_offset = 0;
};

}  // namespace moka::ir

extern template class std::vector<moka::ir::Constant>;
