// SPDX-License-Identifier: Apache-2.0
#include "moka/cache.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "api/api_util.h"
#include "temporary_folder.h"

/// Tests for packed weights that loads save in a folder.
namespace moka::test {
namespace {

namespace fs = std::filesystem;

class Cache : public ::testing::Test {
 protected:
  Cache() {
    model_ = folder_ / "model.mlpackage";
    cache_ = (folder_ / "cache").string();
    fs::copy(fs::path(MOKA_GOLDEN) / "cached" / "model.mlpackage", model_, fs::copy_options::recursive);
  }
  ~Cache() override { unsetenv("MOKA_CACHE"); }

  Model load(const std::string& cache, int threads = 1) const {
    ModelConfiguration c;
    c.threads = threads;
    c.cache = cache;
    return Model::load(model_.string(), c);
  }
  /// The same model from other files, with which no model from `model_` shares its weights.
  static Model original() {
    ModelConfiguration c;
    c.threads = 1;
    c.cache = "off";
    return Model::load((fs::path(MOKA_GOLDEN) / "cached" / "model.mlpackage").string(), c);
  }
  /// Loads and drops the model. Returns the size of the weights that it packed.
  size_t packed_by_load(const std::string& cache) const { return load(cache).load_times().packed_bytes; }
  static std::string remark(const Model& model) {
    for (const PassRemark& r : model.compute_plan().remarks)
      if (r.pass == "cache") return r.text;
    return {};
  }
  static size_t cached(const Model& model) { return model.load_times().cached_bytes; }
  static std::string text(const std::string& path) {
    std::ostringstream out;
    out << std::ifstream(path, std::ios::binary).rdbuf();
    return out.str();
  }
  static void write(const std::string& path, const std::string& text) {
    std::ofstream(path, std::ios::binary | std::ios::trunc) << text;
  }

