// SPDX-License-Identifier: Apache-2.0
#include "io/npy.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <optional>

#include "io/io_error.h"
#include "io/utf8.h"

namespace moka::io {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";

struct Header {
  std::string descr;
  bool fortran_order = false;
  std::vector<size_t> shape;
};

/// The header is a Python dictionary literal with exactly three keys.
class HeaderParser {
 public:
  HeaderParser(std::string_view text, std::string_view name) : text_(text), name_(name) {}

  Header parse() {
    Header header;
    bool descr = false, order = false, shape = false;
    expect('{');
    while (!accept('}')) {
      const std::string key = string("a key");
      expect(':');
      if (key == "descr" && !descr) {
        descr = true;
        if (peek() == '[') fail(name_, "structured arrays aren't supported, expected one plain dtype");
        header.descr = string("descr");
      } else if (key == "fortran_order" && !order) {
        order = true;
        header.fortran_order = boolean();
      } else if (key == "shape" && !shape) {
        shape = true;
        header.shape = tuple();
      } else {
        fail(name_, "npy header: expected descr, fortran_order and shape once each, got '", key, "'");
      }
      if (!accept(',') && peek() != '}') bad("',' or '}'");
    }
    if (!descr || !order || !shape) fail(name_, "npy header: expected descr, fortran_order and shape, got fewer");
    return header;
  }

 private:
  [[noreturn]] void bad(std::string_view wanted) {
    fail(name_, "npy header: expected ", wanted, " at character ", at_, ", got ",
         at_ < text_.size() ? std::string("'") + text_[at_] + "'" : std::string("its end"));
  }
  char peek() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t')) ++at_;
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  bool accept(char c) {
    if (peek() != c || at_ >= text_.size()) return false;
    ++at_;
    return true;
  }
  void expect(char c) {
    if (!accept(c)) bad(std::string("'") + c + "'");
  }
  std::string string(std::string_view what) {
    const char quote = peek();
    if (quote != '\'' && quote != '"') bad(std::string("a quoted string for ") + std::string(what));
    const size_t end = text_.find(quote, at_ + 1);
    if (end == std::string_view::npos) bad("a closing quote");
    std::string result(text_.substr(at_ + 1, end - at_ - 1));
    at_ = end + 1;
    return result;
  }
  bool boolean() {
    peek();
    for (auto [word, value] : {std::pair{std::string_view("True"), true}, {"False", false}}) {
      if (text_.substr(at_).starts_with(word)) {
        at_ += word.size();
        return value;
      }
    }
    bad("True or False");
  }
  std::vector<size_t> tuple() {
    std::vector<size_t> result;
    expect('(');
    while (!accept(')')) {
      peek();
      size_t value = 0;
      auto [end, error] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), value);
      if (error != std::errc()) bad("a dimension");
      at_ = static_cast<size_t>(end - text_.data());
      accept('L');
      result.push_back(value);
      if (result.size() > 64) fail(name_, "npy header: expected at most 64 dimensions, got more");
      if (!accept(',') && peek() != ')') bad("',' or ')'");
    }
    return result;
  }

  std::string_view text_;
  std::string_view name_;
  size_t at_ = 0;
};

struct Dtype {
  ElementType type = ElementType::float32;
  size_t size = 0;  // bytes in the file
  bool swapped = false;
  bool wide_text = false;  // '<U', four bytes per character
};

std::optional<ElementType> plain_type(char kind, size_t size) {
  switch (kind) {
    case 'b':
      if (size == 1) return ElementType::boolean;
      break;
    case 'i':
      if (size == 1) return ElementType::int8;
      if (size == 2) return ElementType::int16;
      if (size == 4) return ElementType::int32;
      if (size == 8) return ElementType::int64;
      break;
    case 'u':
      if (size == 1) return ElementType::uint8;
      if (size == 2) return ElementType::uint16;
      if (size == 4) return ElementType::uint32;
      if (size == 8) return ElementType::uint64;
      break;
    case 'f':
      if (size == 2) return ElementType::float16;
      if (size == 4) return ElementType::float32;
      if (size == 8) return ElementType::float64;
      break;
    default: break;
  }
  return std::nullopt;
}

