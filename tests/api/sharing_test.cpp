// SPDX-License-Identifier: Apache-2.0
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <optional>
#include <thread>
#include <vector>

#include "api/api_util.h"
#include "moka/cache.h"
#include "moka/program.h"
#include "temporary_folder.h"

/// Models that are loaded from one file share the weights that they pack and compute.
namespace moka::test {
namespace {

namespace fs = std::filesystem;

/// A package of four functions of x: `plain` and `positive` have one weight, `other` has another one, `table` adds a
/// transposed table.
class Sharing : public ::testing::Test {
 protected:
  static constexpr int64_t kMade = 512, kDepth = 1024, kRows = 8;
  static constexpr size_t kBytes = kMade * kDepth * sizeof(float);  // of one weight

  Sharing() { write(path_, 1); }

  /// Row i of the weights is i % 8 times `factor`, of `other` one more.
  static void write(const std::string& path, float factor) {
    MultiArray weight(DataType::float32, {kMade, kDepth}), more(DataType::float32, {kMade, kDepth}),
        table(DataType::float32, {kMade, kDepth});
    for (int64_t i = 0; i < weight.count(); i++) {
      const auto at = static_cast<size_t>(i);
      weight.as<float>()[at] = factor * static_cast<float>(i / kDepth % 8);
      more.as<float>()[at] = weight.as<float>()[at] + 1;
      table.as<float>()[at] = factor * static_cast<float>(i % kDepth);
    }
    ProgramBuilder b("ios18");
    const auto input = [&](const char* function, std::vector<int64_t> shape = {kRows, kDepth}) {
      b.function(function);
      return b.input("x", DataType::float32, shape);
    };
    b.output(b.op("linear", {{"x", input("plain")}, {"weight", weight}}, "y"));
    b.output(b.op("relu", {{"x", b.op("linear", {{"x", input("positive")}, {"weight", weight}})}}, "y"));
    b.output(b.op("linear", {{"x", input("other")}, {"weight", more}}, "y"));
    const auto x = input("table", {kDepth, kMade});
    const auto rows = b.op("transpose", {{"x", table}, {"perm", std::vector<int>{1, 0}}});
    b.output(b.op("add", {{"x", x}, {"y", rows}}, "y"));
    b.save(path);
  }
  static ModelConfiguration configured(const std::string& function) {
    ModelConfiguration c;
    c.function_name = function;
    c.pack_while_loading = true;
    return c;
  }
  Model load(const std::string& function) const { return Model::load(path_, configured(function)); }
  static size_t packed(const Model& m) { return m.load_times().packed_bytes; }
  static size_t shared(const Model& m) { return m.load_times().shared_bytes; }
  fs::path weights() const { return fs::path(path_) / "Data" / "com.apple.CoreML" / "weights" / "weight.bin"; }

  static Features input() { return {{"x", counted({kRows, kDepth}, 1)}}; }
  /// Checks the answer of a function of products.
  static void expect_products(const Model& model, float factor, float more = 0, bool positive = false) {
    const Features in = input();
    const MultiArray x = in.array("x"), y = model.predict(in).array("y");
    ASSERT_EQ(y.count(), kRows * kMade);
    for (int64_t r = 0; r < kRows; r++) {
      double sum = 0;
      for (int64_t k = 0; k < kDepth; k++) sum += x.at(r * kDepth + k);
      for (int64_t i = 0; i < kMade; i++) {
        const double product = sum * (factor * static_cast<double>(i % 8) + more);
        ASSERT_EQ(y.at(r * kMade + i), positive ? std::max(product, 0.0) : product) << r << " " << i;
      }
    }
  }

