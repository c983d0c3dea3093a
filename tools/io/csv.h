#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace moka::io {

/// A header and rows that all have as many fields as it.
struct Csv {
  std::vector<std::string> header;
  std::vector<std::vector<std::string>> rows;

  /// Index of a column by its name.
  std::optional<size_t> column(std::string_view name) const;
};

/// RFC 4180: comma-separated, fields may be quoted with doubled quotes inside, records end with CRLF or LF. A byte
/// order mark is skipped, empty lines are skipped where there is more than one column. `name` is used in messages.
Csv parse_csv(std::string_view text, std::string_view name);
Csv read_csv(const std::filesystem::path& path);

/// One field as it is written to a file, quoted where it must be.
std::string csv_field(std::string_view text);

}  // namespace moka::io