Dtype parse_dtype(const std::string& descr, std::string_view name) {
  std::string_view rest = descr;
  char order = '=';
  if (!rest.empty() && std::string_view("<>=|").find(rest[0]) != std::string_view::npos) {
    order = rest[0];
    rest.remove_prefix(1);
  }
  if (rest == "?") rest = "b1";
  size_t size = 0;
  const bool sized = rest.size() >= 2 && [&] {
    auto [end, error] = std::from_chars(rest.data() + 1, rest.data() + rest.size(), size);
    return error == std::errc() && end == rest.data() + rest.size();
  }();
  if (!sized) fail(name, "dtype '", descr, "' isn't supported; expected a number, bool or string type");
  Dtype result;
  const bool file_is_big = order == '>' || (order == '=' && std::endian::native == std::endian::big);
  result.swapped = order != '|' && file_is_big != (std::endian::native == std::endian::big);
  if (rest[0] == 'U' || rest[0] == 'S') {
    result.type = ElementType::text;
    result.wide_text = rest[0] == 'U';
    if (size == 0 || size > (1u << 28)) fail(name, "dtype '", descr, "': expected strings of 1 to 2^28 characters");
    result.size = result.wide_text ? size * 4 : size;
    return result;
  }
  auto type = plain_type(rest[0], size);
  if (!type) fail(name, "dtype '", descr, "' isn't supported; expected bool, (u)int8-64, float16-64, U or S");
  result.type = *type;
  result.size = size;
  return result;
}

/// Calls visit(element index in the file) in C order.
template <typename Visit>
void in_c_order(const std::vector<size_t>& shape, size_t count, bool fortran, Visit visit) {
  if (!fortran || shape.size() < 2) {
    for (size_t i = 0; i < count; ++i) visit(i);
    return;
  }
  std::vector<size_t> stride(shape.size(), 1), index(shape.size(), 0);
  for (size_t d = 1; d < shape.size(); ++d) stride[d] = stride[d - 1] * shape[d - 1];
  size_t from = 0;
  for (size_t i = 0; i < count; ++i) {
    visit(from);
    for (size_t d = shape.size(); d-- > 0;) {
      from += stride[d];
      if (++index[d] < shape[d]) break;
      from -= stride[d] * shape[d];
      index[d] = 0;
    }
  }
}

std::string decode_text(std::span<const std::byte> cell, const Dtype& dtype, std::string_view name) {
  std::string text;
  if (!dtype.wide_text) {
    text.assign(reinterpret_cast<const char*>(cell.data()), cell.size());
    text.resize(text.find_last_not_of('\0') + 1);
    return text;
  }
  std::vector<char32_t> characters(cell.size() / 4);
  for (size_t i = 0; i < characters.size(); ++i) {
    uint32_t c;
    std::memcpy(&c, cell.data() + i * 4, 4);
    characters[i] = dtype.swapped ? __builtin_bswap32(c) : c;
  }
  while (!characters.empty() && characters.back() == 0) characters.pop_back();
  for (char32_t c : characters) {
    if (!append_utf8(text, c))
      fail(name, "a string holds ", static_cast<uint32_t>(c), ", which is not a Unicode character");
  }
  return text;
}

Array decode(const Header& header, std::span<const std::byte> data, std::string_view name) {
  const Dtype dtype = parse_dtype(header.descr, name);
  size_t count = 1, size = 0;
  bool overflow = false, empty = false;
  for (size_t dimension : header.shape) {
    empty |= dimension == 0;
    overflow |= __builtin_mul_overflow(count, dimension, &count);
  }
  if (empty) count = 0;
  overflow |= __builtin_mul_overflow(count, dtype.size, &size);
  if ((overflow && !empty) || size > data.size()) {
    fail(name, "the shape asks for ", overflow ? std::string("more than 2^64") : std::to_string(size),
         " bytes of data, got ", data.size());
  }
  Array array{dtype.type, header.shape, {}, {}};
  if (dtype.type == ElementType::text) {
    array.texts.reserve(count);
    in_c_order(header.shape, count, header.fortran_order, [&](size_t from) {
      array.texts.push_back(decode_text(data.subspan(from * dtype.size, dtype.size), dtype, name));
    });
    return array;
  }
  array.bytes.resize(size);
  std::byte* to = array.bytes.data();
  if (!header.fortran_order || header.shape.size() < 2) {
    if (size) std::memcpy(to, data.data(), size);
  } else {
    in_c_order(header.shape, count, true, [&](size_t from) {
      std::memcpy(to, data.data() + from * dtype.size, dtype.size);
      to += dtype.size;
    });
  }
  if (dtype.swapped) {
    for (size_t i = 0; i < size; i += dtype.size) std::reverse(&array.bytes[i], &array.bytes[i] + dtype.size);
  }
  if (dtype.type == ElementType::boolean) {
    for (std::byte& b : array.bytes) b = static_cast<std::byte>(b != std::byte{0});
  }
  return array;
}

