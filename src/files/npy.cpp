// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <bit>
#include <charconv>
#include <cstring>
#include <optional>

#include "base/utf8.h"
#include "files/error.h"
#include "files/file.h"
#include "moka/files.h"

namespace moka {
namespace files {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";

template <class... Parts>
[[noreturn]] void unsupported(std::string_view name, const Parts&... parts) {
  refuse(ErrorKind::unsupported, name, ": ", parts...);
}

struct Header {
  std::string descr;
  bool fortran_order = false;
  std::vector<int64_t> shape;
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
        if (peek() == '[') unsupported(name_, "structured arrays aren't supported, expected one plain dtype");
        header.descr = string("descr");
      } else if (key == "fortran_order" && !order) {
        order = true;
        header.fortran_order = boolean();
      } else if (key == "shape" && !shape) {
        shape = true;
        header.shape = tuple();
      } else {
        damaged(name_, "npy header: expected descr, fortran_order and shape once each, got '", key, "'");
      }
      if (!accept(',') && peek() != '}') bad("',' or '}'");
    }
    if (!descr || !order || !shape) damaged(name_, "npy header: expected descr, fortran_order and shape, got fewer");
    return header;
  }

 private:
  [[noreturn]] void bad(std::string_view wanted) {
    damaged(name_, "npy header: expected ", wanted, " at character ", at_, ", got ",
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
  std::vector<int64_t> tuple() {
    std::vector<int64_t> result;
    expect('(');
    while (!accept(')')) {
      peek();
      int64_t value = 0;
      auto [end, error] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), value);
      if (error != std::errc() || value < 0) bad("a dimension");
      at_ = static_cast<size_t>(end - text_.data());
      accept('L');
      result.push_back(value);
      if (result.size() > 64) unsupported(name_, "npy header: expected at most 64 dimensions, got more");
      if (!accept(',') && peek() != ')') bad("',' or ')'");
    }
    return result;
  }

  std::string_view text_;
  std::string_view name_;
  size_t at_ = 0;
};

struct Dtype {
  std::optional<DataType> type;  ///< nullopt: text
  size_t size = 0;               ///< bytes in the file
  bool swapped = false;
  bool wide_text = false;  ///< '<U', four bytes per character
};

std::optional<DataType> plain_type(char kind, size_t size) {
  for (int i = 0; i <= static_cast<int>(DataType::boolean); ++i) {
    const auto type = static_cast<DataType>(i);
    if (kind == to_string(type)[0] && size == size_of(type)) return type;
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
  if (!sized) unsupported(name, "dtype '", descr, "' isn't supported; expected a number, bool or string type");
  Dtype result;
  const bool file_is_big = order == '>' || (order == '=' && std::endian::native == std::endian::big);
  result.swapped = order != '|' && file_is_big != (std::endian::native == std::endian::big);
  if (rest[0] == 'U' || rest[0] == 'S') {
    result.wide_text = rest[0] == 'U';
    if (size == 0 || size > (1u << 28))
      unsupported(name, "dtype '", descr, "': expected strings of 1 to 2^28 characters");
    result.size = result.wide_text ? size * 4 : size;
    return result;
  }
  result.type = plain_type(rest[0], size);
  if (!result.type)
    unsupported(name, "dtype '", descr, "' isn't supported; expected bool, (u)int8-64, float16-64, U or S");
  result.size = size;
  return result;
}

/// Calls visit(element index in a file in Fortran order) in C order.
template <typename Visit>
void in_c_order(const std::vector<int64_t>& shape, size_t count, Visit visit) {
  std::vector<size_t> stride(shape.size(), 1), index(shape.size(), 0), size(shape.begin(), shape.end());
  for (size_t d = 1; d < size.size(); ++d) stride[d] = stride[d - 1] * size[d - 1];
  size_t from = 0;
  for (size_t i = 0; i < count; ++i) {
    visit(from);
    for (size_t d = size.size(); d-- > 0;) {
      from += stride[d];
      if (++index[d] < size[d]) break;
      from -= stride[d] * size[d];
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
    if (c > 0x10FFFF || (c >= 0xD800 && c < 0xE000))
      damaged(name, "a string holds ", static_cast<uint32_t>(c), ", which is not a Unicode character");
    append_utf8(text, c);
  }
  return text;
}

/// The texts of an array, which lie along one dimension at most.
StringSequence decode_texts(const Header& header, const Dtype& dtype, size_t count, std::span<const std::byte> data,
                            std::string_view name) {
  const auto is_long = [](int64_t dimension) { return dimension != 1; };
  if (std::count_if(header.shape.begin(), header.shape.end(), is_long) > 1)
    unsupported(name, "expected strings along one dimension, got ", header.shape.size(), " dimensions");
  StringSequence texts;
  texts.reserve(count);
  for (size_t i = 0; i < count; ++i)
    texts.push_back(decode_text(data.subspan(i * dtype.size, dtype.size), dtype, name));
  return texts;
}

FeatureValue decode(const Header& header, std::span<const std::byte> data, std::string_view name) {
  const Dtype dtype = parse_dtype(header.descr, name);
  size_t count = 1, size = 0;
  bool overflow = false, empty = false;
  for (const int64_t dimension : header.shape) {
    empty |= dimension == 0;
    overflow |= __builtin_mul_overflow(count, static_cast<size_t>(dimension), &count);
  }
  if (empty) count = 0;
  overflow |= __builtin_mul_overflow(count, dtype.size, &size);
  if ((overflow && !empty) || size > data.size())
    damaged(name, "the shape asks for ", overflow ? std::string("more than 2^64") : std::to_string(size),
            " bytes of data, got ", data.size());
  if (!dtype.type) return decode_texts(header, dtype, count, data, name);
  MultiArray array;
  try {
    array = MultiArray(*dtype.type, header.shape);
  } catch (const Exception& e) {
    unsupported(name, e.what());
  }
  auto* const begin = static_cast<std::byte*>(array.data());
  std::byte* to = begin;
  if (!header.fortran_order || header.shape.size() < 2) {
    if (size) std::memcpy(to, data.data(), size);
  } else {
    in_c_order(header.shape, count, [&](size_t from) {
      std::memcpy(to, data.data() + from * dtype.size, dtype.size);
      to += dtype.size;
    });
  }
  if (dtype.swapped)
    for (size_t i = 0; i < size; i += dtype.size) std::reverse(begin + i, begin + i + dtype.size);
  if (*dtype.type == DataType::boolean)
    for (size_t i = 0; i < size; ++i) begin[i] = static_cast<std::byte>(begin[i] != std::byte{0});
  return array;
}

std::string descr_of(DataType type) {
  const char kind = to_string(type)[0];
  return cat(size_of(type) == 1 ? "|" : "<", kind, size_of(type));
}

}  // namespace
}  // namespace files

