// SPDX-License-Identifier: Apache-2.0
#include "format/message/scalar.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <iterator>
#include <limits>
#include <protozero/exception.hpp>
#include <protozero/varint.hpp>

#include "base/utf8.h"

namespace moka::format {
namespace {

std::string enumerators(const EnumDef& def) {
  std::vector<std::pair<int32_t, std::string>> sorted;
  for (const auto& [name, number] : def.numbers) sorted.emplace_back(number, name);
  std::sort(sorted.begin(), sorted.end());
  std::string out;
  for (const auto& [number, name] : sorted) out += (out.empty() ? "one of " : ", ") + name;
  return out;
}

std::string described(const Scalar& value) {
  struct Visitor {
    std::string operator()(bool v) const { return v ? "true" : "false"; }
    std::string operator()(int64_t v) const { return cat(v); }
    std::string operator()(uint64_t v) const { return cat(v); }
    std::string operator()(double v) const { return cat(v); }
    std::string operator()(const std::string& v) const { return cat("'", v.substr(0, 64), "'"); }
    std::string operator()(const Bytes& v) const { return cat(v.size(), " bytes"); }
  };
  return std::visit(Visitor{}, value);
}

Error misfit(const FieldDef& def, const Scalar& value) {
  return fail(ErrorCode::invalid_argument, "field '", def.name, "': expected ", description_of(def), ", got ",
              described(value));
}

/// The bits of a varint.
Result<uint64_t> integer_bits(const FieldDef& def, const Scalar& value) {
  const bool is_signed = def.kind != FieldKind::unsigned_integer;
  if (const auto* v = std::get_if<int64_t>(&value)) {
    const bool fits = is_signed ? !def.is_narrow || *v == static_cast<int32_t>(*v)
                                : *v >= 0 && (!def.is_narrow || *v <= std::numeric_limits<uint32_t>::max());
    if (fits) return static_cast<uint64_t>(*v);
  }
  if (const auto* v = std::get_if<uint64_t>(&value)) {
    const uint64_t most = is_signed       ? static_cast<uint64_t>(def.is_narrow ? std::numeric_limits<int32_t>::max()
                                                                                : std::numeric_limits<int64_t>::max())
                          : def.is_narrow ? std::numeric_limits<uint32_t>::max()
                                          : std::numeric_limits<uint64_t>::max();
    if (*v <= most) return *v;
  }
  return misfit(def, value);
}

Result<uint64_t> enumerator_bits(const FieldDef& def, const Scalar& value) {
  if (const auto* name = std::get_if<std::string>(&value)) {
    const auto it = def.enumeration->numbers.find(*name);
    if (it != def.enumeration->numbers.end()) return static_cast<uint64_t>(int64_t{it->second});
  }
  if (const auto* number = std::get_if<int64_t>(&value))
    if (*number == static_cast<int32_t>(*number) && !def.enumeration->name_of(static_cast<int32_t>(*number)).empty())
      return static_cast<uint64_t>(*number);
  return misfit(def, value);
}

Result<uint64_t> float_bits(const FieldDef& def, const Scalar& value) {
  double number = 0;
  if (const auto* v = std::get_if<double>(&value))
    number = *v;
  else if (const auto* i = std::get_if<int64_t>(&value))
    number = static_cast<double>(*i);
  else if (const auto* u = std::get_if<uint64_t>(&value))
    number = static_cast<double>(*u);
  else
    return misfit(def, value);
  if (def.kind == FieldKind::float64) return std::bit_cast<uint64_t>(number);
  const auto narrow = static_cast<float>(number);
  if (std::isinf(narrow) && !std::isinf(number)) return misfit(def, value);
  return uint64_t{std::bit_cast<uint32_t>(narrow)};
}

Result<uint64_t> number_bits(const FieldDef& def, const Scalar& value) {
  switch (def.kind) {
    case FieldKind::boolean:
      if (const auto* v = std::get_if<bool>(&value)) return uint64_t{*v};
      return misfit(def, value);
    case FieldKind::enumerator: return enumerator_bits(def, value);
    case FieldKind::float32:
    case FieldKind::float64: return float_bits(def, value);
    default: return integer_bits(def, value);
  }
}

Result<Bytes> content_of(const FieldDef& def, const Scalar& value) {
  if (const auto* text = std::get_if<std::string>(&value)) {
    if (def.kind == FieldKind::text && !is_utf8(*text))
      return fail(ErrorCode::invalid_argument, "field '", def.name, "': expected text in UTF-8, got other bytes");
    return Bytes::from(*text);
  }
  if (const auto* bytes = std::get_if<Bytes>(&value); bytes != nullptr && def.kind == FieldKind::bytes) return *bytes;
  return misfit(def, value);
}

Scalar scalar_of(const FieldDef& def, uint64_t bits) {
  switch (def.kind) {
    case FieldKind::boolean: return bits != 0;
    case FieldKind::enumerator: {
      const auto number = static_cast<int32_t>(bits);
      const std::string_view name = def.enumeration->name_of(number);
      return name.empty() ? Scalar(int64_t{number}) : Scalar(std::string(name));
    }
    case FieldKind::float32: return double{std::bit_cast<float>(static_cast<uint32_t>(bits))};
    case FieldKind::float64: return std::bit_cast<double>(bits);
    case FieldKind::unsigned_integer: return def.is_narrow ? uint64_t{static_cast<uint32_t>(bits)} : bits;
    default: return def.is_narrow ? int64_t{static_cast<int32_t>(bits)} : static_cast<int64_t>(bits);
  }
}

size_t width(Wire wire) { return wire == Wire::fixed64 ? sizeof(uint64_t) : sizeof(uint32_t); }

}  // namespace

std::string description_of(const FieldDef& def) {
  std::string one;
  switch (def.kind) {
    case FieldKind::integer: one = def.is_narrow ? "a 32-bit integer" : "an integer"; break;
    case FieldKind::unsigned_integer:
      one = def.is_narrow ? "an unsigned 32-bit integer" : "an integer of 0 or more";
      break;
    case FieldKind::boolean: one = "true or false"; break;
    case FieldKind::enumerator: one = enumerators(*def.enumeration); break;
    case FieldKind::float32:
    case FieldKind::float64: one = "a number"; break;
    case FieldKind::text: one = "text"; break;
    case FieldKind::bytes: one = "bytes"; break;
    case FieldKind::message: one = cat("a ", def.message->name); break;
  }
  return def.repeated ? "a list, each " + one : one;
}

size_t packed_count(const WireField& f) {
  if (f.wire != Wire::delimited || !is_packable(f.def->kind)) return 1;
  const Wire element = wire_of(f.def->kind);
  if (element != Wire::varint) return f.content.size() / width(element);
  // The last byte of each varint has no continuation bit.
  constexpr auto more = std::byte{0x80};
  return static_cast<size_t>(std::count_if(f.content.span.begin(), f.content.span.end(),
                                           [&](std::byte b) { return (b & more) == std::byte{0}; }));
}

Status read_scalars(const WireField& f, std::vector<Scalar>& out) {
  const FieldDef& def = *f.def;
  if (def.kind == FieldKind::text) return out.emplace_back(std::string(f.content.text())), Status();
  if (def.kind == FieldKind::bytes) return out.emplace_back(f.content), Status();
  if (f.wire != Wire::delimited) return out.push_back(scalar_of(def, f.bits)), Status();
  const Wire element = wire_of(def.kind);
  const char* at = f.content.text().data();
  const char* end = at + f.content.size();
  if (element != Wire::varint) {
    const size_t size = width(element);
    if (f.content.size() % size != 0)
      return fail(ErrorCode::malformed, f.content.size(), " bytes are not a multiple of ", size);
    for (; at != end; at += size) {
      uint64_t bits = 0;
      std::memcpy(&bits, at, size);
      out.push_back(scalar_of(def, bits));
    }
    return {};
  }
  try {
    while (at != end) out.push_back(scalar_of(def, protozero::decode_varint(&at, end)));
  } catch (const protozero::exception& e) {
    return fail(ErrorCode::malformed, "packed integers do not decode: ", e.what());
  }
  return {};
}

Result<WireField> write_scalar(const FieldDef& def, const Scalar& value) {
  WireField out{def.number, wire_of(def.kind), &def};
  if (def.kind == FieldKind::message) return misfit(def, value);
  if (is_packable(def.kind))
    out.bits = MOKA_TRY(number_bits(def, value));
  else
    out.content = MOKA_TRY(content_of(def, value));
  return out;
}

Result<std::vector<WireField>> write_scalars(const FieldDef& def, std::span<const Scalar> values) {
  std::vector<WireField> out;
  if (!is_packable(def.kind)) {
    for (const Scalar& v : values) out.push_back(MOKA_TRY(write_scalar(def, v)));
    return out;
  }
  if (values.empty()) return out;
  const Wire element = wire_of(def.kind);
  std::string packed;
  for (const Scalar& v : values) {
    const uint64_t bits = MOKA_TRY(number_bits(def, v));
    if (element == Wire::varint)
      protozero::write_varint(std::back_inserter(packed), bits);
    else
      packed.append(reinterpret_cast<const char*>(&bits), width(element));
  }
  out.push_back({def.number, Wire::delimited, &def, 0, Bytes::from(std::move(packed)), nullptr});
  return out;
}

}  // namespace moka::format
