#include "plan/packed_cache.h"

namespace moka::plan {

PackedCache::PackedCache(std::string path, std::string scope, std::string model,
                         std::map<std::string, std::string> files)
    : path_(std::move(path)), scope_(std::move(scope)), model_(std::move(model)), files_(std::move(files)) {
  auto file = map_file(path_);
  if (!file.ok()) {
    if (file.error().code() != ErrorCode::not_found) remark_ = file.error().to_string();
    return;
  }
  auto parsed = parse_packed_file(*file);
  if (!parsed.ok())
    remark_ = cat("'", path_, "' is made anew: ", parsed.error().to_string());
  else if (parsed->scope == scope_)
    file_ = std::move(*parsed);
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
  if (used_.try_emplace(key, Used{std::move(bytes), size}).second) dirty_ = true;
}

bool PackedCache::save() {
  if (!dirty_.exchange(false)) return false;
  std::lock_guard lock(mutex_);
  std::vector<PackedPiece> pieces;
  for (const auto& [key, used] : used_) pieces.push_back({key, {used.bytes.get(), used.size}});
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
