// SPDX-License-Identifier: Apache-2.0
#include "ir/text_lexer.h"

#include <algorithm>
#include <utility>

#include "base/utf8.h"

namespace moka::ir {

namespace {

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_space(char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r'; }

int hex_digit(char c) {
  if (is_digit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

/// The value of the four hexadecimal digits at `i`; -1 when there are fewer than four.
int code_unit(std::string_view text, size_t i) {
  if (text.size() < 4 || i > text.size() - 4) return -1;
  int unit = 0;
  for (size_t k = i; k < i + 4; ++k) {
    const int digit = hex_digit(text[k]);
    if (digit < 0) return -1;
    unit = unit * 16 + digit;
  }
  return unit;
}

}  // namespace

std::string describe(const Token& token) {
  constexpr size_t kShown = 40;
  const std::string text = shortened(token.text, kShown, "...");
  switch (token.kind) {
    case Token::Kind::identifier: return "'" + text + "'";
    case Token::Kind::number: return "number " + text;
    case Token::Kind::string: return "string \"" + text + "\"";
    case Token::Kind::punctuation:
    case Token::Kind::arrow: return "'" + text + "'";
    case Token::Kind::end: break;
  }
  return "the end";
}

Result<std::string> unescape(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\') {
      out += text[i];
      continue;
    }
    if (++i == text.size()) return fail(ErrorCode::malformed, "text ends inside an escape");
    switch (text[i]) {
      case '"':
      case '\\':
      case '/': out += text[i]; break;
      case 'n': out += '\n'; break;
      case 'r': out += '\r'; break;
      case 't': out += '\t'; break;
      case '0': out += '\0'; break;
      case 'u': {
        const int unit = code_unit(text, i + 1);
        if (unit < 0) return fail(ErrorCode::malformed, "expected four hexadecimal digits after \\u");
        i += 4;
        auto c = static_cast<uint32_t>(unit);
        if (c >= 0xd800 && c < 0xdc00 && text.substr(i + 1).starts_with("\\u")) {
          const int low = code_unit(text, i + 3);
          if (low >= 0xdc00 && low < 0xe000) {
            c = 0x10000 + ((c - 0xd800) << 10) + (static_cast<uint32_t>(low) - 0xdc00);
            i += 6;
          }
        }
        append_utf8(out, c);
        break;
      }
      case 'x': {
        const int high = i + 1 < text.size() ? hex_digit(text[i + 1]) : -1;
        const int low = i + 2 < text.size() ? hex_digit(text[i + 2]) : -1;
        if (high < 0 || low < 0) return fail(ErrorCode::malformed, "expected two hexadecimal digits after \\x");
        out += static_cast<char>(high * 16 + low);
        i += 2;
        break;
      }
      default: return fail(ErrorCode::malformed, "unknown escape \\", text[i]);
    }
  }
  return out;
}

void append_quoted(std::string& out, std::string_view text) {
  constexpr char kHex[] = "0123456789abcdef";
  out += '"';
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\r') {
      out += "\\r";
    } else if (c == '\t') {
      out += "\\t";
    } else if (byte < 0x20 || byte == 0x7f) {
      out += "\\x";
      out += kHex[byte >> 4];
      out += kHex[byte & 15];
    } else {
      out += c;
    }
  }
  out += '"';
}

bool is_identifier(std::string_view name) {
  if (name.empty() || !is_letter(name[0])) return false;
  return std::all_of(name.begin(), name.end(), [](char c) { return is_letter(c) || is_digit(c); });
}

Lexer::Lexer(std::string_view text) : text_(text) { scan(); }

Token Lexer::next() {
  const Token token = current_;
  scan();
  return token;
}

void Lexer::seek(size_t offset) {
  at_ = std::min(offset, text_.size());
  scan();
}

