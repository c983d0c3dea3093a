// SPDX-License-Identifier: Apache-2.0
#include "base/lazy_memory.h"

#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <thread>
#include <vector>

namespace moka {
namespace {

constexpr size_t kBlock = BlockSource::block_size;

#ifndef UFFD_USER_MODE_ONLY
#define UFFD_USER_MODE_ONLY 1
#endif
#ifndef MADV_DONTNEED_LOCKED
#define MADV_DONTNEED_LOCKED 24
#endif
#ifndef MLOCK_ONFAULT
#define MLOCK_ONFAULT 1
#endif

size_t rounded_up(size_t n) { return (n + kBlock - 1) / kBlock * kBlock; }

[[noreturn]] void lost(size_t block) {
  std::fprintf(stderr, "moka: block %zu of an encrypted model changed while the model was in use\n", block);
  std::abort();
}

/// Memory at a multiple of the size of a block.
struct Area {
  std::byte* begin = nullptr;
  size_t size = 0;
};

Area map_area(size_t size, int protection) {
  void* p = ::mmap(nullptr, size + kBlock, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED) return {};
  auto* first = static_cast<std::byte*>(p);
  const size_t before = rounded_up(reinterpret_cast<uintptr_t>(first)) - reinterpret_cast<uintptr_t>(first);
  if (before > 0) ::munmap(first, before);
  if (before < kBlock) ::munmap(first + before + size, kBlock - before);
  ::madvise(first + before, size, MADV_DONTDUMP);
  // Fails where the limit of locked memory is too low; then the system may swap the pages out.
  (void)::syscall(SYS_mlock2, first + before, size, MLOCK_ONFAULT);
  return {first + before, size};
}

struct Region {
  Region(Area a, std::shared_ptr<const BlockSource> s) : area(a), source(std::move(s)), computed(a.size / kBlock) {}
  size_t block_bytes(size_t block) const { return std::min(kBlock, source->size() - block * kBlock); }

  const Area area;
  const std::shared_ptr<const BlockSource> source;
  std::vector<std::atomic<bool>> computed;
};

/// Answers the page faults of all regions of this process.
class Server {
 public:
  /// Null where the system has no userfaultfd. A forked process gets its own.
  static Server* get() {
    static std::mutex mutex;
    static Server* server = nullptr;
    static pid_t owner = 0;
    std::lock_guard lock(mutex);
    if (owner != ::getpid()) {
      owner = ::getpid();
      const long descriptor = ::syscall(SYS_userfaultfd, O_CLOEXEC | UFFD_USER_MODE_ONLY);
      uffdio_api api{UFFD_API, 0, 0};
      const bool works = descriptor >= 0 && ::ioctl(static_cast<int>(descriptor), UFFDIO_API, &api) == 0;
      if (!works && descriptor >= 0) ::close(static_cast<int>(descriptor));
      server = works ? new Server(static_cast<int>(descriptor)) : nullptr;
      active().store(server);
    }
    return server;
  }
  /// The server, if any region ever existed.
  static std::atomic<Server*>& active() {
    static std::atomic<Server*> server{nullptr};
    return server;
  }

  bool add(const std::shared_ptr<Region>& region) {
    const auto begin = reinterpret_cast<uintptr_t>(region->area.begin);
    uffdio_register call{};
    call.range = {begin, region->area.size};
    call.mode = UFFDIO_REGISTER_MODE_MISSING;
    if (::ioctl(descriptor_, UFFDIO_REGISTER, &call) != 0) return false;
    ::madvise(region->area.begin, region->area.size, MADV_DONTFORK);
    std::lock_guard lock(mutex_);
    if (regions_.empty() && !started_) start();
    regions_.emplace(begin, region);
    return true;
  }

  void remove(const Region& region) {
    const auto begin = reinterpret_cast<uintptr_t>(region.area.begin);
    std::lock_guard lock(mutex_);
    uffdio_range range{begin, region.area.size};
    ::ioctl(descriptor_, UFFDIO_UNREGISTER, &range);
    regions_.erase(begin);
  }

  /// The region that contains [data, data + size).
  std::shared_ptr<Region> find(const void* data, size_t size) {
    const auto first = reinterpret_cast<uintptr_t>(data);
    std::lock_guard lock(mutex_);
    auto it = regions_.upper_bound(first);
    if (it == regions_.begin()) return nullptr;
    --it;
    return first + size < first || first + size > it->first + it->second->area.size ? nullptr : it->second;
  }

  void compute(Region& region, size_t block) {
    alignas(4096) std::array<std::byte, kBlock> buffer;
    const size_t bytes = region.block_bytes(block);
    if (!region.source->fill(block, std::span(buffer).first(bytes))) lost(block);
    std::fill(buffer.begin() + static_cast<std::ptrdiff_t>(bytes), buffer.end(), std::byte{0});
    // Before, because the copy wakes readers; after, because a drop in between clears the flag.
    region.computed[block].store(true);
    copy(region.area.begin + block * kBlock, buffer.data());
    region.computed[block].store(true);
    ::explicit_bzero(buffer.data(), kBlock);
  }

 private:
  explicit Server(int descriptor) : descriptor_(descriptor) {}

  void start() {
    sigset_t all, before;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before);
    std::thread([this] { serve(); }).detach();
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
    started_ = true;
  }

