// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <filesystem>
#include <set>

#include "import/classic_util.h"

namespace moka::test {
namespace {

Result<std::string> model_bytes(const std::string& name, const Json& golden) {
  if (!golden.contains("model")) return read_file(golden_folder() + "/" + name + ".mlmodel");
  return gunzip(models_path() / golden["model"].get<std::string>());
}

class ClassicGolden : public testing::TestWithParam<std::string> {};

TEST_P(ClassicGolden, PredictsAsTheSourceFramework) {
  auto text = read_file(golden_folder() + "/" + GetParam() + ".json");
  ASSERT_TRUE(text.ok()) << text.error().to_string();
  Json golden = Json::parse(*text);
  if (golden.contains("model") && !models_folder()) GTEST_SKIP() << kNoModels;
  auto bytes = model_bytes(GetParam(), golden);
  ASSERT_TRUE(bytes.ok()) << bytes.error().to_string();
  auto model = import_bytes(*bytes);
  ASSERT_TRUE(model.ok()) << model.error().to_string();
  double tolerance = golden["tolerance"];
  size_t number = 0;
  for (const Json& c : golden["cases"]) {
    std::string where = "case " + std::to_string(number++) + ", output ";
    auto result = predict(*model, c["inputs"]);
    ASSERT_TRUE(result.ok()) << where << result.error().to_string();
    for (const auto& [name, expected] : c["outputs"].items()) {
      ASSERT_TRUE(result->contains(name)) << where << name;
      expect_value(result->at(name), expected, tolerance, where + name);
    }
  }
  EXPECT_GT(number, 0u);
}

std::vector<std::string> golden_names() {
  std::set<std::string> names;
  for (const auto& e : std::filesystem::directory_iterator(golden_folder()))
    if (e.path().extension() == ".json") names.insert(e.path().stem().string());
  return {names.begin(), names.end()};
}

INSTANTIATE_TEST_SUITE_P(All, ClassicGolden, testing::ValuesIn(golden_names()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace moka::test