  TemporaryFolder folder_;
  std::string path_ = (folder_ / "model.mlpackage").string();
};

TEST_F(Sharing, FunctionsOfOneFilePackTheirWeightsOnce) {
  const Model plain = load("plain"), positive = load("positive"), again = load("plain"), other = load("other");
  EXPECT_GE(packed(plain), kBytes);
  EXPECT_EQ(shared(plain), 0u);
  for (const Model* m : {&positive, &again}) {
    EXPECT_EQ(packed(*m), 0u);
    EXPECT_EQ(shared(*m), packed(plain));
    const MemoryUse memory = m->compute_plan(input()).memory;
    EXPECT_EQ(memory.packed, 0u);
    EXPECT_EQ(memory.shared, packed(plain));
    EXPECT_EQ(memory.total(), memory.mapped + memory.constants + memory.arenas + memory.heap);
  }
  EXPECT_EQ(packed(other), packed(plain));
  EXPECT_EQ(shared(other), 0u);
  expect_products(plain, 1);
  expect_products(positive, 1, 0, true);
  expect_products(again, 1);
  expect_products(other, 1, 1);
}

/// By default predictions pack, so what one model has packed serves the first prediction of the next.
TEST_F(Sharing, WhatPredictionsPackIsShared) {
  ModelConfiguration c = configured("plain");
  c.pack_while_loading = false;
  const Model plain = Model::load(path_, c);
  EXPECT_EQ(packed(plain), 0u);
  const size_t bytes = plain.compute_plan(input()).packed_bytes;
  EXPECT_GE(bytes, kBytes);
  c.function_name = "positive";
  const Model positive = Model::load(path_, c);
  EXPECT_EQ(shared(positive), bytes);
  EXPECT_EQ(positive.compute_plan(input()).packed_bytes, 0u);
  expect_products(positive, 1, 0, true);
}

TEST_F(Sharing, EndsWithTheLastModel) {
  std::optional<Model> plain = load("plain"), positive = load("positive");
  const size_t bytes = packed(*plain);
  plain.reset();
  expect_products(*positive, 1, 0, true);
  EXPECT_EQ(shared(load("plain")), bytes);
  positive.reset();
  const Model anew = load("plain");
  EXPECT_EQ(packed(anew), bytes);
  EXPECT_EQ(shared(anew), 0u);
}

TEST_F(Sharing, ValuesComputedWhileLoadingExistOnce) {
  const Model first = load("table"), second = load("table");
  const Features in{{"x", MultiArray(DataType::float32, {kDepth, kMade})}};
  for (const Model* m : {&first, &second}) {
    const MultiArray y = m->predict(in).array("y");
    for (int64_t i = 0; i < y.count(); i += 1000) ASSERT_EQ(y.at(i), static_cast<double>(i / kMade));
  }
  EXPECT_EQ(first.compute_plan(in).memory.constants, kBytes);
  EXPECT_EQ(second.compute_plan(in).memory.constants, 0u);
  EXPECT_EQ(second.compute_plan(in).memory.shared, kBytes);
}

/// The file is written in place, with its old size and time of modification.
TEST_F(Sharing, AFileThatChangedIsPackedAnew) {
  const Model before = load("plain");
  write((folder_ / "next.mlpackage").string(), 2);
  const auto time = fs::last_write_time(weights());
  const std::string next = (folder_ / "next.mlpackage/Data/com.apple.CoreML/weights/weight.bin").string();
  ASSERT_EQ(fs::file_size(next), fs::file_size(weights()));
  std::ofstream(weights(), std::ios::binary | std::ios::trunc) << std::ifstream(next, std::ios::binary).rdbuf();
  fs::last_write_time(weights(), time);
  const Model after = load("positive");
  EXPECT_EQ(shared(after), 0u);
  expect_products(after, 2, 0, true);
  expect_products(before, 1);
}

TEST_F(Sharing, AModelThatTookThePlaceIsPackedAnew) {
  const Model before = load("plain");
  fs::remove_all(path_);
  write(path_, 3);
  const Model after = load("plain");
  EXPECT_EQ(shared(after), 0u);
  expect_products(after, 3);
  expect_products(before, 1);
}

TEST_F(Sharing, OtherFilesAndMemoryShareNothing) {
  const Model plain = load("plain");
  fs::copy(path_, folder_ / "copy.mlpackage", fs::copy_options::recursive);
  const Model copy = Model::load((folder_ / "copy.mlpackage").string(), configured("plain"));
  EXPECT_EQ(shared(copy), 0u);
  const auto bytes_of = [](const fs::path& file) {
    std::vector<std::byte> bytes(fs::file_size(file));
    std::ifstream(file, std::ios::binary)
        .read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    return bytes;
  };
  ModelAsset asset;
  asset.specification = bytes_of(weights().parent_path().parent_path() / "model.mlmodel");
  asset.blobs["weights/weight.bin"] = bytes_of(weights());
  const Model first = Model::load(asset, configured("plain")), second = Model::load(asset, configured("plain"));
  for (const Model* m : {&first, &second}) {
    EXPECT_EQ(packed(*m), packed(plain));
    EXPECT_EQ(shared(*m), 0u);
    expect_products(*m, 1);
  }
  EXPECT_EQ(shared(first.configured(configured("positive"))), packed(plain));
}

/// Other threads, passes, memory and devices give what they give alone, while a model with other forms is alive.
TEST_F(Sharing, OtherConfigurationsKeepTheirAnswers) {
  const Model usual = load("plain");
  ModelConfiguration one = configured("plain"), low = one, exact = one, plain = one, reference = one;
  one.threads = 1;
  low.low_memory = true;
  exact.precision = Precision::exact;
  plain.optimize = false;
  reference.device = "reference";
  for (const ModelConfiguration& c : {one, low, exact, plain, reference}) expect_products(Model::load(path_, c), 1);
  expect_products(usual, 1);
}

TEST_F(Sharing, ModelsThatLoadAtOncePackTheirWeightsOnce) {
  constexpr size_t kModels = 8;
  std::vector<std::optional<Model>> models(kModels);
  const auto each = [&](auto act) {
    std::vector<std::thread> threads;
    for (size_t i = 0; i < kModels; i++) threads.emplace_back([&, i] { act(i); });
    for (std::thread& t : threads) t.join();
  };
  const char* const functions[] = {"plain", "positive"};
  each([&](size_t i) { models[i] = load(functions[i % 2]); });
  size_t all = 0, most = 0;
  for (const auto& m : models) {
    all += packed(*m);
    most = std::max(most, packed(*m) + shared(*m));
  }
  EXPECT_EQ(all, most);
  each([&](size_t i) { expect_products(*models[i], 1, 0, i % 2 == 1); });
  each([&](size_t i) { models[i].reset(); });
  each([&](size_t i) { models[i] = load(functions[i % 2]); });
  for (size_t i = 0; i < kModels; i++) expect_products(*models[i], 1, 0, i % 2 == 1);
}

/// A thread that packs may not exist in a forked child, which therefore waits for no entry of its parent.
TEST_F(Sharing, AForkedChildPacksItsOwn) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "ThreadSanitizer ends a forked child that starts threads";
#endif
  const Model plain = load("plain");
  const size_t bytes = packed(plain);
  const pid_t child = fork();
  if (child == 0) {
    alarm(60);
    const Model own = load("plain"), again = load("positive");
    expect_products(own, 1);
    _exit(packed(own) == bytes && shared(again) == bytes && !HasFailure() ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(shared(load("positive")), bytes);
}

/// One file of packed weights serves all functions, each of which adds what it alone needs.
TEST_F(Sharing, FunctionsHaveOneCacheFile) {
  const std::string cache = (folder_ / "cache").string();
  const auto load_cached = [&](const std::string& function) {
    ModelConfiguration c = configured(function);
    c.cache = cache;
    return Model::load(path_, c);
  };
  const auto cached = [&](const std::string& function) { return load_cached(function).load_times().cached_bytes; };
  const size_t bytes = packed(load_cached("plain"));
  EXPECT_GE(bytes, kBytes);
  const std::string file = load_cached("plain").cache_file();
  const size_t size = fs::file_size(file);
  EXPECT_EQ(cached("positive"), bytes);
  EXPECT_EQ(fs::file_size(file), size);
  EXPECT_EQ(packed(load_cached("other")), bytes);
  EXPECT_GE(fs::file_size(file), size + kBytes);
  for (const char* function : {"plain", "positive", "other"}) EXPECT_EQ(cached(function), bytes) << function;
  EXPECT_EQ(cached_models(cache).size(), 1u);
}

/// What another model has packed without the cache is kept in it, and used from memory as long as it is there.
TEST_F(Sharing, ModelsShareWithAndWithoutTheCache) {
  ModelConfiguration c = configured("positive");
  c.cache = (folder_ / "cache").string();
  size_t bytes = 0;
  {
    const Model plain = load("plain");
    bytes = packed(plain);
    for (int loads = 0; loads < 2; loads++) {
      const Model positive = Model::load(path_, c);
      EXPECT_EQ(shared(positive), bytes);
      EXPECT_EQ(positive.load_times().cached_bytes, 0u);
    }
  }
  const Model positive = Model::load(path_, c);
  EXPECT_EQ(positive.load_times().cached_bytes, bytes);
  EXPECT_EQ(shared(load("plain")), bytes);
  expect_products(positive, 1, 0, true);
}

}  // namespace
}  // namespace moka::test
