// SPDX-License-Identifier: Apache-2.0
#include "plan/packed_cache.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <filesystem>
#include <thread>

namespace moka::plan {

namespace {

/// Lets one model at a time, of all processes, add to the files of a folder, so that each keeps what the others added.
/// Waits two seconds at most, and does without where the file system has no locks.
class FolderLock {
 public:
  explicit FolderLock(const std::filesystem::path& folder)
      : descriptor_(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
    using namespace std::chrono_literals;
    const auto until = std::chrono::steady_clock::now() + 2s;
    while (descriptor_ >= 0 && ::flock(descriptor_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK &&
           std::chrono::steady_clock::now() < until)
      std::this_thread::sleep_for(5ms);
  }
  ~FolderLock() {
    if (descriptor_ < 0) return;
    ::flock(descriptor_, LOCK_UN);  // a process forked meanwhile has the descriptor, too
    ::close(descriptor_);
  }
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

 private:
  const int descriptor_;
};

}  // namespace

PackedCache::PackedCache(std::string path, std::string scope, std::string model,
                         std::map<std::string, std::string> files)
    : path_(std::move(path)), scope_(std::move(scope)), model_(std::move(model)), files_(std::move(files)) {
  auto file = read();
  if (file.ok())
    file_ = std::move(*file);
  else if (file.error().code() == ErrorCode::malformed || file.error().code() == ErrorCode::unsupported)
    remark_ = cat("'", path_, "' is made anew: ", file.error().to_string());
  else if (file.error().code() != ErrorCode::not_found)
    remark_ = file.error().to_string();
}

Result<PackedFile> PackedCache::read() const {
  const Bytes bytes = MOKA_TRY(map_file(path_));
  PackedFile file = MOKA_TRY(parse_packed_file(bytes));
  if (file.scope != scope_) file.entries.clear();
  return file;
}

std::shared_ptr<const std::byte> PackedCache::find(const std::string& key, size_t size) {
  const auto it = file_.entries.find(key);
  if (it == file_.entries.end() || it->second.bytes.size() != size) return nullptr;
  const PackedFile::Entry& e = it->second;
  {
    std::lock_guard lock(mutex_);
    if (const auto there = used_.find(key); there != used_.end()) return there->second.bytes;
  }
  const bool whole = e.whole();
  std::lock_guard lock(mutex_);
  if (!whole) {
    damaged_.insert(key);
    remark_ = cat("'", path_, "' is made anew: some of it is damaged");
    return nullptr;
  }
  const auto [at, is_new] = used_.try_emplace(key);
  if (is_new) {
    at->second = {std::shared_ptr<const std::byte>(e.bytes.owner, e.bytes.data()), size};
    found_bytes_ += size;
  }
  return at->second.bytes;
}

const std::string* PackedCache::name_of(const std::string& content) const {
  const auto it = files_.find(content);
  return it == files_.end() ? nullptr : &it->second;
}

void PackedCache::add(const std::string& key, std::shared_ptr<const std::byte> bytes, size_t size) {
  std::lock_guard lock(mutex_);
  if (!used_.try_emplace(key, Used{std::move(bytes), size}).second) return;
  const auto there = file_.entries.find(key);
  if (there == file_.entries.end() || there->second.bytes.size() != size || damaged_.contains(key)) dirty_ = true;
}

bool PackedCache::save() {
  if (!dirty_.exchange(false)) return false;
  const FolderLock one(std::filesystem::path(path_).parent_path());
  const Result<PackedFile> now = read();
  std::lock_guard lock(mutex_);
  std::vector<PackedPiece> pieces;
  for (const auto& [key, used] : used_) pieces.push_back({key, {used.bytes.get(), used.size}});
  if (now.ok())
    for (const auto& [key, entry] : now->entries)
      if (!used_.contains(key) && entry.whole()) pieces.push_back({key, entry.bytes.span});
  const Status s = write_packed_file(path_, scope_, model_, pieces);
  if (!s.ok()) remark_ = cat("packed weights are not kept: ", s.error().to_string());
  return s.ok();
}

size_t PackedCache::found_bytes() const {
  std::lock_guard lock(mutex_);
  return found_bytes_;
}

std::string PackedCache::remark() const {
  std::lock_guard lock(mutex_);
  return remark_;
}

}  // namespace moka::plan
