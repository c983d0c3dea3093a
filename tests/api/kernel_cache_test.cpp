// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "api/api_util.h"
#include "temporary_folder.h"

/// Kernels chosen by measured times through the interface: files, the environment, pins.
namespace moka::test {
namespace {

namespace fs = std::filesystem;

constexpr const char* kConv = R"(program(1.3)
{
    func main<ios18>(tensor<fp32, [1, 32, 12, 12]> x, tensor<fp32, [32, 32, 3, 3]> w) {
        tensor<fp32, [1, 32, 12, 12]> y = relu(x = x)[name = string("y")];
        tensor<fp32, [1, 32, 12, 12]> z = conv(x = y, weight = w, pad_type = string("same"), strides = tensor<int32, [2]>([1, 1]))[name = string("z")];
    } -> (z);
}
)";

class KernelCacheFile : public ::testing::Test {
 protected:
  KernelCacheFile() { path_ = (folder_ / "kernels.json").string(); }
  ~KernelCacheFile() override { unsetenv("MOKA_KERNEL_CACHE"); }

  Model load(const std::string& cache, MeasureKernels measure = MeasureKernels::no,
             std::map<std::string, std::string> pins = {}) const {
    ModelConfiguration c;
    c.threads = 1;
    c.kernel_cache = cache;
    c.measure_kernels = measure;
    c.pinned_kernels = std::move(pins);
    Model model = Model::from_mil(kConv, c);
    // Other processes may have disturbed the measurement.
    for (int again = 0; again < 20 && conv(model).chosen_by == "disturbed"; again++) model = Model::from_mil(kConv, c);
    return model;
  }
  static PlannedOperation conv(const Model& model) {
    for (const PlannedOperation& o : model.compute_plan().operations)
      if (o.name == "z") return o;
    ADD_FAILURE() << "no conv in the plan";
    return {};
  }
  static std::string remark(const Model& model) {
    for (const PassRemark& r : model.compute_plan().remarks)
      if (r.pass == "kernel_cache") return r.text;
    return {};
  }
  std::string text() const {
    std::ostringstream out;
    out << std::ifstream(path_).rdbuf();
    return out.str();
  }
  void write(const std::string& text) const { std::ofstream(path_) << text; }
  /// A file with times for the convolution in which `kernel` was chosen.
  void plant(const std::string& kernel) const {
    const std::string by_rule = conv(load(path_, MeasureKernels::all)).kernel;
    std::string all = text();
    const std::string before = "\"kernel\":\"" + by_rule + "\"";
    ASSERT_NE(all.find(before), std::string::npos) << all;
    all.replace(all.find(before), before.size(), "\"kernel\":\"" + kernel + "\"");
    write(all);
  }
  /// The name of a kernel other than the given one that can run the convolution.
  static std::string other_than(const PlannedOperation& o) {
    for (const KernelTime& t : o.candidates)
      if (t.kernel != o.kernel) return t.kernel;
    ADD_FAILURE() << "one candidate";
    return {};
  }

