// SPDX-License-Identifier: Apache-2.0
#include "moka/recording.h"

#include <gtest/gtest.h>

#include <fstream>
#include <limits>
#include <numeric>

#include "temporary_folder.h"

namespace moka {
namespace {

constexpr const char* kSmallNet = R"(program(1.3)
{
  func main<ios18>(tensor<fp16, [1, 8]> x) {
    tensor<fp16, [1, 8]> a_value = relu(x = x)[name = string("a")];
    tensor<fp32, [1, 8]> wide = cast(x = a_value, dtype = string("fp32"))[name = string("b")];
    tensor<fp32, [1, 8]> sum = cumsum(x = wide, axis = int32(1), exclusive = bool(false), reverse = bool(false))[name = string("c")];
  } -> (sum);
}
)";

MultiArray half_ones() {
  MultiArray x(DataType::float16, {1, 8});
  for (uint16_t& v : x.as<uint16_t>()) v = 0x3c00;
  return x;
}

RecordedOperation recorded_operation(const std::string& output, const std::string& type,
                                     const std::vector<std::string>& supported) {
  RecordedOperation o;
  o.type = "ios18." + type;
  o.outputs = {output};
  o.supported = supported;
  o.preferred = supported.back();
  o.cost = 0.25;
  return o;
}

RecordedSetting recorded_setting(ComputeUnits units) {
  RecordedSetting s;
  s.units = units;
  s.load_seconds = {0.5, 0.25};
  s.first_seconds = 0.125;
  s.prediction_seconds = {0.01, 0.02, 0.03};
  MultiArray sum(DataType::float32, {1, 8});
  std::iota(sum.as<float>().begin(), sum.as<float>().end(), 1.0f);
  s.answers.push_back({{{"sum", sum}}, {}});
  s.operations = {recorded_operation("a_value", "relu", {"cpu", "neuralEngine"}),
                  recorded_operation("wide", "cast", {"cpu", "neuralEngine"}),
                  recorded_operation("sum", "cumsum", {"cpu"})};
  return s;
}

DeviceRecording recording_of_small_net() {
  DeviceRecording r;
  r.moka = "0.1.0";
  r.date = "2026-11-29T12:00:00Z";
  r.device = {"macOS", "Version 26.1", "Mac16,1", "Apple M4", "nominal", 10, uint64_t{16} << 30, false, false};
  r.model = "Net.mlpackage";
  r.compile_seconds = 0.75;
  r.inputs = {{{"x", half_ones()}}};
  r.settings = {recorded_setting(ComputeUnits::cpu_and_neural_engine), recorded_setting(ComputeUnits::cpu_only)};
  return r;
}

std::string refused_recording(const std::string& json) {
  try {
    parse_device_recording(json);
  } catch (const Exception& e) {
    EXPECT_EQ(e.kind(), ErrorKind::malformed);
    return e.what();
  }
  return "";
}

std::string with(const std::string& from, const std::string& to) {
  std::string text = to_json(recording_of_small_net());
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

TEST(DeviceRecordings, AreTheSameAfterWritingAndReading) {
  DeviceRecording r = recording_of_small_net();
  Image image(3, 2, PixelFormat::bgra8);
  for (int64_t i = 0; i < 24; i++) image.pixels.get()[i / 12 * image.row_bytes + i % 12] = static_cast<uint8_t>(i);
  Dictionary words, numbers;
  words.strings = {{"cat", 0.25}, {"dog", std::numeric_limits<double>::infinity()}};
  numbers.string_keys = false;
  numbers.ints = {{-3, 1.0}};
  r.inputs[0]["image"] = image;
  r.inputs[0]["words"] = words;
  r.inputs[0]["numbers"] = numbers;
  r.inputs[0]["text"] = std::string("\"quoted\" #");
  r.inputs[0]["list"] = StringSequence{"a", "b"};
  r.inputs[0]["ids"] = Int64Sequence{1, -2};
  r.inputs[0]["whole"] = int64_t{1} << 60;
  r.inputs[0]["nan"] = std::numeric_limits<double>::quiet_NaN();
  RecordedSample sample;
  sample.shape = {10, 10};
  sample.step = 7;
  sample.elements = MultiArray(DataType::int32, {15});
  sample.sha256 = "00ff";
  sample.most = 4;
  r.settings[0].answers[0].samples["large"] = sample;
  r.settings[1].error = "it failed";
  const std::string text = to_json(r);
  const DeviceRecording read = parse_device_recording(text);
  EXPECT_EQ(to_json(read), text);
  EXPECT_EQ(read.device_text(), "Apple M4, macOS Version 26.1");
  EXPECT_EQ(std::get<Image>(read.inputs[0].at("image")).pixels.get()[5], 5);
  EXPECT_TRUE(std::isinf(std::get<Dictionary>(read.inputs[0].at("words")).strings.at("dog")));
  EXPECT_EQ(read.settings[0].answers[0].samples.at("large").step, 7);
  EXPECT_EQ(read.find(ComputeUnits::all), nullptr);
}

TEST(DeviceRecordings, EveryMistakeSaysWhereItIs) {
  EXPECT_NE(refused_recording("{}").find("something else"), std::string::npos);
  EXPECT_NE(refused_recording(with("\"version\": 1", "\"version\": 2")).find("another version"), std::string::npos);
  EXPECT_NE(refused_recording(std::string(1000, '[')).find("nested too deep"), std::string::npos);
  for (const auto& [from, to, where] : std::vector<std::array<std::string, 3>>{
           {"\"shape\": [1, 8]", "\"shape\": [1, 9]", "'inputs[0].x.data' should be the bytes of 9 elements"},
           {"\"shape\": [1, 8]", "\"shape\": [4611686018427387904, 8]",
            "'inputs[0].x.shape' should be sizes of an array"},
           {"\"shape\": [1, 8]", "\"shape\": [-1, 8]", "'inputs[0].x.shape[0]' should be at least 0"},
           {"\"type\": \"float16\"", "\"type\": \"int64\"", "'inputs[0].x' should be a field 'value'"},
           {"\"type\": \"float16\"", "\"type\": \"uint4\"", "'inputs[0].x.type' should be a type of a value"},
           {"\"data\": \"ADw", "\"data\": \"A?w", "'inputs[0].x.data' should be base64"},
           {"\"computeUnits\": \"cpuOnly\"", "\"computeUnits\": \"cpuAndNeuralEngine\"",
            "'settings[1]' should be one setting"},
           {"\"computeUnits\": \"cpuOnly\"", "\"computeUnits\": \"quantum\"",
            "'settings[1].computeUnits' should be compute"},
           {"[0.5, 0.25]", "[0.5, -1]", "'settings[0].loadSeconds' should be seconds"},
           {"\"cost\": 0.25", "\"cost\": \"dear\"", "'settings[0].plan.operations[0].cost' should be a number"}}) {
    const std::string message = refused_recording(with(from, to));
    EXPECT_NE(message.find(where), std::string::npos) << message;
  }
  test::TemporaryFolder folder;
  std::ofstream(folder / "other.json") << R"({"note": "a \"moka-recording\" it is not"})";
  EXPECT_FALSE(is_device_recording(folder / "other.json"));
  EXPECT_FALSE(is_device_recording(folder / "none.json"));
  std::ofstream(folder / "recording.json") << to_json(recording_of_small_net());
  EXPECT_TRUE(is_device_recording(folder / "recording.json"));
  EXPECT_EQ(read_device_recording(folder / "recording.json").model, "Net.mlpackage");
}

