// SPDX-License-Identifier: Apache-2.0
#include "base/shared_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <string>

namespace moka {

namespace {

constexpr const char* kNotSealed =
    "another process could shorten its file: memfd_create with MFD_ALLOW_SEALING makes one that cannot shrink";

struct Listed {
  size_t bytes;
  std::weak_ptr<SharedMemory> memory;
};
// Never destroyed, because memory may outlive it at the end of the process.
std::mutex& list_mutex() {
  static std::mutex& mutex = *new std::mutex;
  return mutex;
}
std::map<uintptr_t, Listed>& listed() {
  static auto& all = *new std::map<uintptr_t, Listed>;
  return all;
}
std::atomic<size_t> count{0};

uintptr_t address(const void* p) { return reinterpret_cast<uintptr_t>(p); }

size_t page() {
  static const auto bytes = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  return bytes;
}

/// Bytes that the limits of control groups leave; the largest number without limits.
uint64_t left_to_container() {
  uint64_t least = UINT64_MAX;
  std::ifstream groups("/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    if (!line.starts_with("0::/")) continue;
    const std::filesystem::path root = "/sys/fs/cgroup";
    for (std::filesystem::path at = root / line.substr(4);; at = at.parent_path()) {
      uint64_t most = 0, used = 0;
      std::ifstream limit(at / "memory.max"), now(at / "memory.current");
      if (limit >> most && now >> used) least = std::min(least, most > used ? most - used : 0);
      if (at == root || at == at.parent_path()) break;
    }
  }
  return least;
}

/// Bytes that programs can get before the kernel takes them from others; the largest number where it does not tell.
uint64_t available_memory() {
  std::ifstream in("/proc/meminfo");
  std::string name;
  uint64_t kibibytes = 0;
  for (std::string rest; in >> name >> kibibytes; std::getline(in, rest))
    if (name == "MemAvailable:") return std::min(kibibytes * 1024, left_to_container());
  return left_to_container();
}

Error failed(std::string_view call) {
  return fail(errno == ENOMEM ? ErrorCode::out_of_budget : ErrorCode::io, call, ": ", std::strerror(errno));
}

/// The size of the file, which cannot shrink from now on.
Result<uint64_t> sealed_size(int file) {
  struct stat info {};
  if (::fstat(file, &info) != 0)
    return fail(ErrorCode::invalid_argument, "file descriptor ", file, ": ", std::strerror(errno));
  const int seals = ::fcntl(file, F_GET_SEALS);
  if (seals < 0)
    return fail(ErrorCode::invalid_argument, "file descriptor ", file,
                " is not of memfd_create; memory of dma_buf and of other files is not shared");
  if ((seals & F_SEAL_WRITE) != 0)
    return fail(ErrorCode::invalid_argument, "file descriptor ", file, " is sealed against writing");
  if ((seals & F_SEAL_SHRINK) == 0 && ::fcntl(file, F_ADD_SEALS, F_SEAL_SHRINK) != 0)
    return fail(ErrorCode::invalid_argument, "file descriptor ", file, ": ", kNotSealed);
  // The size before the seal may be another one.
  if (::fstat(file, &info) != 0) return failed("fstat");
  return static_cast<uint64_t>(info.st_size);
}

}  // namespace

Result<std::shared_ptr<SharedMemory>> SharedMemory::map(int file, uint64_t offset, size_t bytes) {
  std::shared_ptr<SharedMemory> m(new SharedMemory);
  m->file_ = file;
  const uint64_t first = offset / page() * page();
  m->page_bytes_ = (offset - first + bytes + page() - 1) / page() * page();
  void* at = ::mmap(nullptr, m->page_bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, file, static_cast<off_t>(first));
  if (at == MAP_FAILED) return failed(cat("mmap of ", bytes, " bytes"));
  m->pages_ = {static_cast<std::byte*>(at), [n = m->page_bytes_](std::byte* p) { ::munmap(p, n); }};
  m->data_ = m->pages_.get() + (offset - first);
  m->bytes_ = bytes;
  m->offset_ = offset;
  m->self_ = m;
  MOKA_TRY(m->list());
  return m;
}

Result<std::shared_ptr<SharedMemory>> SharedMemory::make(size_t bytes) {
  if (bytes == 0) return fail(ErrorCode::invalid_argument, "shared memory of 0 bytes");
  if (bytes > static_cast<size_t>(INT64_MAX) - page())
    return fail(ErrorCode::out_of_budget, "no shared memory of ", bytes, " bytes");
  // The kernel gives all that it has, and then ends programs.
  if (const uint64_t most = available_memory(); bytes > most)
    return fail(ErrorCode::out_of_budget, "no shared memory of ", bytes, " bytes: ", most, " are available");
  const int file = ::memfd_create("moka", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (file < 0) return failed("memfd_create");
  const auto size = static_cast<off_t>((bytes + page() - 1) / page() * page());
  // Pages are there from now on: a page that cannot be had later would end the process.
  const int error = ::ftruncate(file, size) != 0 ? errno : ::posix_fallocate(file, 0, size);
  if (error != 0 || ::fcntl(file, F_ADD_SEALS, F_SEAL_SHRINK) != 0) {
    if (error != 0) errno = error == ENOSPC ? ENOMEM : error;
    Error e = failed(cat("shared memory of ", bytes, " bytes"));
    ::close(file);
    return e;
  }
  auto made = map(file, 0, bytes);
  if (!made.ok()) ::close(file);
  return made;
}

Result<std::shared_ptr<SharedMemory>> SharedMemory::open(int file, uint64_t offset, size_t bytes) {
  const uint64_t size = MOKA_TRY(sealed_size(file));
  if (offset > size || bytes > size - offset || offset == size)
    return fail(ErrorCode::invalid_argument, bytes, " bytes at ", offset, " of a file of ", size);
  const int own = ::fcntl(file, F_DUPFD_CLOEXEC, 0);
  if (own < 0) return failed("fcntl(F_DUPFD_CLOEXEC)");
  auto made = map(own, offset, bytes != 0 ? bytes : static_cast<size_t>(size - offset));
  if (!made.ok()) ::close(own);
  return made;
}

Result<std::shared_ptr<SharedMemory>> SharedMemory::borrow(void* at, size_t bytes) {
  if (at == nullptr || bytes == 0) return fail(ErrorCode::invalid_argument, "shared memory of 0 bytes");
  if (address(at) + bytes < address(at)) return fail(ErrorCode::invalid_argument, "memory beyond the address space");
  std::shared_ptr<SharedMemory> m(new SharedMemory);
  m->data_ = static_cast<std::byte*>(at);
  m->bytes_ = bytes;
  if (address(at) % page() == 0 && bytes % page() == 0) {
    m->page_bytes_ = bytes;
    m->pages_ = {m->data_, [](std::byte*) {}};
  }
  m->self_ = m;
  MOKA_TRY(m->list());
  return m;
}

Status SharedMemory::list() {
  const std::lock_guard lock(list_mutex());
  auto& all = listed();
  const auto next = all.lower_bound(address(data_));
  const bool before = next != all.begin() && std::prev(next)->first + std::prev(next)->second.bytes > address(data_);
  const bool behind = next != all.end() && next->first < address(data_) + bytes_;
  if (before || behind) return fail(ErrorCode::invalid_argument, "memory that is shared already");
  all[address(data_)] = {bytes_, self_};
  is_listed_ = true;
  count++;
  return {};
}

SharedMemory::~SharedMemory() {
  if (is_listed_) {
    const std::lock_guard lock(list_mutex());
    listed().erase(address(data_));
    count--;
  }
  if (file_ >= 0 && is_listed_) ::close(file_);
}

std::shared_ptr<SharedMemory> SharedMemory::find(const void* at, size_t bytes) {
  if (!is_any()) return nullptr;
  const std::lock_guard lock(list_mutex());
  const auto& all = listed();
  auto found = all.upper_bound(address(at));
  if (found == all.begin()) return nullptr;
  --found;
  const size_t from = address(at) - found->first;
  if (from > found->second.bytes || bytes > found->second.bytes - from) return nullptr;
  return found->second.memory.lock();
}

bool SharedMemory::is_any() { return count.load(std::memory_order_relaxed) > 0; }

}  // namespace moka
