#include "base/bytes.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <map>
#include <mutex>
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
/// The mapped files of this process by their first byte.
struct Mappings {
  struct File {
    size_t size;
    std::string path, content;
  };
  std::mutex mutex;
  std::map<uintptr_t, File> files;

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
  Mapping(void* b, size_t n, std::string path, std::string content) : base(b), size(n) {
    std::lock_guard lock(mappings().mutex);
    mappings().files.emplace(reinterpret_cast<uintptr_t>(b), Mappings::File{n, std::move(path), std::move(content)});
  }
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  ~Mapping() {
    std::lock_guard lock(mappings().mutex);
    mappings().files.erase(reinterpret_cast<uintptr_t>(base));
    munmap(base, size);
  }
  void* base;
  size_t size;
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
  void* p = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd, 0);
  int e = errno;
  ::close(fd);
  if (p == MAP_FAILED) return fail(ErrorCode::io, "cannot map '", path, "': ", std::strerror(e));
  auto m = std::make_shared<Mapping>(p, size, path, content_of(st));
  return Bytes{{static_cast<const std::byte*>(p), size}, m};
}

}  // namespace moka
