// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>

#include "plan/packed_file.h"

namespace moka::plan {

/// Identifies builds whose packed constants may differ: all sources that affect packing, and the compiler.
std::string_view build();

/// Packed constants of one model and configuration, for all its functions, that earlier loads wrote. Replaces a file
/// that is damaged or has another scope. Thread-safe.
class PackedCache {
 public:
  /// `files`: by FilePlace::content, the names by which keys call the model's files.
  PackedCache(std::string path, std::string scope, std::string model, std::map<std::string, std::string> files = {});

  /// Null: not found. The bytes stay mapped as long as a pointer to them exists.
  std::shared_ptr<const std::byte> find(const std::string& key, size_t size);
  /// The name of a file of the model; nullptr where it is none.
  const std::string* name_of(const std::string& content) const;
  /// To be written by `save`, unless the file has it.
  void add(const std::string& key, std::shared_ptr<const std::byte> bytes, size_t size);
  /// Writes all entries, found and added and those that the file has meanwhile, if any added one is new. Returns
  /// whether it wrote the file.
  bool save();

  const std::string& path() const { return path_; }
  size_t found_bytes() const;
  /// Why the file could not be used or written; empty: no problem.
  std::string remark() const;

 private:
  struct Used {
    std::shared_ptr<const std::byte> bytes;
    size_t size = 0;
  };
  /// The file at `path_`; with other content than ours it has no entries.
  Result<PackedFile> read() const;

  const std::string path_, scope_, model_;
  const std::map<std::string, std::string> files_;
  PackedFile file_;
  mutable std::mutex mutex_;  ///< guards the fields below
  std::map<std::string, Used> used_;
  std::set<std::string> damaged_;  ///< keys of entries of the file
  size_t found_bytes_ = 0;
  std::atomic<bool> dirty_{false};
  std::string remark_;
};

}  // namespace moka::plan
