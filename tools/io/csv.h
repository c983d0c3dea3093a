// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace moka::io {

/// A header and rows with as many fields as the header.
struct Csv {
  std::vector<std::string> header;
  std::vector<std::vector<std::string>> rows;

  /// Index of a column by its name.
  std::optional<size_t> column(std::string_view name) const;
};

/// Parses RFC 4180: comma-separated fields, which may be quoted with doubled quotes inside, and records that end with
/// CRLF or LF. Skips a byte order mark, and empty lines if there is more than one column. `name` is used in messages.
Csv parse_csv(std::string_view text, std::string_view name);
Csv read_csv(const std::filesystem::path& path);

/// One field in the form in which a file holds it, quoted if necessary.
std::string csv_field(std::string_view text);

}  // namespace moka::io
