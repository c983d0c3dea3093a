// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.h"

namespace moka::ir {

/// A token of MIL text. `text` points into the source. For a string it excludes the quotes and is still escaped.
struct Token {
  enum class Kind : uint8_t {
    identifier,
    number,  ///< integer, decimal or C99 hexadecimal float, with its sign
    string,
    punctuation,  ///< one of ( ) [ ] { } < > , ; = ? *
    arrow,        ///< ->
    end,
  };
  Kind kind = Kind::end;
  bool escaped = false;  ///< a string with at least one escape
  std::string_view text;
  size_t offset = 0;

  bool is(char c) const { return kind == Kind::punctuation && text[0] == c; }
  bool is_word(std::string_view w) const { return kind == Kind::identifier && text == w; }
};

/// "string \"relu\"", "'('", "the end".
std::string describe(const Token& token);
/// Resolves \" \\ \/ \n \r \t \0, \xHH (a byte) and \uHHHH (UTF-16, to UTF-8). Error malformed on any other escape.
Result<std::string> unescape(std::string_view text);
/// The inverse of unescape, with quotes. Bytes from 0x80 on stay as they are.
void append_quoted(std::string& out, std::string_view text);
/// [A-Za-z_][A-Za-z0-9_]*: printed bare; other names are printed as strings.
bool is_identifier(std::string_view name);

/// Splits MIL text into tokens, with one token of lookahead. Comments run from // to the end of the line. `position`
/// and `seek` allow reading a part later or again.
class Lexer {
 public:
  explicit Lexer(std::string_view text);

  const Token& peek() const { return current_; }
  /// Returns the current token and advances. After a lexical error every token is `end`, and `status` has the error.
  Token next();
  const Status& status() const { return status_; }

  size_t position() const { return current_.offset; }
  void seek(size_t offset);

  bool accept(char c);
  bool accept_word(std::string_view word);
  Status expect(char c);
  Status expect_arrow();
  /// Reads an identifier, or a string in its place.
  Result<std::string> name(std::string_view what);

  /// "3:14: expected ..., got <current token>".
  Error error(std::string_view expected) const;
  /// "3:14: what", at a byte offset.
  Error error_at(size_t offset, ErrorCode code, std::string_view what) const;
  std::string place(size_t offset) const;

 private:
  void scan();
  void scan_string();

  std::string_view text_;
  size_t at_ = 0;
  Token current_;
  Status status_;
};

}  // namespace moka::ir
