#include "plan/packed_cache.h"

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/checksum.h"
#include "temporary_folder.h"

/// The file of packed constants, and the damage that it detects.
namespace moka::plan {
namespace {

namespace fs = std::filesystem;

class PackedCacheFile : public ::testing::Test {
 protected:
  static std::shared_ptr<const std::byte> bytes(std::string_view text) {
    auto all = std::make_shared<std::string>(text);
    return {all, reinterpret_cast<const std::byte*>(all->data())};
  }
  void plant(const std::string& scope = "scope") const {
    PackedCache cache(path_, scope, "model");
    cache.add("one", bytes("first"), 5);
    cache.add("two", bytes(std::string(1000, 'x')), 1000);
    EXPECT_TRUE(cache.save());
    EXPECT_FALSE(cache.save());
    EXPECT_EQ(cache.remark(), "");
  }
  static std::string found(PackedCache& cache, const std::string& key, size_t size) {
    const auto there = cache.find(key, size);
    return there ? std::string(reinterpret_cast<const char*>(there.get()), size) : std::string();
  }
  std::string text() const {
    std::ostringstream out;
    out << std::ifstream(path_, std::ios::binary).rdbuf();
    return out.str();
  }
  void write(const std::string& text) const { std::ofstream(path_, std::ios::binary | std::ios::trunc) << text; }

  test::TemporaryFolder folder_;
  std::string path_ = (folder_ / "below" / "model.packed").string();
};

TEST(Checksum, DependsOnEveryBitAndOnTheOrder) {
  std::string text(200, 'a');
  for (size_t i = 0; i < text.size(); i++) text[i] = static_cast<char>(i * 7);
  const auto sum = [](const std::string& s) { return checksum(std::as_bytes(std::span(s.data(), s.size()))); };
  const uint64_t whole = sum(text);
  for (size_t i = 0; i < text.size() * 8; i++) {
    std::string other = text;
    other[i / 8] = static_cast<char>(other[i / 8] ^ (1 << i % 8));
    EXPECT_NE(sum(other), whole) << i;
  }
  EXPECT_NE(sum(text.substr(0, 199)), whole);
  EXPECT_NE(sum(text + '\0'), whole);
  EXPECT_NE(sum(text.substr(64, 64) + text.substr(0, 64) + text.substr(128)), whole);
}

TEST_F(PackedCacheFile, GivesBackWhatWasAdded) {
  plant();
  PackedCache cache(path_, "scope", "model");
  EXPECT_EQ(found(cache, "one", 5), "first");
  EXPECT_EQ(found(cache, "two", 1000), std::string(1000, 'x'));
  EXPECT_EQ(reinterpret_cast<uintptr_t>(cache.find("two", 1000).get()) % 64, 0u);
  EXPECT_EQ(cache.find("two", 999), nullptr);
  EXPECT_EQ(cache.find("three", 5), nullptr);
  EXPECT_EQ(cache.found_bytes(), 1005u);
  EXPECT_FALSE(cache.save());
}

TEST_F(PackedCacheFile, KeepsWhatIsUsedAndWhatIsNew) {
  plant();
  PackedCache cache(path_, "scope", "model");
  const auto one = cache.find("one", 5);
  cache.add("three", bytes("third"), 5);
  EXPECT_TRUE(cache.save());
  EXPECT_EQ(std::memcmp(one.get(), "first", 5), 0);
  PackedCache again(path_, "scope", "model");
  EXPECT_EQ(found(again, "one", 5), "first");
  EXPECT_EQ(found(again, "three", 5), "third");
  EXPECT_EQ(again.find("two", 1000), nullptr);
}

TEST_F(PackedCacheFile, OfAnotherScopeIsReplaced) {
  plant("build 1");
  {
    PackedCache cache(path_, "build 2", "model");
    EXPECT_EQ(cache.find("one", 5), nullptr);
    EXPECT_EQ(cache.remark(), "");
    cache.add("one", bytes("other"), 5);
    EXPECT_TRUE(cache.save());
  }
  PackedCache cache(path_, "build 2", "model");
  EXPECT_EQ(found(cache, "one", 5), "other");
}

TEST_F(PackedCacheFile, OfAnyOtherLengthIsRefused) {
  plant();
  const std::string good = text();
  for (size_t n = 0; n < good.size(); n += n < 400 ? 1 : 37) {
    write(good.substr(0, n));
    PackedCache cache(path_, "scope", "model");
    ASSERT_EQ(cache.find("one", 5), nullptr) << n;
    EXPECT_TRUE(cache.remark().starts_with("'" + path_ + "' is made anew: ")) << n << cache.remark();
  }
  write(good + "x");
  EXPECT_EQ(PackedCache(path_, "scope", "model").find("one", 5), nullptr);
}

TEST_F(PackedCacheFile, OneChangedBitNeverChangesAnAnswer) {
  plant();
  const std::string good = text();
  size_t missed = 0;
  for (size_t i = 0; i < good.size(); i++) {
    std::string bad = good;
    bad[i] = static_cast<char>(bad[i] ^ (1 << i % 8));
    write(bad);
    PackedCache cache(path_, "scope", "model");
    const std::string one = found(cache, "one", 5), two = found(cache, "two", 1000);
    ASSERT_TRUE(one.empty() || one == "first") << i;
    ASSERT_TRUE(two.empty() || two == std::string(1000, 'x')) << i;
    const bool changed = one.empty() || two.empty();
    ASSERT_EQ(changed, !cache.remark().empty()) << i;
    missed += !changed;
  }
  EXPECT_LE(missed, 6 * 64u);  // missed bytes may only be padding
}

TEST_F(PackedCacheFile, DamagedIsMadeAnew) {
  plant();
  std::string bad = text();
  bad[bad.find("first")] = 'F';
  write(bad);
  {
    PackedCache cache(path_, "scope", "model");
    EXPECT_EQ(cache.find("one", 5), nullptr);
    EXPECT_EQ(cache.remark(), "'" + path_ + "' is made anew: some of it is damaged");
    EXPECT_NE(cache.find("two", 1000), nullptr);
    cache.add("one", bytes("first"), 5);
    EXPECT_TRUE(cache.save());
  }
  PackedCache cache(path_, "scope", "model");
  EXPECT_EQ(found(cache, "one", 5), "first");
  EXPECT_EQ(found(cache, "two", 1000), std::string(1000, 'x'));
  EXPECT_EQ(cache.remark(), "");
}

TEST_F(PackedCacheFile, ThatCannotBeWrittenIsARemark) {
  std::ofstream(folder_ / "plain") << "x";
  PackedCache cache((folder_ / "plain" / "model.packed").string(), "scope", "model");
  cache.add("one", bytes("first"), 5);
  EXPECT_FALSE(cache.save());
  EXPECT_TRUE(cache.remark().starts_with("packed weights are not kept: ")) << cache.remark();
}

}  // namespace
}  // namespace moka::plan