void Lexer::scan() {
  if (!status_.ok()) return;
  for (;;) {
    while (at_ < text_.size() && is_space(text_[at_])) ++at_;
    if (text_.substr(at_).starts_with("//")) {
      at_ = std::min(text_.find('\n', at_), text_.size());
      continue;
    }
    break;
  }
  current_ = Token{};
  current_.offset = at_;
  if (at_ == text_.size()) return;
  const size_t start = at_;
  const char c = text_[at_];
  const char after = at_ + 1 < text_.size() ? text_[at_ + 1] : '\0';
  if (is_letter(c)) {
    while (at_ < text_.size() && (is_letter(text_[at_]) || is_digit(text_[at_]))) ++at_;
    current_.kind = Token::Kind::identifier;
  } else if (c == '-' && after == '>') {
    at_ += 2;
    current_.kind = Token::Kind::arrow;
  } else if (is_digit(c) || c == '-' || c == '+' || c == '.') {
    // Inside a number, a sign may only follow the exponent's letter: p in hexadecimal floats, e in decimal ones.
    const size_t digits = start + (c == '-' || c == '+' ? 1 : 0);
    const bool hex = text_.substr(digits).starts_with("0x") || text_.substr(digits).starts_with("0X");
    ++at_;
    while (at_ < text_.size()) {
      const char d = text_[at_];
      const char before = static_cast<char>(text_[at_ - 1] | 0x20);
      const bool exponent_sign = (d == '-' || d == '+') && (hex ? before == 'p' : before == 'e');
      if (!is_letter(d) && !is_digit(d) && d != '.' && !exponent_sign) break;
      ++at_;
    }
    current_.kind = Token::Kind::number;
  } else if (c == '"') {
    scan_string();
    return;
  } else if (std::string_view("()[]{}<>,;=?*").find(c) != std::string_view::npos) {
    ++at_;
    current_.kind = Token::Kind::punctuation;
  } else {
    const auto byte = static_cast<unsigned char>(c);
    status_ = error_at(
        at_, ErrorCode::malformed,
        byte >= 0x20 && byte < 0x7f ? cat("unexpected character '", c, "'") : cat("unexpected byte ", int{byte}));
    return;
  }
  current_.text = text_.substr(start, at_ - start);
}

void Lexer::scan_string() {
  const size_t start = ++at_;
  bool escaped = false;
  while (at_ < text_.size() && text_[at_] != '"') {
    if (text_[at_] == '\\') {
      escaped = true;
      ++at_;
    }
    ++at_;
  }
  if (at_ >= text_.size()) {
    at_ = text_.size();
    status_ = error_at(start - 1, ErrorCode::malformed, "string without an end");
    return;
  }
  current_.kind = Token::Kind::string;
  current_.escaped = escaped;
  current_.text = text_.substr(start, at_ - start);
  ++at_;
}

bool Lexer::accept(char c) {
  if (!current_.is(c)) return false;
  scan();
  return true;
}

bool Lexer::accept_word(std::string_view word) {
  if (!current_.is_word(word)) return false;
  scan();
  return true;
}

Status Lexer::expect(char c) {
  if (accept(c)) return {};
  return error(cat("'", c, "'"));
}

Status Lexer::expect_arrow() {
  if (current_.kind != Token::Kind::arrow) return error("'->'");
  scan();
  return {};
}

Result<std::string> Lexer::name(std::string_view what) {
  if (current_.kind == Token::Kind::identifier) return std::string(next().text);
  if (current_.kind != Token::Kind::string) return error(what);
  const Token token = next();
  if (!token.escaped) return std::string(token.text);
  return MOKA_TRY_IN(unescape(token.text), place(token.offset));
}

Error Lexer::error(std::string_view expected) const {
  if (!status_.ok()) return fail(status_.error().code(), status_.error().message());
  return error_at(current_.offset, ErrorCode::malformed, cat("expected ", expected, ", got ", describe(current_)));
}

Error Lexer::error_at(size_t offset, ErrorCode code, std::string_view what) const {
  if (!status_.ok()) return fail(status_.error().code(), status_.error().message());
  return fail(code, place(offset), ": ", what);
}

std::string Lexer::place(size_t offset) const {
  const std::string_view before = text_.substr(0, std::min(offset, text_.size()));
  const auto line = 1 + std::count(before.begin(), before.end(), '\n');
  const size_t start = before.rfind('\n');
  const size_t column = offset - (start == std::string_view::npos ? 0 : start + 1) + 1;
  return cat("MIL text ", static_cast<long>(line), ":", column);
}

}  // namespace moka::ir
