// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "api/build.h"
#include "api/internal.h"

namespace moka {

using api::unwrap;

namespace {

std::string type_name(const format::FieldDef& f) {
  switch (f.kind) {
    case format::FieldKind::integer:
    case format::FieldKind::unsigned_integer: return "integer";
    case format::FieldKind::boolean: return "boolean";
    case format::FieldKind::enumerator: return "enumerator";
    case format::FieldKind::float32:
    case format::FieldKind::float64: return "number";
    case format::FieldKind::text: return "text";
    case format::FieldKind::bytes: return "bytes";
    case format::FieldKind::message: return f.message->name;
  }
  return {};
}

format::Scalar to_format(const Message::Scalar& value) {
  return std::visit(
      []<class T>(const T& v) -> format::Scalar {
        if constexpr (std::is_same_v<T, std::vector<std::byte>>)
          return Bytes::copy_of(v);
        else
          return v;
      },
      value);
}

Message::Scalar to_public(const format::Scalar& value) {
  return std::visit(
      []<class T>(const T& v) -> Message::Scalar {
        if constexpr (std::is_same_v<T, Bytes>)
          return std::vector<std::byte>(v.span.begin(), v.span.end());
        else
          return v;
      },
      value);
}

Message wrap(format::Message message) { return Message(std::make_shared<Message::Impl>(std::move(message))); }

const format::FieldDef& field_of(const format::Message& message, std::string_view name) {
  const format::FieldDef* field = message.def().find(name);
  if (field == nullptr) unwrap(message.count(name));  // throws
  return *field;
}

}  // namespace

namespace api {

Bytes bytes_of(const MultiArray& array) {
  const MultiArray dense = array.is_contiguous() ? array : array.converted(array.type());
  auto owner = std::make_shared<const MultiArray>(dense);
  const auto* data = static_cast<const std::byte*>(owner->data());
  return {{data, static_cast<size_t>(owner->count()) * size_of(owner->type())}, owner};
}

MultiArray array_of(const Bytes& bytes, DataType type) {
  const auto count = static_cast<int64_t>(bytes.size() / size_of(type));
  const bool aligned = reinterpret_cast<uintptr_t>(bytes.data()) % size_of(type) == 0;
  const ir::Tensor tensor =
      unwrap(ir::Tensor::wrap(to_ir(type), {count}, aligned ? bytes : Bytes::copy_of(bytes.span)));
  return unwrap(array_in(tensor.view(), tensor.owner()));
}

}  // namespace api

Message::Message(std::string_view type) : Message(wrap(unwrap(format::Message::make(type)))) {}

Message Message::parse(std::string_view type, std::span<const std::byte> bytes, std::shared_ptr<const void> owner) {
  return wrap(unwrap(format::Message::parse(type, owner == nullptr ? Bytes::copy_of(bytes) : Bytes{bytes, owner})));
}

std::vector<std::string> Message::types() { return format::message_names(); }

const std::string& Message::type() const { return impl_->message.def().name; }

std::vector<Message::Field> Message::fields() const {
  std::vector<Field> out;
  for (const auto& [number, f] : impl_->message.def().fields) {
    const std::string_view zero = f.enumeration != nullptr ? f.enumeration->name_of(0) : std::string_view();
    const bool is_message = f.kind == format::FieldKind::message;
    out.push_back({f.name, type_name(f), f.repeated, is_message, f.is_map(), std::string(zero)});
  }
  return out;
}

std::vector<std::string> Message::names() const { return unwrap(impl_->message.names()); }
size_t Message::size(std::string_view field) const { return unwrap(impl_->message.count(field)); }
std::string Message::which(std::string_view oneof) const { return unwrap(impl_->message.which(oneof)); }

std::vector<Message::Scalar> Message::values(std::string_view field) const {
  std::vector<Scalar> out;
  for (const format::Scalar& v : unwrap(impl_->message.values(field))) out.push_back(to_public(v));
  return out;
}

MultiArray Message::array(std::string_view field) const {
  const auto kind = field_of(impl_->message, field).kind;
  const Bytes bytes = unwrap(impl_->message.packed(field));
  return api::array_of(bytes, kind == format::FieldKind::float32   ? DataType::float32
                              : kind == format::FieldKind::float64 ? DataType::float64
                                                                   : DataType::uint8);
}

Message Message::at(std::string_view field, size_t index) const {
  return wrap(unwrap(impl_->message.child(field, index)));
}

std::vector<Message> Message::all(std::string_view field) const {
  std::vector<Message> out;
  for (format::Message& m : unwrap(impl_->message.children(field))) out.push_back(wrap(std::move(m)));
  return out;
}

Message& Message::set(std::string_view field, const Scalar& value) {
  unwrap(impl_->message.set(field, to_format(value)));
  return *this;
}

Message& Message::set(std::string_view field, const std::vector<Scalar>& values) {
  std::vector<format::Scalar> list;
  for (const Scalar& v : values) list.push_back(to_format(v));
  unwrap(impl_->message.set_all(field, list));
  return *this;
}

Message& Message::set(std::string_view field, const MultiArray& array) {
  const format::FieldDef& f = field_of(impl_->message, field);
  const bool floats = f.kind == format::FieldKind::float32 || f.kind == format::FieldKind::float64;
  if (floats || f.kind == format::FieldKind::bytes) {
    const DataType type = f.kind == format::FieldKind::float32   ? DataType::float32
                          : f.kind == format::FieldKind::float64 ? DataType::float64
                                                                 : array.type();
    const MultiArray numbers = array.type() == type ? array : array.converted(type);
    unwrap(impl_->message.set_packed(field, api::bytes_of(numbers)));
    return *this;
  }
  const MultiArray wide = array.converted(DataType::int64);
  std::vector<format::Scalar> list;
  for (int64_t v : wide.as<int64_t>()) {
    if (f.kind == format::FieldKind::boolean)
      list.emplace_back(v != 0);
    else
      list.emplace_back(v);
  }
  unwrap(impl_->message.set_all(field, list));
  return *this;
}

Message& Message::set(std::string_view field, const Message& value) {
  unwrap(impl_->message.set(field, value.impl_->message));
  return *this;
}

Message Message::add(std::string_view field) { return wrap(unwrap(impl_->message.edit(field))); }
void Message::clear(std::string_view field) { unwrap(impl_->message.clear(field)); }
void Message::remove(std::string_view field, size_t index) { unwrap(impl_->message.remove(field, index)); }

std::vector<std::byte> Message::serialize() const {
  const Bytes all = unwrap(impl_->message.serialize()).joined();
  return {all.span.begin(), all.span.end()};
}

Message Message::copy() const { return wrap(impl_->message.copy()); }

}  // namespace moka