  TemporaryFolder folder_;
  std::string path_;
};

TEST_F(KernelCacheFile, MeasuresAndRemembers) {
  const Model model = load(path_, MeasureKernels::missing);
  EXPECT_EQ(model.kernel_cache_file(), path_);
  const PlannedOperation o = conv(model);
  EXPECT_EQ(o.chosen_by, "measured");
  EXPECT_GE(o.candidates.size(), 2u);
  EXPECT_FALSE(o.shape.empty());
  const Model again = load(path_, MeasureKernels::missing);
  EXPECT_EQ(conv(again).chosen_by, "cache");
  EXPECT_EQ(conv(again).kernel, o.kernel);
  EXPECT_EQ(conv(load(path_)).chosen_by, "cache");
  EXPECT_EQ(conv(load(path_, MeasureKernels::all)).chosen_by, "measured");
  EXPECT_EQ(conv(load("off")).chosen_by, "rule");
  EXPECT_EQ(remark(again), "");
}

TEST_F(KernelCacheFile, DecidesThePlanAndTheBits) {
  const PlannedOperation measured = conv(load(path_, MeasureKernels::missing));
  const std::string other = other_than(measured);
  plant(other);
  const Model a = load(path_), b = load(path_);
  EXPECT_EQ(conv(a).kernel, other);
  EXPECT_EQ(conv(b).kernel, other);
  const Features inputs = random_inputs(a.function(), 3);
  const MultiArray x = a.predict(inputs).array("z"), y = b.predict(inputs).array("z");
  ASSERT_EQ(x.count(), y.count());
  EXPECT_EQ(std::memcmp(x.data(), y.data(), static_cast<size_t>(x.count()) * sizeof(float)), 0);
  const MultiArray plain = load("off").predict(inputs).array("z");
  for (int64_t i = 0; i < x.count(); i++) ASSERT_NEAR(x.at(i), plain.at(i), 1e-4);
}

TEST_F(KernelCacheFile, IsReadOnlyWhenAskedFor) {
  const PlannedOperation measured = conv(load(path_, MeasureKernels::missing));
  EXPECT_EQ(conv(load("")).chosen_by, "rule");
  EXPECT_EQ(load("").kernel_cache_file(), "");
  setenv("MOKA_KERNEL_CACHE", path_.c_str(), 1);
  EXPECT_EQ(conv(load("")).chosen_by, "cache");
  EXPECT_EQ(conv(load("off")).chosen_by, "rule");
  setenv("MOKA_KERNEL_CACHE", "off", 1);
  EXPECT_EQ(conv(load("")).chosen_by, "rule");
}

TEST_F(KernelCacheFile, OfAnotherProcessorOrBuildIsNotUsed) {
  conv(load(path_, MeasureKernels::missing));
  const std::string good = text();
  for (const char* key : {"\"processor\": \"", "\"build\": \""}) {
    std::string other = good;
    other.insert(other.find(key) + std::strlen(key), "not ");
    write(other);
    const Model model = load(path_);
    EXPECT_EQ(conv(model).chosen_by, "rule") << key;
    EXPECT_EQ(remark(model),
              "kernel cache '" + path_ + "' is not used: it was measured on another processor or with another build");
  }
}

TEST_F(KernelCacheFile, DamageNeverFailsALoad) {
  conv(load(path_, MeasureKernels::missing));
  const std::string good = text();
  for (const std::string& bad : {std::string(), good.substr(0, good.size() / 2), std::string("\xff\xfe\0\1", 4),
                                 std::string(100'000, '['), std::string("{\"format\": 1}")}) {
    write(bad);
    const Model model = load(path_);
    EXPECT_EQ(conv(model).chosen_by, "rule");
    EXPECT_TRUE(remark(model).starts_with("kernel cache '" + path_ + "' is not used: ")) << remark(model);
  }
  // What Moka did not write stays.
  EXPECT_THROW(load(path_, MeasureKernels::missing), Exception);
  EXPECT_EQ(text(), "{\"format\": 1}");
  write(good.substr(0, good.size() / 2));
  EXPECT_EQ(conv(load(path_, MeasureKernels::missing)).chosen_by, "measured");
  EXPECT_EQ(conv(load(path_)).chosen_by, "cache");
  EXPECT_EQ(remark(load((folder_ / "absent.json").string())),
            "kernel cache '" + (folder_ / "absent.json").string() + "' does not exist");
  EXPECT_EQ(conv(load(folder_.path().string())).chosen_by, "rule");
}

TEST_F(KernelCacheFile, NamesOfKernelsThatDoNotFitAreNotUsed) {
  for (const char* kernel : {"cpu.conv.no_such", "cpu.linear.gemm", "reference", ""}) {
    fs::remove(path_);
    plant(kernel);
    EXPECT_EQ(conv(load(path_)).chosen_by, "rule") << kernel;
  }
}

TEST_F(KernelCacheFile, ThatCannotBeWrittenIsAnError) {
  std::ofstream(folder_ / "plain") << "x";
  const std::string below = (folder_ / "plain" / "kernels.json").string();
  EXPECT_EQ(conv(load(below)).chosen_by, "rule");
  try {
    load(below, MeasureKernels::missing);
    FAIL() << "loaded";
  } catch (const Exception& e) {
    EXPECT_EQ(e.kind(), ErrorKind::io);
  }
}

TEST(PinnedKernels, RunOrFailWithOneError) {
  auto load = [](std::map<std::string, std::string> pins) {
    ModelConfiguration c;
    c.kernel_cache = "off";
    c.pinned_kernels = std::move(pins);
    return Model::from_mil(kConv, c);
  };
  auto error = [&](std::map<std::string, std::string> pins) -> std::string {
    try {
      load(std::move(pins));
    } catch (const Exception& e) {
      return e.what();
    }
    return "loaded";
  };
  bool pinned = false;
  for (const PlannedOperation& o : load({{"z", "reference"}}).compute_plan().operations)
    if (o.name == "z") pinned = o.kernel == "reference" && o.chosen_by == "pin";
  EXPECT_TRUE(pinned);
  EXPECT_EQ(error({{"zz", "reference"}}),
            "operation 'zz', pinned to kernel 'reference', is not in the optimized program: it does not exist, or was "
            "folded or fused into another");
  EXPECT_EQ(error({{"z", "cpu.conv.winograd"}}),
            "operation 'z' (conv): kernel 'cpu.conv.winograd', to which it is pinned, refuses it: weights that are not "
            "constant");
  EXPECT_EQ(error({{"z", "cpu.linear.gemm"}}),
            "operation 'z' (conv): kernel 'cpu.linear.gemm', to which it is pinned, does not run conv");
}

}  // namespace
}  // namespace moka::test
