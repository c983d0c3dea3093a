// SPDX-License-Identifier: Apache-2.0
#include "ir/text_value.h"

#include <array>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "base/half.h"

namespace moka::ir {

namespace {

constexpr int kMaxTypeDepth = 16;

Result<int64_t> read_size(Lexer& lexer, std::string_view what) {
  const Token& token = lexer.peek();
  int64_t size = 0;
  const char* end = token.text.data() + token.text.size();
  if (token.kind == Token::Kind::number) {
    const auto [at, error] = std::from_chars(token.text.data(), end, size);
    if (error == std::errc() && at == end && size >= 0) {
      lexer.next();
      return size;
    }
  }
  return lexer.error(what);
}

Result<Type> read_tensor_type(Lexer& lexer) {
  MOKA_TRY(lexer.expect('<'));
  const DType dtype = lexer.peek().kind == Token::Kind::identifier ? dtype_from_string(lexer.peek().text) : DType::none;
  if (dtype == DType::none) return lexer.error("an element type");
  lexer.next();
  MOKA_TRY(lexer.expect(','));
  MOKA_TRY(lexer.expect('['));
  Shape shape;
  bool ranked = true;
  if (!lexer.peek().is(']')) {
    do {
      if (lexer.accept('*')) {
        MOKA_TRY(lexer.expect('?'));
        ranked = false;
        if (!lexer.peek().is(']') || shape.rank() != 0) return lexer.error("'*?' as the only dimension");
        break;
      }
      if (shape.rank() == kMaxRank) return lexer.error(cat("at most ", kMaxRank, " dimensions"));
      if (lexer.accept('?'))
        shape.push_back(kAnyDim);
      else
        shape.push_back(MOKA_TRY(read_size(lexer, "a dimension")));
    } while (lexer.accept(','));
  }
  MOKA_TRY(lexer.expect(']'));
  MOKA_TRY(lexer.expect('>'));
  return ranked ? Type::tensor(dtype, shape) : Type::unranked(dtype);
}

Result<Type> read_type(Lexer& lexer, int depth) {
  if (depth > kMaxTypeDepth) return lexer.error(cat("types nested at most ", kMaxTypeDepth, " deep"));
  if (lexer.accept_word("tensor")) return read_tensor_type(lexer);
  if (lexer.accept_word("list")) {
    MOKA_TRY(lexer.expect('<'));
    Type element = MOKA_TRY(read_type(lexer, depth + 1));
    int64_t length = kAnyDim;
    if (lexer.accept(',') && !lexer.accept('?')) length = MOKA_TRY(read_size(lexer, "a length"));
    MOKA_TRY(lexer.expect('>'));
    return Type::list(std::move(element), length);
  }
  if (lexer.accept_word("tuple")) {
    MOKA_TRY(lexer.expect('<'));
    std::vector<Type> elements;
    if (!lexer.peek().is('>')) {
      do elements.push_back(MOKA_TRY(read_type(lexer, depth + 1)));
      while (lexer.accept(','));
    }
    MOKA_TRY(lexer.expect('>'));
    return Type::tuple(std::move(elements));
  }
  if (lexer.accept_word("dict")) {
    MOKA_TRY(lexer.expect('<'));
    Type key = MOKA_TRY(read_type(lexer, depth + 1));
    MOKA_TRY(lexer.expect(','));
    Type value = MOKA_TRY(read_type(lexer, depth + 1));
    MOKA_TRY(lexer.expect('>'));
    return Type::dict(std::move(key), std::move(value));
  }
  if (lexer.accept_word("state")) {
    MOKA_TRY(lexer.expect('<'));
    Type wrapped = MOKA_TRY(read_type(lexer, depth + 1));
    MOKA_TRY(lexer.expect('>'));
    return Type::state(std::move(wrapped));
  }
  const DType dtype = lexer.peek().kind == Token::Kind::identifier ? dtype_from_string(lexer.peek().text) : DType::none;
  if (dtype == DType::none) return lexer.error("a type");
  lexer.next();
  return Type::scalar(dtype);
}

/// Collects the elements of a tensor literal.
class Elements {
 public:
  Elements(Lexer& lexer, DType dtype) : lexer_(lexer), dtype_(dtype) {}

  int64_t count() const { return count_; }

