// SPDX-License-Identifier: Apache-2.0
#include "io/csv.h"

#include <algorithm>

#include "io/file.h"
#include "io/io_error.h"

namespace moka::io {
namespace {

class Parser {
 public:
  Parser(std::string_view text, std::string_view name) : text_(text), name_(name) {}

  bool at_end() const { return at_ >= text_.size(); }
  size_t line() const { return line_; }

  std::vector<std::string> record() {
    std::vector<std::string> fields;
    while (true) {
      fields.push_back(!at_end() && text_[at_] == '"' ? quoted() : plain());
      if (at_end()) return fields;
      if (text_[at_] == ',') {
        ++at_;
        continue;
      }
      if (text_[at_] == '\r') ++at_;
      if (!at_end()) ++at_;
      ++line_;
      return fields;
    }
  }

 private:
  bool ends_record(size_t at) const {
    return text_[at] == '\n' || (text_[at] == '\r' && (at + 1 == text_.size() || text_[at + 1] == '\n'));
  }

  std::string plain() {
    const size_t start = at_;
    while (!at_end() && text_[at_] != ',' && !ends_record(at_)) {
      if (text_[at_] == '"') fail(name_, "line ", line_, ": expected quotes only around a whole field, got one inside");
      ++at_;
    }
    return std::string(text_.substr(start, at_ - start));
  }

  std::string quoted() {
    const size_t opened = line_;
    std::string field;
    for (++at_; !at_end(); ++at_) {
      if (text_[at_] != '"') {
        line_ += text_[at_] == '\n';
        field += text_[at_];
      } else if (at_ + 1 < text_.size() && text_[at_ + 1] == '"') {
        field += '"';
        ++at_;
      } else {
        ++at_;
        if (at_end() || text_[at_] == ',' || ends_record(at_)) return field;
        fail(name_, "line ", line_, ": expected a comma or the end of the line after a quoted field, got '", text_[at_],
             "'");
      }
    }
    fail(name_, "line ", opened, ": expected a closing quote, got the end of the file");
  }

  std::string_view text_, name_;
  size_t at_ = 0, line_ = 1;
};

}  // namespace

std::optional<size_t> Csv::column(std::string_view name) const {
  const auto found = std::find(header.begin(), header.end(), name);
  if (found == header.end()) return std::nullopt;
  return static_cast<size_t>(found - header.begin());
}

Csv parse_csv(std::string_view text, std::string_view name) {
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
  Parser parser(text, name);
  if (parser.at_end()) fail(name, "expected a header line, got an empty file");
  Csv csv;
  csv.header = parser.record();
  while (!parser.at_end()) {
    const size_t line = parser.line();
    auto fields = parser.record();
    if (fields.size() == 1 && fields[0].empty() && csv.header.size() > 1) continue;
    if (fields.size() != csv.header.size()) {
      fail(name, "line ", line, ": expected ", csv.header.size(), " fields as in the header, got ", fields.size());
    }
    csv.rows.push_back(std::move(fields));
  }
  return csv;
}

Csv read_csv(const std::filesystem::path& path) {
  const Bytes bytes = read_file(path);
  return parse_csv({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, path.string());
}

std::string csv_field(std::string_view text) {
  if (text.find_first_of(",\"\r\n") == std::string_view::npos) return std::string(text);
  std::string out = "\"";
  for (char c : text) {
    if (c == '"') out += '"';
    out += c;
  }
  return out + '"';
}

}  // namespace moka::io
