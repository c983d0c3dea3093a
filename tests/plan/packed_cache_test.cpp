// SPDX-License-Identifier: Apache-2.0
#include "plan/packed_cache.h"

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <thread>
#include <vector>

#include "base/bytes.h"
#include "base/checksum.h"
#include "plan/packed_store.h"
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

/// Weights of the file times factors that a pass made have a name in the file of packed constants.
TEST_F(PackedCacheFile, NamesScaledWeights) {
  const std::string path = (folder_ / "weights").string();
  std::ofstream(path, std::ios::binary) << std::string(1024 * 32 * 4, 'w');
  const auto file = map_file(path);
  ASSERT_TRUE(file.ok());
  const auto place = place_in_file(file->data(), file->size());
  ASSERT_TRUE(place.has_value());
  const PackedCache cache(path_, "scope", "model", {{place->content, "weights"}});
  std::set<std::string> names;
  for (const auto& [entries, factor] : {std::pair<int64_t, double>{1024, 1}, {1024, 2}, {1, 2}, {1024, 2}}) {
    ir::Tensor scale = ir::Tensor::zeros(ir::DType::fp64, {entries}).value(),
               one = ir::Tensor::zeros(ir::DType::fp64, {1}).value();
    std::fill_n(scale.mut<double>().begin(), entries, factor);
    ir::Function f("main", ir::Opset::ios17);
    ir::Builder b(ops::table(), f.body());
    ir::Value* weight = *b.constant("w", *ir::Tensor::wrap(ir::DType::fp32, {1024, 32}, *file));
    const auto scaled =
        b.op("moka_scale_weights",
             {{"weight", weight}, {"input_scale", one}, {"output_scale", scale}, {"groups", 1}, {"transposed", false}});
    ASSERT_TRUE(scaled.ok()) << scaled.error().to_string();
    names.insert(lasting_identity_of(**scaled, cache));
  }
  EXPECT_EQ(names.size(), 3u);
  EXPECT_FALSE(names.contains(""));
}

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

/// Other functions of the model may need what this one does not use.
TEST_F(PackedCacheFile, KeepsWhatItHasAndWhatIsNew) {
  plant();
  PackedCache cache(path_, "scope", "model"), other(path_, "scope", "model");
  const auto one = cache.find("one", 5);
  cache.add("three", bytes("third"), 5);
  EXPECT_TRUE(cache.save());
  EXPECT_EQ(std::memcmp(one.get(), "first", 5), 0);
  other.add("four", bytes("4th"), 3);
  EXPECT_TRUE(other.save());
  PackedCache again(path_, "scope", "model");
  EXPECT_EQ(found(again, "one", 5), "first");
  EXPECT_EQ(found(again, "two", 1000), std::string(1000, 'x'));
  EXPECT_EQ(found(again, "three", 5), "third");
  EXPECT_EQ(found(again, "four", 3), "4th");
}

TEST_F(PackedCacheFile, LosesNothingThatOthersWriteAtTheSameTime) {
  plant();
  constexpr int kModels = 8;
  std::vector<std::thread> models;
  for (int i = 0; i < kModels; i++)
    models.emplace_back([this, i] {
      PackedCache cache(path_, "scope", "model");
      cache.add(std::to_string(i), bytes(std::string(100000, static_cast<char>('a' + i))), 100000);
      EXPECT_TRUE(cache.save());
    });
  for (std::thread& m : models) m.join();
  PackedCache all(path_, "scope", "model");
  EXPECT_EQ(found(all, "one", 5), "first");
  for (int i = 0; i < kModels; i++)
    EXPECT_EQ(found(all, std::to_string(i), 100000), std::string(100000, static_cast<char>('a' + i)));
}

/// A damaged entry that this model does not use is not written again as if it were whole.
TEST_F(PackedCacheFile, DropsDamageThatNobodyHasNoticed) {
  plant();
  std::string bad = text();
  bad[bad.find("first")] = 'F';
  write(bad);
  {
    PackedCache cache(path_, "scope", "model");
    cache.add("three", bytes("third"), 5);
    EXPECT_TRUE(cache.save());
  }
  PackedCache again(path_, "scope", "model");
  EXPECT_EQ(again.find("one", 5), nullptr);
  EXPECT_EQ(again.remark(), "");
  EXPECT_EQ(found(again, "two", 1000), std::string(1000, 'x'));
  EXPECT_EQ(found(again, "three", 5), "third");
}

/// What another model of the process holds may be in the file already.
TEST_F(PackedCacheFile, WritesNothingThatTheFileHas) {
  plant();
  PackedCache cache(path_, "scope", "model");
  cache.add("one", bytes("first"), 5);
  EXPECT_FALSE(cache.save());
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
