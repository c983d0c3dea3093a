// SPDX-License-Identifier: Apache-2.0
#include "format/weights/weight_store.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <mutex>
#include <optional>

#include "base/file_reader.h"
#include "format/path_guard.h"

namespace moka::format {

namespace {
constexpr size_t kSmallBlob = 4 << 10;  // bytes
}  // namespace

struct WeightStore::Rep {
  std::optional<ModelFolder> folder;  // none: only `files` exist
  std::string base;
  std::mutex mutex;
  std::map<std::string, Bytes, std::less<>> files;  // by normalized name
  std::weak_ptr<FileReader> reader;
};

std::string_view WeightStore::relative_name(std::string_view name) {
  constexpr std::string_view prefix = "@model_path/";
  return name.starts_with(prefix) ? name.substr(prefix.size()) : name;
}

WeightStore::WeightStore() : rep_(std::make_shared<Rep>()) {}

WeightStore WeightStore::in_folder(ModelFolder folder, std::string base) {
  WeightStore store;
  store.rep_->folder = std::move(folder);
  store.rep_->base = std::move(base);
  return store;
}

Result<WeightStore> WeightStore::in_folder(const std::string& root, const std::string& base) {
  ModelFolder folder = MOKA_TRY(ModelFolder::on_disk(root));
  return in_folder(std::move(folder), MOKA_TRY(real_path(base)));
}

WeightStore WeightStore::in_memory(std::map<std::string, Bytes> files) {
  WeightStore store;
  for (auto& [name, bytes] : files) {
    if (reinterpret_cast<uintptr_t>(bytes.data()) % 16 != 0) bytes = Bytes::copy_of(bytes.span);
    auto key = normalise_inside(relative_name(name));
    store.rep_->files.emplace(key.ok() ? *key : name, std::move(bytes));
  }
  return store;
}

Result<Bytes> WeightStore::file(std::string_view name) const {
  std::string_view relative = relative_name(name);
  std::lock_guard lock(rep_->mutex);
  if (auto it = rep_->files.find(relative); it != rep_->files.end()) return it->second;
  if (!rep_->folder) {
    std::string key = MOKA_TRY(normalise_inside(relative));
    auto it = rep_->files.find(key);
    if (it == rep_->files.end())
      return fail(ErrorCode::not_found, "weight file '", relative,
                  "' is missing: the model refers to it, but it was not given");
    return it->second;
  }
  Result<std::string> resolved = rep_->folder->resolve(rep_->base, relative);
  if (!resolved.ok() && resolved.error().code() == ErrorCode::not_found)
    return fail(ErrorCode::not_found, "weight file '", relative, "' is missing: the model refers to it, but '",
                rep_->base, "' does not have it");
  std::string path = MOKA_TRY_IN(std::move(resolved), "weight file");
  Bytes bytes = MOKA_TRY_IN(rep_->folder->read(path), "weight file");
  rep_->files.emplace(std::string(relative), bytes);
  return bytes;
}

Result<Blob> WeightStore::blob(std::string_view name, uint64_t offset) const {
  Bytes bytes = MOKA_TRY(file(name));
  std::shared_ptr<FileReader> reader;
  {
    std::lock_guard lock(rep_->mutex);
    reader = rep_->reader.lock();
  }
  constexpr size_t kHead = 64 + kSmallBlob;
  std::array<std::byte, kHead> head;
  const size_t known = offset < bytes.size() ? std::min<uint64_t>(kHead, bytes.size() - offset) : 0;
  const bool read = reader != nullptr && known > 0 && reader->copy(bytes.data() + offset, known, head.data());
  return MOKA_TRY_IN(read_blob(bytes, offset, std::span(head.data(), read ? known : 0)),
                     cat("weight file '", name, "'"));
}

std::shared_ptr<const void> WeightStore::read_files() const {
  std::lock_guard lock(rep_->mutex);
  std::shared_ptr<FileReader> reader = rep_->reader.lock();
  if (reader == nullptr) rep_->reader = reader = std::make_shared<FileReader>();
  return reader;
}

}  // namespace moka::format