FeatureValue decode_npy(std::span<const std::byte> bytes, std::string_view name) {
  files::ByteReader in(bytes, name);
  if (!files::text_of(bytes).starts_with(files::kMagic))
    files::damaged(name, "expected a .npy file, got other bytes at its start");
  in.seek(files::kMagic.size(), "npy version");
  const int major = in.number<uint8_t>("npy version");
  const int minor = in.number<uint8_t>("npy version");
  if (major < 1 || major > 3 || minor != 0)
    files::unsupported(name, "expected npy format 1.0, 2.0 or 3.0, got ", major, ".", minor);
  const size_t length =
      major == 1 ? in.number<uint16_t>("npy header length") : in.number<uint32_t>("npy header length");
  const std::string text = in.take_text(length, "npy header");
  const files::Header header = files::HeaderParser(text, name).parse();
  return files::decode(header, in.take(in.remaining(), "data"), name);
}

FeatureValue read_npy(const std::filesystem::path& path) { return decode_npy(files::read_file(path), path.string()); }

std::vector<std::byte> encode_npy(const MultiArray& given) {
  if (given.data() == nullptr && given.count() > 0)
    files::refuse(ErrorKind::invalid_argument, "npy: expected an array with data, got none");
  const MultiArray array = given.is_contiguous() ? given : given.converted(given.type());
  std::string text = "{'descr': '" + files::descr_of(array.type()) + "', 'fortran_order': False, 'shape': (";
  for (const int64_t dimension : array.shape()) text += std::to_string(dimension) + ", ";
  if (array.shape().size() > 1) text.resize(text.size() - 2);
  if (array.shape().size() == 1) text.pop_back();
  text += "), }";
  const int major = text.size() + 1 + 64 > 0xffff ? 2 : 1;
  const size_t prefix = major == 1 ? 10 : 12;
  text.append(63 - (prefix + text.size()) % 64, ' ');
  text += '\n';

  files::Buffer out;
  const size_t size = size_of(array.type()), count = static_cast<size_t>(array.count());
  out.reserve(prefix + text.size() + count * size);
  files::put_text(out, files::kMagic);
  files::put_number<uint8_t>(out, static_cast<uint8_t>(major));
  files::put_number<uint8_t>(out, 0);
  if (major == 1)
    files::put_number(out, static_cast<uint16_t>(text.size()));
  else
    files::put_number(out, static_cast<uint32_t>(text.size()));
  files::put_text(out, text);
  const auto* from = static_cast<const std::byte*>(array.data());
  const size_t start = out.size();
  if (count > 0) out.insert(out.end(), from, from + count * size);
  if constexpr (std::endian::native == std::endian::big)
    for (size_t i = start; size > 1 && i < out.size(); i += size) std::reverse(&out[i], &out[i] + size);
  return out;
}

}  // namespace moka
