// SPDX-License-Identifier: Apache-2.0
#include "base/memory.h"

#include <gtest/gtest.h>
#include <malloc.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <thread>
#include <vector>

#include "base/bytes.h"

namespace moka {
namespace {

TEST(Memory, PiecesAreAlignedAndApart) {
  PiecePool pool;
  std::vector<std::shared_ptr<std::byte>> pieces;
  std::vector<size_t> sizes = {0, 1, 63, 64, 65, 5000, size_t{3} << 20, 7, size_t{40} << 20, 100};
  for (size_t size : sizes) {
    auto p = pool.take(size);
    ASSERT_NE(p, nullptr);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(p.get()) % 64, 0u);
    std::memset(p.get(), static_cast<int>(pieces.size() + 1), size + 64);
    pieces.push_back(std::move(p));
  }
  for (size_t i = 0; i < sizes.size(); i++) {
    for (size_t at : {size_t{0}, sizes[i] / 2, sizes[i] + 63})
      EXPECT_EQ(static_cast<size_t>(pieces[i].get()[at]), i + 1) << "piece " << i << ", byte " << at;
  }
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
/// A small piece that is still used does not keep the memory of a large one.
TEST(Memory, PagesOfALargePieceAreFreedWithIt) {
  constexpr size_t kBytes = size_t{8} << 20;
  PiecePool pool;
  const auto small = pool.take(100);
  auto large = pool.take(kBytes), other = pool.take(kBytes);
  std::memset(small.get(), 1, 100);
  std::memset(large.get(), 2, kBytes);
  std::memset(other.get(), 3, kBytes);
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  const auto first = (reinterpret_cast<uintptr_t>(large.get()) + page - 1) / page * page;
  const auto resident = [&] {
    std::vector<unsigned char> pages(kBytes / page - 1);
    EXPECT_EQ(mincore(reinterpret_cast<void*>(first), pages.size() * page, pages.data()), 0);
    return std::count_if(pages.begin(), pages.end(), [](unsigned char p) { return (p & 1) != 0; });
  };
  EXPECT_EQ(static_cast<size_t>(resident()), kBytes / page - 1);
  large.reset();
  EXPECT_EQ(resident(), 0);
  EXPECT_EQ(small.get()[99], std::byte{1});
  EXPECT_EQ(other.get()[0], std::byte{3});
  EXPECT_EQ(other.get()[kBytes - 1], std::byte{3});
}
#endif

TEST(Memory, ZerosAreAlignedAndZero) {
  for (size_t bytes : {size_t{0}, size_t{1}, size_t{1000}, size_t{3} << 20}) {
    for (int time = 0; time < 2; time++) {  // the second time in memory that was used
      const std::shared_ptr<std::byte> p = allocate_zeros(bytes);
      ASSERT_NE(p, nullptr);
      EXPECT_EQ(reinterpret_cast<uintptr_t>(p.get()) % 64, 0u);
      for (size_t i = 0; i < bytes; i++) ASSERT_EQ(p.get()[i], std::byte{0}) << "byte " << i << " of " << bytes;
      std::memset(p.get(), 1, bytes);
    }
  }
  EXPECT_EQ(allocate_zeros(SIZE_MAX), nullptr);
}

#if defined(__GLIBC__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
/// A large block that the heap maps and frees makes it keep all later blocks of its size.
TEST(Memory, LargeZerosLeaveTheHeapAlone) {
  allocate_zeros(size_t{30} << 20);
  const size_t before = mallinfo2().hblks;
  void* volatile p = std::malloc(size_t{29} << 20);  // volatile, or the compiler drops it
  EXPECT_EQ(mallinfo2().hblks, before + 1);          // mapped
  std::free(p);
}
#endif

TEST(Memory, PiecesOutliveTheirPool) {
  std::shared_ptr<std::byte> p;
  {
    PiecePool pool;
    p = pool.take(1000);
    pool.take(1000);
  }
  std::memset(p.get(), 5, 1000);
  EXPECT_EQ(static_cast<int>(p.get()[999]), 5);
}

TEST(Memory, ThreadsShareAPool) {
  PiecePool pool;
  std::vector<std::thread> threads;
  std::vector<int> wrong(4);
  for (size_t t = 0; t < 4; t++)
    threads.emplace_back([&, t] {
      std::vector<std::shared_ptr<std::byte>> mine;
      for (size_t i = 0; i < 200; i++) {
        mine.push_back(pool.take(i * 37));
        std::memset(mine.back().get(), static_cast<int>(t), i * 37);
      }
      for (size_t i = 0; i < 200; i++)
        for (size_t k = 0; k < i * 37; k++) wrong[t] += static_cast<size_t>(mine[i].get()[k]) != t;
    });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(wrong, (std::vector<int>(4)));
}

TEST(Memory, WhatCannotBeHadIsNull) {
  EXPECT_EQ(allocate_large(SIZE_MAX), nullptr);
  PiecePool pool;
  EXPECT_EQ(pool.take(SIZE_MAX - 10), nullptr);
  EXPECT_NE(pool.take(10), nullptr);
}

size_t resident_pages(const void* data, size_t size) {
  const auto page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  std::ifstream maps("/proc/self/smaps");
  size_t rss = 0;
  bool inside = false;
  for (std::string line; std::getline(maps, line);) {
    uintptr_t first = 0, last = 0;
    if (std::sscanf(line.c_str(), "%zx-%zx ", &first, &last) == 2)
      inside = reinterpret_cast<uintptr_t>(data) < last && first < reinterpret_cast<uintptr_t>(data) + size;
    size_t kib = 0;
    if (inside && std::sscanf(line.c_str(), "Rss: %zu kB", &kib) == 1) rss += kib;
  }
  return rss * 1024 / page;
}

TEST(Memory, PagesOfFilesComeAndGo) {
  const auto page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  const std::string path = testing::TempDir() + "moka_memory_test";
  std::vector<uint8_t> content(64 * page + 100);
  for (size_t i = 0; i < content.size(); i++) content[i] = static_cast<uint8_t>(i * 7 + i / page);
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(content.data()), static_cast<std::streamsize>(content.size()));
  {
    auto file = map_file(path);
    ASSERT_TRUE(file.ok());
    const std::byte* data = file->data();
    read_ahead(data, file->size());
    EXPECT_EQ(resident_pages(data, file->size()), 65u);
    drop_pages(data + page / 2, 10 * page);  // a page at both ends is only partly in the range
    EXPECT_EQ(resident_pages(data, file->size()), 65u - 9u);
    drop_pages(data, file->size());
    EXPECT_EQ(resident_pages(data, file->size()), 1u);  // the last one is not whole
    EXPECT_EQ(std::memcmp(data, content.data(), content.size()), 0);
  }
  ::unlink(path.c_str());
}

TEST(Memory, OtherMemoryIsNotDropped) {
  const auto page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  std::vector<uint8_t> heap(64 * page, 3);
  drop_pages(heap.data(), heap.size());
  read_ahead(heap.data(), heap.size());
  EXPECT_EQ(heap, std::vector<uint8_t>(64 * page, 3));
  drop_pages(nullptr, SIZE_MAX);
  // A range that begins in a file and ends after it does not count as the file's.
  const std::string path = testing::TempDir() + "moka_memory_test_2";
  std::ofstream(path) << std::string(page, 'x');
  auto file = map_file(path);
  ASSERT_TRUE(file.ok());
  drop_pages(file->data(), 1000 * page);
  EXPECT_EQ(file->text(), std::string(page, 'x'));
  ::unlink(path.c_str());
}

}  // namespace
}  // namespace moka
