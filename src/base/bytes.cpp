// SPDX-License-Identifier: Apache-2.0
#include "base/bytes.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <ctime>
#include <map>
#include <mutex>
#include <thread>
#include <vector>

#include "base/lazy_memory.h"

namespace moka {

Bytes Bytes::copy_of(std::span<const std::byte> data) {
  auto v = std::make_shared<std::vector<std::byte>>(data.begin(), data.end());
  return {*v, v};
}

Bytes Bytes::from(std::string text) {
  auto s = std::make_shared<std::string>(std::move(text));
  return {std::as_bytes(std::span(s->data(), s->size())), s};
}

namespace {
struct Mapping;
/// The mapped files of this process by their first byte.
struct Mappings {
  struct File {
    size_t size;
    std::string path, content;
  };
  std::mutex mutex;
  std::map<uintptr_t, File> files;
  std::map<std::string, std::weak_ptr<const Mapping>> shared;  ///< by state_of

  /// The mapping of [data, data + size). The caller holds the mutex.
  auto find(uintptr_t data, size_t size) const {
    auto it = files.upper_bound(data);
    if (it == files.begin()) return files.end();
    --it;
    return data + size < data || data + size > it->first + it->second.size ? files.end() : it;
  }
};
Mappings& mappings() {
  static Mappings* all = new Mappings;
  return *all;
}

struct Mapping {
  Mapping(void* b, size_t n, std::string s) : base(b), size(n), state(std::move(s)) {}
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  ~Mapping() {
    std::lock_guard lock(mappings().mutex);
    mappings().files.erase(reinterpret_cast<uintptr_t>(base));
    // Another mapping of the same state may have taken the place.
    if (const auto it = mappings().shared.find(state); it != mappings().shared.end() && it->second.expired())
      mappings().shared.erase(it);
    munmap(base, size);
  }
  void* base;
  size_t size;
  const std::string state;  ///< its key in Mappings::shared; empty: it is not shared
};

/// `whole`: only pages that lie entirely in the range.
void advise(const void* data, size_t size, int advice, bool whole) {
  const auto page = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto first = reinterpret_cast<uintptr_t>(data);
  std::lock_guard lock(mappings().mutex);
  if (mappings().find(first, size) == mappings().files.end()) return;
  const uintptr_t begin = (whole ? first + page - 1 : first) / page * page,
                  end = (whole ? first + size : first + size + page - 1) / page * page;
  if (begin < end) ::madvise(reinterpret_cast<void*>(begin), end - begin, advice);
}
/// Every change of a file updates its time of change; a program cannot set that time.
std::string content_of(const struct stat& st) {
  auto time = [](const timespec& t) { return cat(t.tv_sec, ".", t.tv_nsec); };
  return cat(st.st_ino, " ", st.st_size, " ", time(st.st_mtim), " ", time(st.st_ctim));
}

/// What identifies the file's content while it is mapped, for the number of a mapped file is not reused. Empty if the
/// next change may leave the same time of change, because the last one was within the clock's resolution. Waits for
/// some milliseconds if that makes a large file identifiable.
std::string state_of(const struct stat& st) {
  constexpr int64_t kSecond = 1'000'000'000, kCoarse = 5 * kSecond / 2, kTick = kSecond / 100;  // ns
  constexpr off_t kLarge = 1 << 20;
  const auto count = [](const timespec& t) { return t.tv_sec * kSecond + t.tv_nsec; };
  timespec now{}, tick{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  ::clock_getres(CLOCK_REALTIME_COARSE, &tick);
  const bool whole = st.st_ctim.tv_nsec == 0;  // some file systems keep whole seconds, or every other one
  const int64_t age = count(now) - count(st.st_ctim), settled = whole ? kCoarse : std::max(kTick, 2 * count(tick));
  if (age < settled) {
    if (whole || age < 0 || st.st_size < kLarge) return {};
    std::this_thread::sleep_for(std::chrono::nanoseconds(settled - age));
  }
  return cat(st.st_dev, " ", content_of(st));
}
}  // namespace

std::optional<FilePlace> place_in_file(const void* data, size_t size) {
  const auto first = reinterpret_cast<uintptr_t>(data);
  std::lock_guard lock(mappings().mutex);
  const auto it = mappings().find(first, size);
  if (it == mappings().files.end()) return std::nullopt;
  return FilePlace{it->second.path, it->second.content, first - it->first};
}

std::string content_of_file(int descriptor) {
  struct stat st {};
  return ::fstat(descriptor, &st) == 0 ? content_of(st) : std::string();
}

void read_ahead(const void* data, size_t size) {
  if (lazy::read_ahead(data, size)) return;
#ifdef MADV_POPULATE_READ
  advise(data, size, MADV_POPULATE_READ, false);
#else
  advise(data, size, MADV_WILLNEED, false);
#endif
}

void drop_pages(const void* data, size_t size) {
  if (!lazy::drop(data, size)) advise(data, size, MADV_DONTNEED, true);
}

Result<Bytes> map_file(const std::string& path) {
  int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) {
    int e = errno;
    return fail(e == ENOENT || e == ENOTDIR ? ErrorCode::not_found : ErrorCode::io, "cannot open '", path,
                "': ", std::strerror(e));
  }
  struct stat st {};
  if (::fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) {
    ::close(fd);
    return fail(ErrorCode::io, "'", path, "' is not a regular file");
  }
  auto size = static_cast<size_t>(st.st_size);
  if (size == 0) {
    ::close(fd);
    return Bytes{};
  }
  const std::string state = state_of(st);
  Mappings& all = mappings();
  std::shared_ptr<const Mapping> made;  // outlives the lock, which its destructor takes
  std::lock_guard lock(all.mutex);
  if (const auto it = all.shared.find(state); it != all.shared.end() && (made = it->second.lock()) != nullptr) {
    ::close(fd);
    all.files.at(reinterpret_cast<uintptr_t>(made->base)).path = path;  // the earlier one may no longer exist
    return Bytes{{static_cast<const std::byte*>(made->base), size}, made};
  }
  void* p = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd, 0);
  int e = errno;
  ::close(fd);
  if (p == MAP_FAILED) return fail(ErrorCode::io, "cannot map '", path, "': ", std::strerror(e));
  made = std::make_shared<const Mapping>(p, size, state);
  all.files.emplace(reinterpret_cast<uintptr_t>(p), Mappings::File{size, path, content_of(st)});
  if (!state.empty()) all.shared[state] = made;
  return Bytes{{static_cast<const std::byte*>(p), size}, made};
}

}  // namespace moka