  Status read() {
    const Token token = lexer_.peek();
    if (dtype_ == DType::string) {
      if (token.kind != Token::Kind::string) return lexer_.error("a string");
      strings_.push_back(MOKA_TRY(lexer_.name("a string")));
    } else if (dtype_ == DType::boolean) {
      if (!token.is_word("true") && !token.is_word("false")) return lexer_.error("true or false");
      push(static_cast<uint8_t>(token.is_word("true")));
      lexer_.next();
    } else if (is_float(dtype_)) {
      MOKA_TRY(read_float(token));
    } else {
      MOKA_TRY(read_integer(token));
    }
    ++count_;
    return {};
  }

  Result<Tensor> finish(const Shape& shape) {
    if (dtype_ == DType::string) return Tensor::strings(shape, std::move(strings_));
    if (is_sub_byte(dtype_) || dtype_ == DType::fp8e4m3fn || dtype_ == DType::fp8e5m2) {
      Tensor t = MOKA_TRY(Tensor::zeros(dtype_, shape));
      for (int64_t i = 0; i < count_; ++i) {
        double v = 0;
        std::memcpy(&v, bytes_.data() + static_cast<size_t>(i) * sizeof v, sizeof v);
        store_f64(t.view(), i, v);
      }
      return t;
    }
    auto owner = std::make_shared<std::vector<std::byte>>(std::move(bytes_));
    return Tensor::wrap(dtype_, shape, Bytes{*owner, owner});
  }

  size_t bytes() const { return bytes_.size() + strings_.size() * sizeof(std::string); }

 private:
  template <class T>
  void push(T v) {
    const auto* p = reinterpret_cast<const std::byte*>(&v);
    bytes_.insert(bytes_.end(), p, p + sizeof v);
  }

  /// Parses digits without sign and prefix; `hex` selects the base.
  template <class T>
  static std::optional<T> parse(std::string_view text) {
    bool negative = false;
    if (!text.empty() && (text[0] == '-' || text[0] == '+')) {
      negative = text[0] == '-';
      text.remove_prefix(1);
    }
    if (text.empty() || text[0] == '-') return std::nullopt;
    T v = 0;
    auto format = std::chars_format::general;
    if (text.starts_with("0x") || text.starts_with("0X")) {
      text.remove_prefix(2);
      format = std::chars_format::hex;
    }
    const char* end = text.data() + text.size();
    const auto [at, error] = std::from_chars(text.data(), end, v, format);
    if (error != std::errc() || at != end) return std::nullopt;
    return negative ? -v : v;
  }

  Status read_float(const Token& token) {
    if (token.kind != Token::Kind::number && !token.is_word("inf") && !token.is_word("nan") &&
        !token.is_word("infinity"))
      return lexer_.error(cat("a number of type ", dtype_));
    if (dtype_ == DType::fp32) {
      const auto v = parse<float>(token.text);
      if (!v) return lexer_.error(cat("a number of type ", dtype_));
      push(*v);
    } else {
      const auto v = parse<double>(token.text);
      if (!v) return lexer_.error(cat("a number of type ", dtype_));
      if (dtype_ == DType::fp16)
        push(half(*v).bits);
      else if (dtype_ == DType::bf16)
        push(bfloat16(static_cast<float>(*v)).bits);
      else
        push(*v);
    }
    lexer_.next();
    return {};
  }

  Status read_integer(const Token& token) {
    const char* end = token.text.data() + token.text.size();
    const char* begin = token.text.data();
    if (dtype_ == DType::uint64) {
      uint64_t v = 0;
      const auto [at, error] = std::from_chars(begin, end, v);
      if (token.kind != Token::Kind::number || error != std::errc() || at != end)
        return lexer_.error("a number of type uint64");
      push(v);
    } else {
      int64_t v = 0;
      const auto [at, error] = std::from_chars(begin, end, v);
      const bool is_signed = is_signed_integer(dtype_);
      const int width = bits(dtype_) - (is_signed ? 1 : 0);
      const int64_t top = width >= 63 ? std::numeric_limits<int64_t>::max() : (int64_t{1} << width) - 1;
      if (token.kind != Token::Kind::number || error != std::errc() || at != end || v > top ||
          v < (is_signed ? -top - 1 : 0))
        return lexer_.error(cat("a number of type ", dtype_));
      switch (bits(dtype_)) {
        case 8: push(static_cast<uint8_t>(v)); break;
        case 16: push(static_cast<uint16_t>(v)); break;
        case 32: push(static_cast<uint32_t>(v)); break;
        case 64: push(v); break;
        default: push(static_cast<double>(v));
      }
    }
    lexer_.next();
    return {};
  }