std::string descr_of(const Array& array, size_t text_width) {
  switch (array.type) {
    case ElementType::boolean: return "|b1";
    case ElementType::int8: return "|i1";
    case ElementType::uint8: return "|u1";
    case ElementType::text: return "<U" + std::to_string(text_width);
    default: break;
  }
  const auto name = element_name(array.type);
  return std::string("<") + name[0] + std::to_string(element_size(array.type));
}

}  // namespace

Array parse_npy(std::span<const std::byte> bytes, std::string_view name) {
  ByteReader in(bytes, name);
  if (in.take_text(6, "npy magic") != kMagic) fail(name, "expected a .npy file, got other bytes at its start");
  const int major = in.number<uint8_t>("npy version");
  const int minor = in.number<uint8_t>("npy version");
  if (major < 1 || major > 3 || minor != 0) {
    fail(name, "expected npy format 1.0, 2.0 or 3.0, got ", major, ".", minor);
  }
  const size_t length =
      major == 1 ? in.number<uint16_t>("npy header length") : in.number<uint32_t>("npy header length");
  const std::string text = in.take_text(length, "npy header");
  const Header header = HeaderParser(text, name).parse();
  return decode(header, in.take(in.remaining(), "data"), name);
}

Array read_npy(const std::filesystem::path& path) { return parse_npy(read_file(path), path.string()); }

Bytes encode_npy(const Array& array) {
  array.require_consistent();
  std::vector<std::vector<char32_t>> characters;
  size_t width = 1;
  for (const std::string& text : array.texts) {
    characters.push_back(decode_utf8(text));
    width = std::max(width, characters.back().size());
  }
  std::string text = "{'descr': '" + descr_of(array, width) + "', 'fortran_order': False, 'shape': (";
  for (size_t dimension : array.shape) text += std::to_string(dimension) + ", ";
  if (array.shape.size() > 1) text.resize(text.size() - 2);
  if (array.shape.size() == 1) text.pop_back();
  text += "), }";
  const int major = text.size() + 1 + 64 > 0xffff ? 2 : 1;
  const size_t prefix = major == 1 ? 10 : 12;
  text.append(63 - (prefix + text.size()) % 64, ' ');
  text += '\n';

  Bytes out;
  out.reserve(prefix + text.size() + array.bytes.size());
  put_text(out, kMagic);
  put_number<uint8_t>(out, static_cast<uint8_t>(major));
  put_number<uint8_t>(out, 0);
  if (major == 1)
    put_number(out, static_cast<uint16_t>(text.size()));
  else
    put_number(out, static_cast<uint32_t>(text.size()));
  put_text(out, text);
  for (const auto& cell : characters) {
    for (size_t i = 0; i < width; ++i) put_number<uint32_t>(out, i < cell.size() ? cell[i] : 0);
  }
  const size_t start = out.size();
  out.insert(out.end(), array.bytes.begin(), array.bytes.end());
  if constexpr (std::endian::native == std::endian::big) {
    const size_t size = element_size(array.type);
    for (size_t i = start; size > 1 && i < out.size(); i += size) std::reverse(&out[i], &out[i] + size);
  }
  return out;
}

void write_npy(const std::filesystem::path& path, const Array& array) { write_file(path, encode_npy(array)); }

}  // namespace moka::io