  void serve() {
    for (;;) {
      uffd_msg message{};
      if (::read(descriptor_, &message, sizeof message) != static_cast<ssize_t>(sizeof message)) continue;
      if (message.event != UFFD_EVENT_PAGEFAULT) continue;
      const auto* address = reinterpret_cast<const std::byte*>(message.arg.pagefault.address);
      if (const auto region = find(address, 1))
        compute(*region, static_cast<size_t>(address - region->area.begin) / kBlock);
    }
  }

  /// Places the pages of a block that are missing.
  void copy(std::byte* to, const std::byte* from) {
    auto place = [&](size_t at, size_t size) {
      uffdio_copy call{};
      call.dst = reinterpret_cast<uintptr_t>(to + at);
      call.src = reinterpret_cast<uintptr_t>(from + at);
      call.len = size;
      while (::ioctl(descriptor_, UFFDIO_COPY, &call) != 0) {
        if (errno != EAGAIN) return false;
        if (call.copy > 0) return false;
        call.copy = 0;
      }
      return true;
    };
    if (place(0, kBlock)) return;
    const auto page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
    for (size_t at = 0; at < kBlock; at += page) place(at, page);
    // A page that another thread placed meanwhile wakes no reader.
    uffdio_range range{reinterpret_cast<uintptr_t>(to), kBlock};
    ::ioctl(descriptor_, UFFDIO_WAKE, &range);
  }

  const int descriptor_;
  std::mutex mutex_;
  std::map<uintptr_t, std::shared_ptr<Region>> regions_;
  bool started_ = false;
};

/// Overwrites what was computed and frees the memory.
void release(const Region& region) {
  ::mprotect(region.area.begin, region.area.size, PROT_READ | PROT_WRITE);
  for (size_t block = 0; block < region.computed.size(); ++block)
    if (region.computed[block]) ::explicit_bzero(region.area.begin + block * kBlock, kBlock);
  ::munmap(region.area.begin, region.area.size);
}

Result<Bytes> compute_all(const std::shared_ptr<Region>& region) {
  std::shared_ptr<const void> owner(region.get(), [region](const void*) { release(*region); });
  ::mprotect(region->area.begin, region->area.size, PROT_READ | PROT_WRITE);
  for (size_t block = 0; block < region->computed.size(); ++block) {
    region->computed[block] = true;
    if (!region->source->fill(block, {region->area.begin + block * kBlock, region->block_bytes(block)}))
      return fail(ErrorCode::io, "block ", block, " of the content cannot be computed");
  }
  ::mprotect(region->area.begin, region->area.size, PROT_READ);
  return Bytes{{region->area.begin, region->source->size()}, std::move(owner)};
}

}  // namespace

Result<Bytes> map_blocks(std::shared_ptr<const BlockSource> source, bool at_once) {
  const size_t size = source->size();
  if (size == 0) return Bytes{};
  const Area area = size > SIZE_MAX / 2 ? Area{} : map_area(rounded_up(size), PROT_READ);
  if (area.begin == nullptr) return fail(ErrorCode::out_of_budget, "no memory for ", size, " bytes of content");
  auto region = std::make_shared<Region>(area, std::move(source));
  Server* const server = at_once ? nullptr : Server::get();
  if (server == nullptr || !server->add(region)) return compute_all(region);
  std::shared_ptr<const void> owner(region.get(), [region, server, process = ::getpid()](const void*) {
    if (process != ::getpid()) return;
    server->remove(*region);
    release(*region);
  });
  return Bytes{{area.begin, size}, std::move(owner)};
}

bool maps_lazily() { return Server::get() != nullptr; }

size_t computed_bytes(const void* data) {
  Server* const server = Server::active();
  const auto region = server == nullptr ? nullptr : server->find(data, 1);
  if (region == nullptr) return 0;
  return kBlock * static_cast<size_t>(std::count(region->computed.begin(), region->computed.end(), true));
}

namespace lazy {

bool read_ahead(const void* data, size_t size) {
  Server* const server = Server::active();
  const auto region = server == nullptr || size == 0 ? nullptr : server->find(data, size);
  if (region == nullptr) return false;
  const auto first = static_cast<size_t>(static_cast<const std::byte*>(data) - region->area.begin);
  for (size_t block = first / kBlock; block <= (first + size - 1) / kBlock; ++block)
    if (!region->computed[block]) server->compute(*region, block);
  return true;
}

bool drop(const void* data, size_t size) {
  Server* const server = Server::active();
  const auto region = server == nullptr ? nullptr : server->find(data, size);
  if (region == nullptr) return false;
  const auto first = static_cast<size_t>(static_cast<const std::byte*>(data) - region->area.begin);
  // Only whole blocks, so that a flag tells whether all pages of its block are there.
  const size_t begin = rounded_up(first), end = (first + size) / kBlock * kBlock;
  if (begin >= end) return true;
  for (size_t block = begin / kBlock; block < end / kBlock; ++block) region->computed[block] = false;
  if (::madvise(region->area.begin + begin, end - begin, MADV_DONTNEED_LOCKED) != 0)
    ::madvise(region->area.begin + begin, end - begin, MADV_DONTNEED);
  return true;
}

}  // namespace lazy
}  // namespace moka
