// SPDX-License-Identifier: Apache-2.0
#include "runtime/model_content.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <sstream>
#include <vector>

#include "base/bytes.h"
#include "base/checksum.h"
#include "runtime/cache_file.h"

namespace moka::runtime {

namespace {

namespace fs = std::filesystem;

constexpr size_t kMostFiles = 4096;
constexpr size_t kStep = 1 << 20;  // bytes read at once
constexpr std::string_view kHead = "moka content 1";

struct ContentFile {
  std::string name, state, digest;  ///< state: FilePlace::content
};

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

/// The names of the model's files below `path`, sorted.
Result<std::vector<std::string>> files_of(const fs::path& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (!fs::exists(status)) return fail(ErrorCode::not_found, "'", path.string(), "' does not exist");
  if (!fs::is_directory(status)) return std::vector<std::string>{""};
  std::vector<std::string> names;
  for (fs::recursive_directory_iterator it(path, error), end; !error && it != end; it.increment(error)) {
    std::error_code gone;
    if (!it->is_regular_file(gone)) continue;
    names.push_back(it->path().lexically_relative(path).string());
    if (names.size() > kMostFiles)
      return fail(ErrorCode::unsupported, "'", path.string(), "' has more than ", kMostFiles, " files");
  }
  if (error) return fail(ErrorCode::io, "'", path.string(), "': ", error.message());
  std::sort(names.begin(), names.end());
  return names;
}

/// An open file, closed at the end.
class Opened {
 public:
  explicit Opened(const std::string& path) : path_(path), descriptor_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {}
  ~Opened() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  Opened(const Opened&) = delete;
  Opened& operator=(const Opened&) = delete;

  Result<std::string> state() const {
    std::string now = descriptor_ < 0 ? std::string() : content_of_file(descriptor_);
    if (now.empty()) return fail(ErrorCode::io, "cannot open '", path_, "': ", std::strerror(errno));
    return now;
  }
  Result<std::string> digest() const {
    Digest sum;
    std::vector<std::byte> buffer(kStep);
    for (;;) {
      const ssize_t n = ::read(descriptor_, buffer.data(), buffer.size());
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return fail(ErrorCode::io, "cannot read '", path_, "': ", std::strerror(errno));
      if (n == 0) return sum.text();
      sum.add(std::span(buffer).first(static_cast<size_t>(n)));
    }
  }

 private:
  std::string path_;
  int descriptor_;
};

/// The digests that an earlier call kept, by a file's state and name. What cannot be read counts as not kept.
std::map<std::pair<std::string, std::string>, std::string> kept_digests(const std::string& file) {
  std::map<std::pair<std::string, std::string>, std::string> out;
  const Result<std::string> text = read_cache_file(file);
  if (!text.ok()) return out;
  std::istringstream in(*text);
  std::string line, digest, state, name;
  if (!std::getline(in, line) || line != kHead) return out;
  while (std::getline(in, digest) && std::getline(in, state) && std::getline(in, name)) out[{state, name}] = digest;
  return out;
}

std::string listed(const std::vector<ContentFile>& files) {
  std::string out = cat(kHead, "\n");
  for (const ContentFile& f : files) out += cat(f.digest, "\n", f.state, "\n", f.name, "\n");
  return out;
}

}  // namespace

Result<ModelContent> content_of_model(const std::string& path, const std::string& folder) {
  std::error_code error;
  const fs::path root = fs::weakly_canonical(path, error);
  if (error) return fail(ErrorCode::io, "'", path, "': ", error.message());
  Digest place;
  place.add(bytes_of(root.string()));
  const std::string memory = (fs::path(folder) / (place.text() + std::string(kContentEnding))).string();
  const auto kept = kept_digests(memory);

  std::vector<ContentFile> files;
  bool is_new = false;
  for (std::string& name : MOKA_TRY(files_of(root))) {
    const Opened file(name.empty() ? root.string() : (root / name).string());
    ContentFile f{std::move(name), MOKA_TRY(file.state()), {}};
    if (const auto it = kept.find({f.state, f.name}); it != kept.end()) {
      f.digest = it->second;
    } else {
      f.digest = MOKA_TRY(file.digest());
      if (MOKA_TRY(file.state()) != f.state)
        return fail(ErrorCode::io, "'", path, "': file '", f.name, "' changed while it was read");
      is_new = true;
    }
    files.push_back(std::move(f));
  }

  ModelContent out;
  Digest all;
  bool one_line = true;
  for (const ContentFile& f : files) {
    all.add(bytes_of(f.name));
    all.add(bytes_of(cat("\n", f.digest, "\n")));
    out.files.emplace(f.state, f.name);
    one_line &= f.name.find('\n') == std::string::npos;
  }
  out.digest = all.text();
  // If this fails, the next call reads all files again.
  if (is_new && one_line) (void)replace_cache_file(memory, OutputKind::digests, listed(files));
  return out;
}

}  // namespace moka::runtime
