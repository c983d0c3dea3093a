// SPDX-License-Identifier: Apache-2.0
#include "base/file_reader.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>

namespace moka {

namespace {
constexpr size_t kSmall = 4 << 10, kUnit = size_t{64} << 10, kLargest = size_t{16} << 20;

bool read_all(int descriptor, std::byte* to, size_t size, size_t offset) {
  while (size > 0) {
    const ssize_t n = ::pread(descriptor, to, size, static_cast<off_t>(offset));
    if (n <= 0) return false;
    to += n;
    size -= static_cast<size_t>(n);
    offset += static_cast<size_t>(n);
  }
  return true;
}
}  // namespace

FileReader::Buffer FileReader::take(size_t size) {
  {
    std::lock_guard lock(mutex_);
    const auto it = std::find_if(free_.begin(), free_.end(), [&](const Buffer& b) { return b.size >= size; });
    if (it != free_.end()) {
      Buffer found = std::move(*it);
      free_.erase(it);
      return found;
    }
    if (!free_.empty()) free_.pop_back();
  }
  // Mapped instead of allocated, because the heap would keep it. On small pages: huge ones may come slowly, and a
  // buffer is used for a short time.
  const size_t whole = (size + kUnit - 1) / kUnit * kUnit;
  void* p = ::mmap(nullptr, whole, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED) return {};
  return {{static_cast<std::byte*>(p), [whole](std::byte* q) { ::munmap(q, whole); }}, whole};
}

std::shared_ptr<const int> FileReader::descriptor(const std::string& path, const std::string& content) {
  std::lock_guard lock(mutex_);
  std::shared_ptr<const int>& found = descriptors_[content];
  if (found != nullptr) return found;
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return nullptr;
  std::shared_ptr<const int> opened(new int(fd), [](const int* f) {
    ::close(*f);
    delete f;
  });
  if (content_of_file(fd) != content) return nullptr;
  return found = std::move(opened);
}

bool FileReader::copy(const FilePlace& place, size_t size, std::byte* to) {
  const auto fd = descriptor(place.path, place.content);
  return fd != nullptr && read_all(*fd, to, size, place.offset);
}

bool FileReader::copy(const void* data, size_t size, void* to) {
  const auto place = place_in_file(data, size);
  return place && copy(*place, size, static_cast<std::byte*>(to));
}

std::shared_ptr<const std::byte> FileReader::read(const void* data, size_t size) {
  if (size < kSmall || size > kLargest) return nullptr;
  const auto place = place_in_file(data, size);
  if (!place) return nullptr;
  Buffer buffer = take(size);
  if (buffer.memory == nullptr) return nullptr;
  const bool whole = copy(*place, size, buffer.memory.get());
  std::shared_ptr<const std::byte> result(buffer.memory.get(), [this, buffer](const std::byte*) {
    std::lock_guard lock(mutex_);
    free_.push_back(buffer);
  });
  return whole ? result : nullptr;
}

}  // namespace moka
