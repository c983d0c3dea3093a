// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernel_cache.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "temporary_folder.h"

/// The file of measured times: reading returns the written entries, and a damaged file does no harm.
namespace moka::runtime {
namespace {

namespace fs = std::filesystem;
using plan::Measurement;

const KernelMachine kMine{"A processor, AVX2", "0123"};

std::vector<Measurement> two() {
  return {{"conv x=fp32[1,2]", 1, "a.b", "a.c", {{"a.b", 1.5e-6}, {"a.c", 2e-3}}},
          {"linear \"x\" \n", 2, "a.c", "a.c", {{"a.c", 0}}}};
}

void expect_same(const std::vector<Measurement>& a, const std::vector<Measurement>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); i++) {
    EXPECT_EQ(a[i].shape, b[i].shape);
    EXPECT_EQ(a[i].threads, b[i].threads);
    EXPECT_EQ(a[i].chosen, b[i].chosen);
    EXPECT_EQ(a[i].by_rule, b[i].by_rule);
    ASSERT_EQ(a[i].times.size(), b[i].times.size());
    for (size_t k = 0; k < a[i].times.size(); k++) {
      EXPECT_EQ(a[i].times[k].kernel, b[i].times[k].kernel);
      EXPECT_NEAR(a[i].times[k].seconds, b[i].times[k].seconds, 1e-8);
    }
  }
}

std::vector<Measurement> parsed(std::string_view text, const KernelMachine& machine = kMine) {
  auto r = parse_kernel_cache(text, machine);
  EXPECT_TRUE(r.ok()) << r.error().to_string() << "\n" << text;
  return r.ok() ? *r : std::vector<Measurement>{};
}

TEST(KernelCache, WhatIsWrittenIsRead) { expect_same(parsed(merged_kernel_cache("", kMine, two())), two()); }

TEST(KernelCache, NewEntriesReplaceThoseOfTheSameShapeAndThreads) {
  const std::string before = merged_kernel_cache("", kMine, two());
  std::vector<Measurement> more = two();
  more.resize(1);
  more[0].chosen = "a.c";
  more.push_back(more[0]);
  more[1].threads = 4;
  const auto after = parsed(merged_kernel_cache(before, kMine, more));
  expect_same(after, {two()[1], more[0], more[1]});
}

TEST(KernelCache, OtherProcessorsStayAndOtherBuildsGo) {
  const KernelMachine other{"Another processor", "0123"}, newer{kMine.processor, "4567"};
  std::string text = merged_kernel_cache("", kMine, two());
  text = merged_kernel_cache(text, other, std::vector{two()[0]});
  expect_same(parsed(text), two());
  EXPECT_EQ(parsed(text, other).size(), 1u);
  int others = 0;
  auto none = parse_kernel_cache(text, newer, &others);
  ASSERT_TRUE(none.ok());
  EXPECT_TRUE(none->empty());
  EXPECT_EQ(others, 2);
  text = merged_kernel_cache(text, newer, std::vector{two()[1]});
  EXPECT_EQ(parsed(text, newer).size(), 1u);
  EXPECT_EQ(parsed(text, other).size(), 1u);
  EXPECT_TRUE(parsed(text).empty());
}

TEST(KernelCache, EveryCutIsAnErrorOrTheWhole) {
  const std::string text = merged_kernel_cache("", kMine, two());
  for (size_t n = 0; n + 2 < text.size(); n++) {
    auto r = parse_kernel_cache(std::string_view(text).substr(0, n), kMine);
    ASSERT_FALSE(r.ok()) << n;
    EXPECT_EQ(r.error().code(), ErrorCode::malformed);
    expect_same(parsed(merged_kernel_cache(std::string_view(text).substr(0, n), kMine, two())), two());
  }
}

TEST(KernelCache, DamagedBytesNeverCrash) {
  const std::string text = merged_kernel_cache("", kMine, two());
  int refused = 0;
  for (size_t at = 0; at < text.size(); at++)
    for (char c : {'\0', '"', '{', ']', '9', '-', '\x80', 'e'}) {
      std::string damaged = text;
      damaged[at] = c;
      refused += !parse_kernel_cache(damaged, kMine).ok();
      expect_same(parsed(merged_kernel_cache(damaged, {"p", "b"}, two()), {"p", "b"}), two());
    }
  EXPECT_GT(refused, 100);
}

