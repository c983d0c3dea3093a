// SPDX-License-Identifier: Apache-2.0
#include "base/memory.h"

#include <malloc.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <limits>

namespace moka {

namespace {
constexpr size_t kLine = 64, kHugePage = size_t{2} << 20, kSmallestChunk = size_t{32} << 20,
                 kLargestChunk = size_t{512} << 20;

size_t round_up(size_t n, size_t to) { return (n + to - 1) / to * to; }

// A sanitizer detects reads past a piece only when each piece is its own allocation.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kOneAllocationEach = true;
#else
constexpr bool kOneAllocationEach = false;
#endif

/// allocate_large with more flags for the mapping.
std::shared_ptr<std::byte> map_large(size_t bytes, int flags) {
  if (bytes > std::numeric_limits<size_t>::max() - 2 * kHugePage) return nullptr;
  if (kOneAllocationEach || bytes < kHugePage) {
    void* p = std::aligned_alloc(kLine, round_up(std::max(bytes, kLine), kLine));
    if (p == nullptr) return nullptr;
    return {static_cast<std::byte*>(p), [](std::byte* q) { std::free(q); }};
  }
  // Mapped instead of allocated, because the heap would keep freed memory.
  const size_t size = round_up(bytes, kHugePage), mapped = size + kHugePage;
  void* m = ::mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
  if (m == MAP_FAILED) return nullptr;
  auto* const first = static_cast<std::byte*>(m);
  const size_t before = round_up(reinterpret_cast<uintptr_t>(first), kHugePage) - reinterpret_cast<uintptr_t>(first);
  if (before > 0) ::munmap(first, before);
  if (before < kHugePage) ::munmap(first + before + size, kHugePage - before);
  ::madvise(first + before, size, MADV_HUGEPAGE);
  return {first + before, [size](std::byte* q) { ::munmap(q, size); }};
}

constexpr size_t kOwnPages = size_t{256} << 10;  // size of pieces whose pages are freed before the others'

/// Frees the pages that lie entirely in [data, data + size).
void drop_whole_pages(std::byte* data, size_t size) {
  const auto page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  const auto first = reinterpret_cast<uintptr_t>(data);
  const uintptr_t begin = round_up(first, page), end = (first + size) / page * page;
  if (begin < end) ::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
}

}  // namespace

std::shared_ptr<std::byte> allocate_large(size_t bytes) { return map_large(bytes, 0); }

std::shared_ptr<std::byte> allocate_pages(size_t& bytes) {
  static const auto page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  if (bytes > std::numeric_limits<size_t>::max() - 2 * kHugePage) return nullptr;
  bytes = round_up(std::max<size_t>(bytes, 1), page);
  if (!kOneAllocationEach && bytes >= kHugePage) return allocate_large(bytes);
  void* p = std::aligned_alloc(page, bytes);
  return {static_cast<std::byte*>(p), [](std::byte* q) { std::free(q); }};
}

std::shared_ptr<std::byte> allocate_zeros(size_t bytes) {
  if (!kOneAllocationEach && bytes >= kHugePage) return allocate_large(bytes);  // new pages are zeros
  if (bytes > std::numeric_limits<size_t>::max() - 2 * kLine) return nullptr;
  void* p = std::calloc(1, round_up(bytes + kLine, kLine));
  if (p == nullptr) return nullptr;
  const std::shared_ptr<std::byte> whole(static_cast<std::byte*>(p), [](std::byte* q) { std::free(q); });
  return {whole, reinterpret_cast<std::byte*>(round_up(reinterpret_cast<uintptr_t>(p), kLine))};
}

void trim_heap() {
#if defined(__GLIBC__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  ::malloc_trim(0);
#endif
}

size_t heap_in_use() {
#if defined(__GLIBC__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  const struct mallinfo2 heap = ::mallinfo2();
  return heap.uordblks + heap.hblkhd;
#else
  return 0;
#endif
}

std::shared_ptr<std::byte> PiecePool::take(size_t bytes) {
  if (bytes > std::numeric_limits<size_t>::max() - 2 * kHugePage) return nullptr;
  const size_t needed = round_up(bytes + kLine, kLine);
  std::lock_guard lock(mutex_);
  if (kOneAllocationEach || needed > kLargestChunk) return allocate_large(needed);
  if (size_ - used_ < needed) {
    size_t size = round_up(std::max(needed, std::clamp(3 * total_, kSmallestChunk, kLargestChunk)), kHugePage);
    std::shared_ptr<std::byte> chunk = map_large(size, MAP_NORESERVE);
    if (chunk == nullptr) chunk = allocate_large(size = round_up(needed, kHugePage));  // addresses are limited
    if (chunk == nullptr) return nullptr;
    current_ = std::move(chunk);
    used_ = 0;
    size_ = size;
    total_ += size;
  }
  std::byte* const at = current_.get() + used_;
  used_ += needed;
  if (needed < kOwnPages) return {current_, at};
  return {at, [needed, chunk = current_](std::byte* piece) { drop_whole_pages(piece, needed); }};
}

}  // namespace moka