TEST(DeviceRecordings, AnswersAreVerified) {
  const Model model = Model::from_mil(kSmallNet);
  DeviceRecording r = recording_of_small_net();
  const auto verified = [&](ComputeUnits units) {
    return verify_model(model, *device_reference(r, units, "r.json", model.function()));
  };
  const Verification fine = verified(ComputeUnits::cpu_only);
  EXPECT_TRUE(fine.passed());
  EXPECT_EQ(fine.reference, "r.json (Apple M4, macOS Version 26.1, cpuOnly)");
  // A sample: elements 0, 3 and 6 of the eight.
  RecordedSample sample;
  sample.shape = {1, 8};
  sample.step = 3;
  sample.elements = MultiArray::of(std::vector<float>{1, 4, 7}, {3});
  r.settings[1].answers = {{{}, {{"sum", sample}}}};
  EXPECT_EQ(verified(ComputeUnits::cpu_only).shapes[0].outputs[0].elements, 3);
  EXPECT_TRUE(verified(ComputeUnits::cpu_only).passed());
  r.settings[1].answers[0].samples["sum"].elements.as<float>()[2] = 70;
  EXPECT_FALSE(verified(ComputeUnits::cpu_only).passed());
  r.settings[1].answers[0].samples["sum"].shape = {8, 1};
  EXPECT_FALSE(verified(ComputeUnits::cpu_only).passed());
  EXPECT_THROW(verified(ComputeUnits::all), Exception);
}