TEST(KernelCache, HostileValues) {
  auto file = [](std::string_view entry) {
    return cat(R"({"format": "moka kernel times", "version": 1, "machines": [{"processor": "A processor, AVX2", )",
               R"("build": "0123", "entries": [)", entry, "]}]}");
  };
  const std::string good = R"({"shape": "s", "threads": 1, "kernel": "k", "rule": "k", "microseconds": {"k": 1}})";
  EXPECT_EQ(parsed(file(good)).size(), 1u);
  for (auto [from, to] : std::vector<std::pair<std::string, std::string>>{{"\"s\"", "5"},
                                                                          {"\"s\"", "null"},
                                                                          {"\"k\", \"rule\"", "[], \"rule\""},
                                                                          {"1,", "0,"},
                                                                          {"1,", "-3,"},
                                                                          {"1,", "1e300,"},
                                                                          {"1,", "1.5,"},
                                                                          {"1,", "99999999999999999999,"},
                                                                          {"1,", "\"1\","},
                                                                          {": 1}", ": -1}"},
                                                                          {": 1}", ": 1e999}"},
                                                                          {": 1}", ": true}"},
                                                                          {"{\"k\": 1}", "[1]"},
                                                                          {"\"threads\"", "\"thread\""}}) {
    std::string entry = good;
    entry.replace(entry.find(from), from.size(), to);
    EXPECT_FALSE(parse_kernel_cache(file(entry), kMine).ok()) << entry;
  }
  for (std::string_view entry : {"5", "[]", "\"text\"", "null"})
    EXPECT_FALSE(parse_kernel_cache(file(entry), kMine).ok());
  for (std::string_view text :
       {"", "[]", "null", "{}", R"({"format": "other", "version": 1, "machines": []})",
        R"({"format": "moka kernel times", "version": 2, "machines": []})",
        R"({"format": "moka kernel times", "version": "1", "machines": []})",
        R"({"format": "moka kernel times", "version": 1, "machines": {}})",
        R"({"format": "moka kernel times", "version": 1, "machines": [1]})",
        R"({"format": "moka kernel times", "version": 1, "machines": [{"processor": 1, "build": "0123"}]})"})
    EXPECT_FALSE(parse_kernel_cache(text, kMine).ok()) << text;
  EXPECT_FALSE(parse_kernel_cache(std::string(1 << 20, '['), kMine).ok());
  EXPECT_FALSE(parse_kernel_cache(file(std::string(1000, '[') + std::string(1000, ']')), kMine).ok());
}

TEST(KernelCache, FilesAreReplacedAtOnce) {
  const test::TemporaryFolder folder;
  const std::string path = folder / "a/b/kernels.json";
  EXPECT_EQ(read_kernel_cache(path).error().code(), ErrorCode::not_found);
  ASSERT_TRUE(update_kernel_cache(path, kMine, two()).ok());
  expect_same(parsed(*read_kernel_cache(path)), two());
  ASSERT_TRUE(update_kernel_cache(path, kMine, two()).ok());
  EXPECT_EQ(std::distance(fs::directory_iterator(fs::path(path).parent_path()), fs::directory_iterator{}), 1);
}

TEST(KernelCache, WhatIsNoFile) {
  const test::TemporaryFolder folder;
  EXPECT_EQ(read_kernel_cache(folder / ".").error().code(), ErrorCode::io);
  ASSERT_EQ(mkfifo((folder / "pipe").c_str(), 0600), 0);
  EXPECT_EQ(read_kernel_cache(folder / "pipe").error().code(), ErrorCode::io);
  EXPECT_EQ(read_kernel_cache("/dev/zero").error().code(), ErrorCode::io);
  const std::string large = folder / "large";
  std::ofstream(large) << "{";
  fs::resize_file(large, size_t{1} << 30);
  EXPECT_EQ(read_kernel_cache(large).error().code(), ErrorCode::malformed);
  std::ofstream(folder / "plain") << "x";
  const Status status = update_kernel_cache(folder / "plain/kernels.json", kMine, two());
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code(), ErrorCode::io);
  EXPECT_EQ(std::distance(fs::directory_iterator(folder.path()), fs::directory_iterator{}), 3);
}

TEST(KernelCache, TheUsersOwnFile) {
  const char* const before = std::getenv("XDG_CACHE_HOME");
  const std::string kept = before == nullptr ? "" : before;
  setenv("XDG_CACHE_HOME", "/somewhere", 1);
  EXPECT_EQ(*default_kernel_cache(), "/somewhere/moka/kernels.json");
  setenv("XDG_CACHE_HOME", "relative", 1);
  if (const char* home = std::getenv("HOME"); home != nullptr) {
    EXPECT_EQ(*default_kernel_cache(), std::string(home) + "/.cache/moka/kernels.json");
  }
  before == nullptr ? unsetenv("XDG_CACHE_HOME") : setenv("XDG_CACHE_HOME", kept.c_str(), 1);
}

}  // namespace
}  // namespace moka::runtime