  TemporaryFolder folder_;
  fs::path model_;
  std::string cache_;
};

TEST_F(Cache, LaterLoadsUseWhatTheFirstPacked) {
  const Model plain = original();
  EXPECT_EQ(cached(plain), 0u);
  size_t packed = 0;
  {
    const Model first = load(cache_);
    EXPECT_EQ(cached(first), 0u);
    packed = first.load_times().packed_bytes;
    EXPECT_GT(packed, 0u);
    expect_same_bits(plain, first);
  }
  const Model second = load(cache_);
  EXPECT_EQ(cached(second), packed);
  EXPECT_EQ(second.load_times().packed_bytes, 0u);
  EXPECT_EQ(second.compute_plan().cached_bytes, cached(second));
  EXPECT_EQ(remark(second), "");
  expect_same_bits(plain, second);
}

TEST_F(Cache, NothingIsReadOrWrittenUnlessAskedFor) {
  EXPECT_EQ(load("").cache_file(), "");
  EXPECT_FALSE(fs::exists(cache_));
  setenv("MOKA_CACHE", cache_.c_str(), 1);
  EXPECT_EQ(load("off").cache_file(), "");
  EXPECT_FALSE(fs::exists(cache_));
  EXPECT_TRUE(fs::exists(load("").cache_file()));
  EXPECT_GT(cached(load("")), 0u);
  setenv("MOKA_CACHE", "off", 1);
  EXPECT_EQ(cached(load("")), 0u);
}

TEST_F(Cache, DamageNeverFailsALoad) {
  const Model plain = original();
  const std::string file = load(cache_).cache_file(), good = text(file);
  const size_t all = cached(load(cache_));
  std::string first = good, last = good;
  first[100] = static_cast<char>(first[100] ^ 1);
  const size_t at = good.find_last_not_of('\0');
  last[at] = static_cast<char>(last[at] ^ 0x40);
  for (const std::string& bad : {good.substr(0, good.size() / 2), first, last, std::string(1000, '\0'), good + "x"}) {
    write(file, bad);
    {
      const Model model = load(cache_);
      EXPECT_LT(cached(model), all);
      EXPECT_TRUE(remark(model).starts_with("'" + file + "' is made anew: ")) << remark(model);
      expect_same_bits(plain, model);
    }
    const Model after = load(cache_);
    EXPECT_EQ(cached(after), all);
    expect_same_bits(plain, after);
  }
}

TEST_F(Cache, AChangedModelIsPackedAnew) {
  load(cache_);
  const fs::path weights = model_ / "Data" / "com.apple.CoreML" / "weights" / "weight.bin";
  ASSERT_TRUE(fs::exists(weights));
  const auto time = fs::last_write_time(weights);
  std::string all = text(weights.string());
  for (size_t i = all.size() / 2; i < all.size() / 2 + 2000; i += 2) all[i] = static_cast<char>(all[i] ^ 0x10);
  write(weights.string(), all);
  fs::last_write_time(weights, time);
  fs::copy(model_, folder_ / "copy.mlpackage", fs::copy_options::recursive);
  ModelConfiguration c;
  c.threads = 1;
  const Model plain = Model::load((folder_ / "copy.mlpackage").string(), c);
  {
    const Model changed = load(cache_);
    EXPECT_EQ(cached(changed), 0u);
    expect_same_bits(plain, changed);
  }
  expect_same_bits(plain, load(cache_));
  EXPECT_GT(cached(load(cache_)), 0u);
}

TEST_F(Cache, ServesCopiesOfTheModelWhereverTheyAre) {
  const Model first = load(cache_);
  const fs::path moved = folder_ / "elsewhere";
  fs::create_directories(moved);
  fs::copy(model_, moved / "renamed.mlpackage", fs::copy_options::recursive);
  fs::copy(cache_, moved / "cache", fs::copy_options::recursive);
  ModelConfiguration c;
  c.threads = 1;
  c.cache = (moved / "cache").string();
  for (int loads = 0; loads < 2; loads++) {
    const Model copy = Model::load((moved / "renamed.mlpackage").string(), c);
    EXPECT_EQ(cached(copy), first.load_times().packed_bytes);
    EXPECT_EQ(copy.load_times().packed_bytes, 0u);
    expect_same_bits(first, copy);
  }
  EXPECT_EQ(cached_models(c.cache).size(), 1u);
}

TEST_F(Cache, DamagedNotesAboutFilesAreMadeAnew) {
  const Model plain = original();
  const size_t packed = packed_by_load(cache_);
  for (const fs::directory_entry& e : fs::directory_iterator(cache_)) {
    if (e.path().extension() != ".content") continue;
    const std::string good = text(e.path().string());
    for (const std::string& bad :
         {std::string(), good.substr(0, good.size() / 2), std::string("x"), good + "x\n", std::string(100, '\0')}) {
      write(e.path().string(), bad);
      const Model model = load(cache_);
      EXPECT_EQ(cached(model), packed);
      expect_same_bits(plain, model);
    }
  }
}

TEST_F(Cache, HasAFileForEachConfiguration) {
  const std::string one = load(cache_).cache_file(), two = load(cache_, 2).cache_file();
  EXPECT_NE(one, two);
  EXPECT_EQ(cached_models(cache_).size(), 2u);
}

TEST_F(Cache, ThatCannotBeWrittenIsARemark) {
  write((folder_ / "plain").string(), "x");
  const Model model = load((folder_ / "plain" / "below").string());
  EXPECT_TRUE(remark(model).starts_with("packed weights are not kept: ")) << remark(model);
  expect_same_bits(load("off"), model);
}

TEST_F(Cache, IsListedAndCleared) {
  EXPECT_TRUE(cached_models(cache_).empty());
  const Model model = load(cache_);
  write(cache_ + "/damaged.packed", "\nMOKPACK and no more");
  write(cache_ + "/other.txt", "x");
  write(cache_ + "/other.packed", "x");
  const std::vector<CachedModel> all = cached_models(cache_);
  ASSERT_EQ(all.size(), 2u);
  EXPECT_FALSE(all[0].usable);
  EXPECT_TRUE(all[1].usable);
  EXPECT_EQ(all[1].file, model.cache_file());
  EXPECT_EQ(all[1].model, fs::canonical(model_).string());
  EXPECT_EQ(all[1].bytes, fs::file_size(model.cache_file()));
  const Model mapped = load(cache_);
  EXPECT_EQ(clear_cache(cache_), 2u);
  EXPECT_TRUE(cached_models(cache_).empty());
  EXPECT_TRUE(fs::exists(cache_ + "/other.txt") && fs::exists(cache_ + "/other.packed"));
  expect_same_bits(model, mapped);
}

TEST_F(Cache, StaysBelowItsLimit) {
  load(cache_);
  fs::file_time_type time = fs::file_time_type::clock::now() - std::chrono::hours(100);
  for (const char* name : {"oldest", "older", "newest"}) {
    const fs::path file = fs::path(cache_) / (std::string(name) + ".packed");
    write(file.string(), "");
    fs::resize_file(file, uintmax_t{4} << 30);  // sparse
    fs::last_write_time(file, time += std::chrono::hours(1));
  }
  const Model model = load(cache_, 2);
  EXPECT_FALSE(fs::exists(fs::path(cache_) / "oldest.packed"));
  EXPECT_FALSE(fs::exists(fs::path(cache_) / "older.packed"));
  EXPECT_TRUE(fs::exists(fs::path(cache_) / "newest.packed"));
  EXPECT_TRUE(fs::exists(model.cache_file()));
}

TEST_F(Cache, WhatKilledProcessesLeftIsRemoved) {
  fs::create_directory(cache_);
  const fs::path left = fs::path(cache_) / "a.packed.unfinished-0123456789abcdef",
                 writing = fs::path(cache_) / "b.packed.unfinished-0123456789abcdef",
                 other = fs::path(cache_) / "c.txt.unfinished-0123456789abcdef";
  for (const fs::path& file : {left, writing, other}) write(file.string(), "half");
  fs::last_write_time(left, fs::file_time_type::clock::now() - std::chrono::hours(2));
  EXPECT_TRUE(cached_models(cache_).empty());
  load(cache_);
  EXPECT_FALSE(fs::exists(left));
  EXPECT_TRUE(fs::exists(writing));
  EXPECT_EQ(clear_cache(cache_), 1u);
  EXPECT_FALSE(fs::exists(writing));
  EXPECT_TRUE(fs::exists(other));
}

TEST(CacheFolder, IsTheUsersOwnByDefault) {
  const char* before = std::getenv("XDG_CACHE_HOME");
  const std::string kept = before != nullptr ? before : "";
  setenv("XDG_CACHE_HOME", "/somewhere", 1);
  EXPECT_EQ(cache_folder("default"), "/somewhere/moka/packed");
  EXPECT_EQ(cache_folder("/else"), "/else");
  EXPECT_EQ(cache_folder("off"), "");
  EXPECT_EQ(cache_folder(""), "");
  if (before != nullptr)
    setenv("XDG_CACHE_HOME", kept.c_str(), 1);
  else
    unsetenv("XDG_CACHE_HOME");
}

}  // namespace
}  // namespace moka::test
