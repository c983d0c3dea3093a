// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "moka/error.h"
#include "moka/model.h"
#include "moka/onnx_export.h"
#include "moka/onnx_import.h"
#include "onnx_export/round_trip_util.h"
#include "temporary_folder.h"

/// The cases of the conformance corpus as ONNX and back.
namespace moka::test {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

/// Cases of the conformance corpus without a round trip, and why.
const std::map<std::string, std::string> kOperations = {
    {"const/string", "Core ML has no tensors of strings"},
    {"const/uint32", "does not fit into int32"},
    {"pad/runtime", "expected a constant, got a computed value"},
    {"upsample_bilinear/unknown_sizes", "Resize needs known sizes"},
};
/// Cases with another answer: numbers beyond float32 and int32, and what ONNX leaves open (NaN, infinities, indices
/// that are outside).
const std::set<std::string> kEdges = {"const/fp64",
                                      "const/int64",
                                      "floor_div/zero_and_infinity",
                                      "mod/zero_and_infinity",
                                      "resample/not_finite_is_outside",
                                      "scatter/ios17_outside",
                                      "scatter_along_axis/ios17_outside",
                                      "scatter_nd/ios17_outside"};

DataType type_named(const std::string& name) {
  static const std::map<std::string, DataType> types = {
      {"fp16", DataType::float16},  {"fp32", DataType::float32}, {"fp64", DataType::float64},
      {"bool", DataType::boolean},  {"int8", DataType::int8},    {"int16", DataType::int16},
      {"int32", DataType::int32},   {"int64", DataType::int64},  {"uint8", DataType::uint8},
      {"uint16", DataType::uint16}, {"uint32", DataType::uint32}};
  return types.at(name);
}

/// A recorded tensor. A scalar is [1], as an input of a converted model is.
MultiArray array_of(const json& v) {
  auto shape = v.at("shape").get<std::vector<int64_t>>();
  if (shape.empty()) shape = {1};
  MultiArray wide(DataType::float64, shape);
  size_t i = 0;
  for (const json& x : v.at("data")) {
    double number = 0;
    if (x.is_string())
      number = x == "nan" ? NAN : x == "inf" ? INFINITY : -INFINITY;
    else
      number = x.is_boolean() ? static_cast<double>(x.get<bool>()) : x.get<double>();
    wide.as<double>()[i++] = number;
  }
  return wide.converted(type_named(v.at("dtype")));
}

bool is_array(const json& v) { return v.contains("dtype") && v.at("dtype") != "string"; }

/// The first difference from the recorded answers.
std::string differing_case(const json& c, const std::string& onnx) {
  const auto program = c.at("program").get<std::string>();
  export_mil_onnx(program, onnx);
  const OnnxImport back = import_onnx(onnx);
  const Model model = back.source.load();
  Features inputs;
  for (const OnnxFeature& to : back.inputs) inputs[to.feature] = array_of(c.at("inputs").at(to.name));
  const Features got = model.predict(inputs);
  constexpr double relative = 1e-4, step_of_half = 0x1p-10;
  double tolerance = program.find("fp16") != std::string::npos ? 2 * step_of_half : relative;
  if (c.contains("tolerance") && c.at("tolerance").is_number())
    tolerance = std::max(tolerance, c.at("tolerance").get<double>());
  for (size_t i = 0; i < c.at("outputs").size(); ++i) {
    const json& expected = c.at("outputs")[i];
    if (!is_array(expected)) continue;
    const std::string d = difference(got.at(back.outputs.at(i).feature), array_of(expected), tolerance);
    if (!d.empty()) return "output " + std::to_string(i) + ": " + d;
  }
  return "";
}

TEST(OnnxRoundTripOfOperations, GivesTheRecordedAnswers) {
  const TemporaryFolder folder;
  const std::string path = (folder / "m.onnx").string();
  size_t equal = 0;
  for (const auto& entry : fs::directory_iterator(MOKA_CONFORMANCE)) {
    if (entry.path().extension() != ".json") continue;
    std::ifstream in(entry.path());
    const json file = json::parse(in);
    for (const json& c : file.at("cases")) {
      const std::string name = entry.path().stem().string() + "/" + c.at("name").get<std::string>();
      const auto& inputs = c.at("inputs");
      const bool has_state = c.at("program").get<std::string>().find("state<") != std::string::npos;
      if (has_state || !std::all_of(inputs.begin(), inputs.end(), is_array)) continue;
      try {
        const std::string d = differing_case(c, path);
        EXPECT_TRUE(d.empty() || kEdges.contains(name)) << name << ": " << d;
        equal += d.empty();
      } catch (const Exception& e) {
        const std::string what = e.what();
        const auto refused = kOperations.find(name);
        const bool is_out = what.find("ONNX cannot express") != std::string::npos;
        EXPECT_TRUE(is_out || (refused != kOperations.end() && what.find(refused->second) != std::string::npos))
            << name << ": " << what;
      }
    }
  }
  EXPECT_GT(equal, 2000u);
}

}  // namespace
}  // namespace moka::test
