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
/// The mapped files of this process: first byte to size.
struct Mappings {
  std::mutex mutex;
  std::map<uintptr_t, size_t> files;
};
Mappings& mappings() {
  static Mappings* all = new Mappings;
  return *all;
}

struct Mapping {
  Mapping(void* b, size_t n) : base(b), size(n) {
    std::lock_guard lock(mappings().mutex);
    mappings().files.emplace(reinterpret_cast<uintptr_t>(b), n);
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

/// `whole`: only pages that the range covers.
void advise(const void* data, size_t size, int advice, bool whole) {
  const auto page = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto first = reinterpret_cast<uintptr_t>(data);
  std::lock_guard lock(mappings().mutex);
  auto it = mappings().files.upper_bound(first);
  if (it == mappings().files.begin()) return;
  --it;
  if (first + size < first || first + size > it->first + it->second) return;
  const uintptr_t begin = (whole ? first + page - 1 : first) / page * page,
                  end = (whole ? first + size : first + size + page - 1) / page * page;
  if (begin < end) ::madvise(reinterpret_cast<void*>(begin), end - begin, advice);
}
}  // namespace

void read_ahead(const void* data, size_t size) {
#ifdef MADV_POPULATE_READ
  advise(data, size, MADV_POPULATE_READ, false);
#else
  advise(data, size, MADV_WILLNEED, false);
#endif
}

void drop_pages(const void* data, size_t size) { advise(data, size, MADV_DONTNEED, true); }

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
  auto m = std::make_shared<Mapping>(p, size);
  return Bytes{{static_cast<const std::byte*>(p), size}, m};
}

}  // namespace moka
