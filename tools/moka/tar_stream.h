// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

/// Streams of tar (ustar) that hold plain files.
namespace moka::cli {

class TarStream {
 public:
  /// `name`: relative. Throws IoError where the format cannot hold it: a name of more than 255 bytes, a file of 8 GB.
  void add_file(const std::string& name, const std::filesystem::path& from, bool is_program = false);
  void add_text(const std::string& name, std::string text);
  /// A file, or a folder with all that it holds. Symbolic links to files become files.
  void add_tree(const std::string& name, const std::filesystem::path& from);
  uint64_t bytes() const;
  /// Calls `put` until it returns false. Throws IoError, also for a file that became shorter.
  void write(const std::function<bool(std::string_view)>& put) const;

 private:
  struct Entry {
    std::string header;
    std::filesystem::path from;  ///< empty: `text`
    std::string text;
    uint64_t bytes = 0;
  };
  void add(const std::string& name, Entry entry, bool is_program);

  std::vector<Entry> entries_;
};

}  // namespace moka::cli