  Lexer& lexer_;
  DType dtype_;
  int64_t count_ = 0;
  std::vector<std::byte> bytes_;
  std::vector<std::string> strings_;
};

/// Reads one bracket level of a tensor literal. `sizes` holds the size of each level, -1 before it is known.
Status read_level(Lexer& lexer, Elements& elements, const Type& type, int level, std::array<int64_t, kMaxRank>& sizes) {
  if (level == type.rank()) return elements.read();
  MOKA_TRY(lexer.expect('['));
  const int64_t declared = type.shape()[level];
  int64_t n = 0;
  if (!lexer.peek().is(']')) {
    do {
      if (declared >= 0 && n == declared) return lexer.error(cat("']' after ", n, " entries of ", type));
      MOKA_TRY(read_level(lexer, elements, type, level + 1, sizes));
      ++n;
    } while (lexer.accept(','));
  }
  auto& size = sizes[static_cast<size_t>(level)];
  if (size >= 0 && size != n) return lexer.error(cat(size, " entries as in the rows before of ", type, ", not ", n));
  size = n;
  return lexer.expect(']');
}

Result<Constant> read_tensor_literal(Lexer& lexer, const Type& type, const TextOptions& options) {
  if (!type.is_ranked()) return lexer.error("a value of known rank");
  const size_t start = lexer.position();
  Elements elements(lexer, type.dtype());
  std::array<int64_t, kMaxRank> sizes;
  sizes.fill(-1);
  MOKA_TRY(read_level(lexer, elements, type, 0, sizes));
  Shape shape = type.shape();
  bool fits = true, declared_empty = false;
  for (int i = 0; i < shape.rank(); ++i) {
    const int64_t size = sizes[static_cast<size_t>(i)];
    declared_empty |= shape[i] == 0;
    fits &= shape[i] < 0 || shape[i] == size;
    if (shape[i] < 0) shape[i] = std::max<int64_t>(size, 0);
  }
  // The text omits the levels below an empty one.
  if (!fits && !(elements.count() == 0 && declared_empty))
    return lexer.error_at(start, ErrorCode::malformed,
                          cat("expected entries for ", type, ", got ", elements.count(), " elements"));
  MOKA_TRY_IN(shape.checked_count(), lexer.place(start));
  if (options.budget != nullptr) MOKA_TRY(options.budget->take(elements.bytes(), "literals of MIL text"));
  return Constant(MOKA_TRY_IN(elements.finish(shape), lexer.place(start)));
}

Result<Constant> read_blob(Lexer& lexer, const Type& type, const TextOptions& options) {
  const size_t start = lexer.position();
  lexer.next();
  MOKA_TRY(lexer.expect('('));
  std::optional<Constant> path, offset;
  do {
    const size_t at = lexer.position();
    const std::string key = MOKA_TRY(lexer.name("path or offset"));
    MOKA_TRY(lexer.expect('='));
    Constant value = MOKA_TRY(read_value(lexer, options));
    const bool scalar = value.type.is_tensor() && value.tensor.count() == 1;
    if (key == "path" && !path && scalar && value.tensor.dtype() == DType::string)
      path = std::move(value);
    else if (key == "offset" && !offset && scalar && is_integer(value.tensor.dtype()))
      offset = std::move(value);
    else
      return lexer.error_at(at, ErrorCode::malformed,
                            cat("expected path (a string) and offset (an integer), got '", key, "' of ", value.type));
  } while (lexer.accept(','));
  MOKA_TRY(lexer.expect(')'));
  if (!path || !offset) return lexer.error_at(start, ErrorCode::malformed, "expected path and offset in BLOBFILE");
  const std::string& name = path->tensor.text();
  const auto at = static_cast<uint64_t>(load_i64(offset->tensor.view(), 0));
  if (!type.is_concrete())
    return lexer.error_at(start, ErrorCode::malformed, cat("expected a concrete type for BLOBFILE, got ", type));
  if (!options.blob)
    return lexer.error_at(start, ErrorCode::not_found,
                          cat("the text refers to weights in '", name, "', but no weights came with it"));
  Constant value(MOKA_TRY_IN(options.blob(name, at, type), lexer.place(start)));
  if (value.type != type)
    return lexer.error_at(start, ErrorCode::malformed,
                          cat("weights in '", name, "' at offset ", at, ": expected ", type, ", got ", value.type));
  value.blob_path = name;
  value.blob_offset = at;
  return value;
}

Result<Constant> read_literal(Lexer& lexer, const Type& type, const TextOptions& options) {
  switch (type.kind()) {
    case Type::Kind::tensor:
      if (lexer.peek().is_word("BLOBFILE")) return read_blob(lexer, type, options);
      return read_tensor_literal(lexer, type, options);
    case Type::Kind::list: {
      const size_t start = lexer.position();
      MOKA_TRY(lexer.expect('['));
      std::vector<Constant> parts;
      if (!lexer.peek().is(']')) {
        do parts.push_back(MOKA_TRY(read_literal(lexer, type.element(), options)));
        while (lexer.accept(','));
      }
      MOKA_TRY(lexer.expect(']'));
      if (type.length() >= 0 && type.length() != static_cast<int64_t>(parts.size()))
        return lexer.error_at(start, ErrorCode::malformed,
                              cat("expected ", type.length(), " entries of a list, got ", parts.size()));
      return Constant(type, std::move(parts));
    }
    case Type::Kind::tuple: {
      MOKA_TRY(lexer.expect('('));
      std::vector<Constant> parts;
      for (const Type& element : type.elements()) {
        if (!parts.empty()) MOKA_TRY(lexer.expect(','));
        parts.push_back(MOKA_TRY(read_literal(lexer, element, options)));
      }
      MOKA_TRY(lexer.expect(')'));
      return Constant(type, std::move(parts));
    }
    case Type::Kind::dict: {
      MOKA_TRY(lexer.expect('{'));
      std::vector<Constant> parts;
      if (!lexer.peek().is('}')) {
        do {
          MOKA_TRY(lexer.expect('{'));
          parts.push_back(MOKA_TRY(read_literal(lexer, type.element(0), options)));
          MOKA_TRY(lexer.expect(','));
          parts.push_back(MOKA_TRY(read_literal(lexer, type.element(1), options)));
          MOKA_TRY(lexer.expect('}'));
        } while (lexer.accept(','));
      }
      MOKA_TRY(lexer.expect('}'));
      return Constant(type, std::move(parts));
    }
    default: return lexer.error(cat("a value that has a literal, not a ", type));
  }
}

}  // namespace

Result<Type> read_type(Lexer& lexer) { return read_type(lexer, 0); }

Result<Constant> read_value(Lexer& lexer, const TextOptions& options) {
  const Type type = MOKA_TRY(read_type(lexer));
  MOKA_TRY(lexer.expect('('));
  Constant value = MOKA_TRY(read_literal(lexer, type, options));
  MOKA_TRY(lexer.expect(')'));
  return value;
}

bool at_value(Lexer& lexer) {
  if (lexer.peek().kind != Token::Kind::identifier) return false;
  const size_t start = lexer.position();
  lexer.next();
  const bool value = lexer.peek().is('<') || lexer.peek().is('(');
  lexer.seek(start);
  return value;
}

Dialect dialect_of(std::string_view version) {
  int major = 0, minor = 0;
  const char* end = version.data() + version.size();
  const auto [dot, error] = std::from_chars(version.data(), end, major);
  if (error == std::errc() && dot != end) std::from_chars(dot + 1, end, minor);
  return major > 1 || (major == 1 && minor >= 3) ? Dialect::bare_scalars : Dialect::tensors_only;
}

Type with_sizes(Type type, const std::map<std::string, Shape>& sizes, const std::string& name) {
  const auto it = sizes.find(name);
  if (it == sizes.end() || !type.is_tensor() || !type.is_ranked() || type.rank() != it->second.rank()) return type;
  for (int i = 0; i < type.rank(); ++i)
    if (type.shape()[i] < 0) type.shape()[i] = it->second[i];
  return type;
}

}  // namespace moka::ir