TEST(DeviceRecordings, LeaveFloat32RoomForOtherUnits) {
  const Model model = Model::from_mil(R"(program(1.3)
{
  func main<ios18>(tensor<fp32, [4]> x) { tensor<fp32, [4]> y = exp(x = x)[name = string("y")]; } -> (y);
}
)");
  DeviceRecording r = recording_of_small_net();
  r.inputs = {{{"x", MultiArray(DataType::float32, {4})}}};
  for (RecordedSetting& s : r.settings) s.answers = {{{{"y", MultiArray::of(std::vector<float>(4, 1.001f), {4})}}, {}}};
  const auto verified = [&](ComputeUnits units) {
    return verify_model(model, *device_reference(r, units, "r.json", model.function()));
  };
  EXPECT_EQ(verified(ComputeUnits::cpu_only).min_snr, 80);
  EXPECT_FALSE(verified(ComputeUnits::cpu_only).passed());
  EXPECT_EQ(verified(ComputeUnits::cpu_and_neural_engine).min_snr, 40);
  EXPECT_TRUE(verified(ComputeUnits::cpu_and_neural_engine).passed());
}

TEST(DeviceRecordings, BecomeReports) {
  DeviceRecording r = recording_of_small_net();
  r.settings[1].prediction_seconds.clear();
  r.settings[1].error = "no model";
  const Report report = report_of(r);
  ASSERT_EQ(report.settings.size(), 2u);
  EXPECT_EQ(report.settings[0].name, "cpuAndNeuralEngine");
  EXPECT_EQ(report.settings[0].steady.median, 0.02);
  EXPECT_EQ(report.settings[0].load.samples, (std::vector<double>{0.5, 0.25}));
  EXPECT_EQ(report.settings[0].operations[2].device, "cpu");
  ASSERT_TRUE(report.settings[1].failure);
  EXPECT_EQ(report.settings[1].failure->message, "no model");
  EXPECT_EQ(to_json(parse_report(to_json(report))), to_json(report));
}

/// The verdicts of the preview on the three operations.
std::vector<PlacedOperation::Preview> previews(const DeviceRecording& r, const std::string& rules = "") {
  ModelConfiguration c;
  c.compute_units = ComputeUnits::cpu_and_neural_engine;
  c.optimize = false;
  c.precision = Precision::exact;
  c.neural_engine_rules = rules;
  const Model model = Model::from_mil(kSmallNet, c);
  const Placement placement = compare_placement(model.compute_plan(), model.structure(), r.settings[0]);
  std::vector<PlacedOperation::Preview> out;
  for (const PlacedOperation& o : placement.operations) out.push_back(o.preview);
  EXPECT_EQ(placement.right + placement.wrong_support + placement.wrong_preference, out.size());
  return out;
}

TEST(DeviceRecordings, TellWhereThePreviewIsWrong) {
  using enum PlacedOperation::Preview;
  DeviceRecording r = recording_of_small_net();
  // The program is small, so the preview doubts what it takes.
  EXPECT_EQ(previews(r), (std::vector{wrongly_doubted, wrongly_doubted, right}));
  r.settings[0].operations[0].preferred = "cpu";
  EXPECT_EQ(previews(r)[0], right);
  r.settings[0].operations[1].supported = {"cpu"};
  r.settings[0].operations[2].supported = {"cpu", "neuralEngine"};
  EXPECT_EQ(previews(r), (std::vector{right, wrongly_taken, wrongly_refused}));
  test::TemporaryFolder folder;
  std::ofstream(folder / "my.rules") << "[small-program]\noperations = none\ndoubt = no\nsource = a test\n";
  EXPECT_EQ(previews(r, folder / "my.rules")[0], wrongly_trusted);
}

TEST(DeviceRecordings, PlacementNamesTheOperationsOfTheModel) {
  ModelConfiguration c;
  c.compute_units = ComputeUnits::cpu_and_neural_engine;
  c.precision = Precision::exact;
  const Model model = Model::from_mil(kSmallNet, c);
  DeviceRecording r = recording_of_small_net();
  r.settings[0].operations.push_back(recorded_operation("stranger", "conv", {"cpu"}));
  const Placement placement = compare_placement(model.compute_plan(), model.structure(), r.settings[0]);
  ASSERT_EQ(placement.operations.size(), 4u);
  EXPECT_EQ(placement.operations[0].name, "a");
  EXPECT_EQ(placement.operations[0].unit, "neuralEngine");
  EXPECT_EQ(placement.operations[2].verdict, PlacedOperation::Verdict::same);
  EXPECT_EQ(placement.operations[3].verdict, PlacedOperation::Verdict::unplanned);
  EXPECT_EQ(placement.unplanned, 1u);
}

