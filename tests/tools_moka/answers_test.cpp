// SPDX-License-Identifier: Apache-2.0
#include "answers.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "convert.h"
#include "moka/files.h"

namespace moka::cli {
namespace {

namespace fs = std::filesystem;

TEST(Output, FactsLeaveOutWhatIsNoNumber) {
  const ArrayFacts facts = facts_of(MultiArray::of(std::vector<float>{1, NAN, 3, INFINITY, -2, 2}, {6}));
  EXPECT_EQ(facts.least, -2);
  EXPECT_EQ(facts.most, 3);
  EXPECT_EQ(facts.mean, 1);
  EXPECT_EQ(facts.nan, 1);
  EXPECT_EQ(facts.infinite, 1);
}

TEST(Output, ClassesAsTopFive) {
  FunctionDescription function;
  function.predicted_feature_name = "label";
  Dictionary classes;
  classes.strings = {{"cat", 0.5}, {"dog", 0.25}, {"cow", 0.125}, {"eel", 0.0625}, {"ant", 0.0625}, {"bee", 0}};
  Features outputs;
  outputs["label"] = std::string("cat");
  outputs["probabilities"] = classes;
  const std::string text = shown(outputs, function, false);
  EXPECT_NE(text.find("label  cat\n"), std::string::npos) << text;
  EXPECT_LT(text.find("50.0%"), text.find("25.0%"));
  EXPECT_EQ(text.find("bee"), std::string::npos);
  EXPECT_NE(text.find("and 1 more"), std::string::npos);
}

TEST(Output, RanksNanLast) {
  Dictionary classes;
  classes.strings = {{"a", NAN}, {"b", -INFINITY}, {"c", 2}, {"d", NAN}, {"e", 3}};
  classes.ints = {{7, 3}};
  std::string order;
  for (const auto& [key, number] : ranked(classes)) order += key;
  EXPECT_EQ(order, "e7cbad");
}

TEST(Output, FileNames) {
  EXPECT_EQ(safe_file_name("a/b c"), "a_b_c");
  EXPECT_EQ(safe_file_name("../x"), "_.._x");
  EXPECT_EQ(safe_file_name(""), "_");
  EXPECT_EQ(safe_file_name(std::string(125, 'a') + ".png"), std::string(116, 'a') + ".png");
  EXPECT_EQ(safe_file_name("a." + std::string(200, 'b')), "a." + std::string(118, 'b'));
}

TEST(Output, WritesEveryKind) {
  const fs::path folder = fs::temp_directory_path() / ("moka_output_" + std::to_string(::getpid()));
  Features outputs;
  outputs["a/b"] = MultiArray::of(std::vector<float>{1, 2}, {1, 2});
  outputs["a_b"] = MultiArray::of(std::vector<float>{3}, {1});
  outputs["score"] = 0.5;
  outputs["picture"] = Image(3, 2, PixelFormat::bgra8);
  Dictionary d;
  d.strings["x"] = 1;
  outputs["values"] = d;
  const auto files = write_outputs({outputs}, false, folder, Outputs{});
  EXPECT_EQ(files.size(), 5u);
  EXPECT_EQ(std::get<MultiArray>(read_npy(folder / "a_b.npy")).shape(), (std::vector<int64_t>{1, 2}));
  EXPECT_EQ(std::get<MultiArray>(read_npy(folder / "a_b_2.npy")).at(0), 3);
  EXPECT_EQ(read_image(folder / "picture.png").width, 3);
  std::ifstream values(folder / "values.json");
  EXPECT_EQ(Json::parse(values)["score"], 0.5);
  EXPECT_TRUE(fs::exists(folder / "values_2.json"));
  write_outputs({outputs, outputs}, true, folder, Outputs{});
  EXPECT_TRUE(fs::exists(folder / "a_b_001.npy"));
  std::ifstream table(folder / "predictions.csv");
  std::string header;
  std::getline(table, header);
  EXPECT_EQ(header, "row,a/b,a_b,score,picture,values\r");
  fs::remove_all(folder);
}

TEST(Convert, FloatsOfAnImageShareItsMemory) {
  Image image(2, 1, PixelFormat::gray_float32);
  reinterpret_cast<float*>(image.pixels.get())[1] = 0.5F;
  const MultiArray floats = numbers_of(image);
  EXPECT_EQ(floats.shape(), (std::vector<int64_t>{1, 2}));
  EXPECT_EQ(floats.at(1), 0.5);
  EXPECT_EQ(floats.data(), image.pixels.get());
}

TEST(Convert, ShortestNumbers) {
  EXPECT_EQ(shortest(static_cast<double>(0.1f), DataType::float32), 0.1);
  EXPECT_EQ(shortest(0.0999755859375, DataType::float16), 0.099976);
  EXPECT_EQ(shortest(65504, DataType::float16), 65504);
  EXPECT_EQ(shortest(1.0 / 3, DataType::float64), 1.0 / 3);
}

TEST(JsonForm, ArraysNestAsTheirShape) {
  const Json json = to_json(FeatureValue(MultiArray::of(std::vector<float>{1, 2, 0.1f, NAN}, {2, 2})));
  EXPECT_EQ(json["shape"], Json::array({2, 2}));
  EXPECT_EQ(json["values"][1][0], 0.1);
  const std::string text = rendered(json);
  EXPECT_EQ(Json::parse(text)["values"][0], Json::array({1.0, 2.0}));
  EXPECT_TRUE(Json::parse(text)["values"][1][1].is_null());
}

TEST(JsonForm, BrokenUtf8IsReplaced) {
  const std::string text = rendered(Json{{"a", "x\xff"}});
  EXPECT_EQ(Json::parse(text)["a"], "x\xEF\xBF\xBD");
}

}  // namespace
}  // namespace moka::cli
