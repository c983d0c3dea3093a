// SPDX-License-Identifier: Apache-2.0
#include "ir/type.h"

namespace moka::ir {

Type Type::tensor(DType dtype, Shape shape) {
  Type t;
  t.kind_ = Kind::tensor;
  t.dtype_ = dtype;
  t.shape_ = shape;
  return t;
}

Type Type::unranked(DType dtype) {
  Type t = tensor(dtype, {});
  t.ranked_ = false;
  return t;
}

namespace {
std::shared_ptr<const std::vector<Type>> share(std::vector<Type> v) {
  return std::make_shared<const std::vector<Type>>(std::move(v));
}
}  // namespace

Type Type::list(Type element, int64_t length) {
  Type t;
  t.kind_ = Kind::list;
  t.length_ = length;
  t.elements_ = share({std::move(element)});
  return t;
}

Type Type::tuple(std::vector<Type> elements) {
  Type t;
  t.kind_ = Kind::tuple;
  t.elements_ = share(std::move(elements));
  return t;
}

Type Type::dict(Type key, Type value) {
  Type t;
  t.kind_ = Kind::dict;
  t.elements_ = share({std::move(key), std::move(value)});
  return t;
}

Type Type::state(Type wrapped) {
  Type t;
  t.kind_ = Kind::state;
  t.elements_ = share({std::move(wrapped)});
  return t;
}

const std::vector<Type>& Type::elements() const {
  static const std::vector<Type> none;
  return elements_ ? *elements_ : none;
}

bool Type::is_concrete() const {
  if (kind_ == Kind::tensor) return ranked_ && shape_.is_concrete();
  if (kind_ == Kind::dict) return true;
  if (kind_ == Kind::list && length_ < 0) return false;
  for (const Type& e : elements())
    if (!e.is_concrete()) return false;
  return kind_ != Kind::none;
}

bool Type::operator==(const Type& o) const {
  return kind_ == o.kind_ && dtype_ == o.dtype_ && ranked_ == o.ranked_ && length_ == o.length_ && shape_ == o.shape_ &&
         (elements_ == o.elements_ || elements() == o.elements());
}

void append_to(std::string& out, const Type& t) {
  switch (t.kind()) {
    case Type::Kind::none: out += "none"; return;
    case Type::Kind::tensor:
      out += "tensor<";
      append_to(out, t.dtype());
      out += ", ";
      if (t.is_ranked())
        append_to(out, t.shape());
      else
        out += "[*?]";
      out += '>';
      return;
    case Type::Kind::list:
      out += "list<";
      append_to(out, t.element());
      out += ", ";
      if (t.length() < 0)
        out += '?';
      else
        moka::append_to(out, t.length());
      out += '>';
      return;
    case Type::Kind::tuple:
    case Type::Kind::dict:
    case Type::Kind::state: {
      out += t.kind() == Type::Kind::tuple ? "tuple<" : t.kind() == Type::Kind::dict ? "dict<" : "state<";
      bool first = true;
      for (const Type& e : t.elements()) {
        if (!first) out += ", ";
        first = false;
        append_to(out, e);
      }
      out += '>';
      return;
    }
  }
}

bool is_compatible(const Type& from, const Type& to) {
  if (from.kind() != to.kind()) return false;
  if (from.is_tensor()) {
    if (from.dtype() != to.dtype()) return false;
    if (!from.is_ranked() || !to.is_ranked()) return true;
    if (from.rank() != to.rank()) return false;
    for (int i = 0; i < from.rank(); i++)
      if (from.shape()[i] >= 0 && to.shape()[i] >= 0 && from.shape()[i] != to.shape()[i]) return false;
    return true;
  }
  if (from.elements().size() != to.elements().size()) return false;
  if (from.length() >= 0 && to.length() >= 0 && from.length() != to.length()) return false;
  for (size_t i = 0; i < from.elements().size(); i++)
    if (!is_compatible(from.element(i), to.element(i))) return false;
  return true;
}

Result<size_t> storage_bytes(DType dtype, const Shape& shape) {
  auto n = static_cast<uint64_t>(MOKA_TRY(shape.checked_count()));
  uint64_t each = dtype == DType::string ? 8 * sizeof(std::string) : static_cast<uint64_t>(bits(dtype));
  uint64_t total;
  if (__builtin_mul_overflow(n, each, &total) || total > (uint64_t{1} << 62))
    return fail(ErrorCode::unsupported, "a tensor<", dtype, ", ", shape, "> is too large");
  return (total + 7) / 8;
}

}  // namespace moka::ir

template class std::vector<moka::ir::Type>;
