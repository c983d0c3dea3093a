#include "base/bytes.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
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
struct Mapping {
  Mapping(void* b, size_t n) : base(b), size(n) {}
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  ~Mapping() { munmap(base, size); }
  void* base;
  size_t size;
};
}  // namespace

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