TEST(DeviceRecordings, AreComparedWithEachOther) {
  const DeviceRecording first = recording_of_small_net();
  DeviceRecording second = first;
  EXPECT_TRUE(compare_recordings(first, second).same());
  second.settings[0].operations[0].preferred = "cpu";
  second.settings[0].prediction_seconds = {0.2, 0.2, 0.2};
  RecordingComparison found = compare_recordings(first, second);
  ASSERT_EQ(found.settings[0].moved.size(), 1u);
  EXPECT_EQ(found.settings[0].moved[0], (RecordingComparison::Moved{"a_value", "ios18.relu", "neuralEngine", "cpu"}));
  EXPECT_EQ(found.settings[0].second_prediction, 0.2);
  EXPECT_TRUE(found.same());
  MultiArray other(DataType::float32, {1, 8});
  second.settings[0].answers[0].values["sum"] = other;
  found = compare_recordings(first, second);
  ASSERT_EQ(found.failures.size(), 1u);
  EXPECT_NE(found.failures[0].find("cpuAndNeuralEngine: output 'sum'"), std::string::npos) << found.failures[0];
  // Where one has a sample, the sample is compared.
  RecordedSample sample;
  sample.shape = {1, 8};
  sample.step = 7;
  sample.elements = MultiArray::of(std::vector<float>{1, 8}, {2});
  second.settings[0].answers = {{{}, {{"sum", sample}}}};
  EXPECT_TRUE(compare_recordings(first, second).same());
  EXPECT_EQ(compare_recordings(first, second).settings[0].outputs[0].elements, 2);
  second.inputs[0]["x"] = MultiArray(DataType::float16, {1, 8});
  second.settings.pop_back();
  found = compare_recordings(first, second);
  EXPECT_TRUE(found.settings[0].outputs.empty());
  ASSERT_EQ(found.remarks.size(), 2u);
  EXPECT_NE(found.remarks[0].find("the inputs differ"), std::string::npos);
}

TEST(RecordingPrograms, HaveTheInputsAndTheChoices) {
  const Model model = Model::from_mil(kSmallNet);
  const std::vector<Features> inputs{{{"x", half_ones()}}};
  RecordingPlan plan;
  plan.model_name = "My \"Net\".mlpackage";
  plan.units = {ComputeUnits::all, ComputeUnits::cpu_only};
  plan.predictions = 7;
  const RecordingProgram program = recording_program(model.function(), inputs, plan, "Record.inputs.json");
  EXPECT_TRUE(program.inputs.empty());
  for (const char* line :
       {"// Generated from the model; edits are lost.\n", "static let model = \"My \\\"Net\\\".mlpackage\"\n",
        "static let units: [String] = [\"all\", \"cpuOnly\"]\n", "static let predictions = 7\n",
        "static let isStateful = false\n",
        "[{\"x\":{\"type\":\"float16\",\"shape\":[1,8],\"data\":\"ADwAPAA8ADwAPAA8ADwAPA==\"}}]\n", "\n@main\n"})
    EXPECT_NE(program.source.find(line), std::string::npos) << line;
  EXPECT_EQ(program.source.find("@M"), std::string::npos);
  EXPECT_EQ(program.source.find("SPDX"), std::string::npos);
  plan.embedded_bytes = 8;
  plan.is_test = true;
  plan.function = "second";
  const RecordingProgram apart = recording_program(model.function(), inputs, plan, "Record.inputs.json");
  EXPECT_EQ(apart.inputs.find("[{\"x\":"), 0u);
  for (const char* line : {"static let inputs = \"\"\n", "static let inputsFile = \"Record.inputs.json\"\n",
                           "configuration.functionName = Plan.function\n", "final class RecordTests: XCTestCase {\n"})
    EXPECT_NE(apart.source.find(line), std::string::npos) << line;
  MultiArray wide(DataType::int64, {1, 8});
  EXPECT_THROW(recording_program(model.function(), {{{"x", wide}}}, plan), Exception);
  EXPECT_THROW(recording_program(model.function(), {}, plan), Exception);
}

}  // namespace
}  // namespace moka
