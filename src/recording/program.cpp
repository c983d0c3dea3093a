// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>

#include "base/error.h"
#include "recording/values.h"
#include "report/measure.h"

namespace moka {

namespace recording {

extern const unsigned char program_bytes[];
extern const unsigned long program_size;

namespace {

using Words = std::map<std::string, std::string, std::less<>>;

/// Fills the places "@NAME@" of the template.
std::string filled(std::string_view text, const Words& words) {
  std::string out;
  while (true) {
    const size_t at = text.find('@');
    if (at == text.npos) return out.append(text);
    const size_t end = text.find('@', at + 1);
    const auto word = end == text.npos ? words.end() : words.find(text.substr(at + 1, end - at - 1));
    out.append(text.substr(0, at));
    if (word == words.end()) {
      out += '@';
      text.remove_prefix(at + 1);
    } else {
      out += word->second;
      text.remove_prefix(end + 1);
    }
  }
}

/// A literal of Swift: JSON text between raw quotes, in which only the closing quotes mean anything.
std::string raw_literal(std::string text) {
  std::string safe;
  for (const char c : text) safe += c == '#' ? "\\u0023" : std::string(1, c);
  return cat("#\"\"\"\n", safe, "\n\"\"\"#");
}

std::string literal(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (static_cast<unsigned char>(c) < ' ')
      out += cat("\\u{", static_cast<int>(c), "}");
    else
      out += c;
  }
  return out + '"';
}

PixelFormat format_of(ColorSpace color) {
  switch (color) {
    case ColorSpace::grayscale: return PixelFormat::gray8;
    case ColorSpace::grayscale_float16: return PixelFormat::gray_float16;
    default: return PixelFormat::bgra8;
  }
}

/// The value in a form that Core ML takes.
FeatureValue for_core_ml(const FeatureDescription& input, const FeatureValue& value) {
  if (const auto* image = std::get_if<Image>(&value)) return converted(*image, format_of(input.image.color));
  if (const auto* buffer = std::get_if<PixelBuffer>(&value))
    return fitted(*buffer, input.image.width, input.image.height, format_of(input.image.color));
  const auto* array = std::get_if<MultiArray>(&value);
  if (array == nullptr) return value;
  switch (array->type()) {
    case DataType::float16:
    case DataType::float32:
    case DataType::float64:
    case DataType::int32:
    case DataType::int8: return value;
    default:
      throw Exception(ErrorKind::unsupported,
                      cat("input '", input.name, "': Core ML has no arrays of ", to_string(array->type())));
  }
}

Json cases_of(const FunctionDescription& function, const std::vector<Features>& inputs) {
  Json out = Json::array();
  for (const Features& one : inputs) {
    Json& json = out.emplace_back(Json::object());
    for (const auto& [name, value] : one) {
      if (std::holds_alternative<std::monostate>(value)) continue;
      const auto input = std::find_if(function.inputs.begin(), function.inputs.end(),
                                      [&](const FeatureDescription& f) { return f.name == name; });
      if (input == function.inputs.end())
        throw Exception(ErrorKind::invalid_argument, cat("the model has no input '", name, "'"));
      json[name] = json_of(for_core_ml(*input, value));
    }
  }
  return out;
}

constexpr std::string_view kUsage = R"(// Run it once, on macOS 13 or newer, where Core ML is:
//
//   swiftc -O -parse-as-library @FILE@ -o record && ./record @MODEL_NAME@ recording.json
//
// The model may be an .mlpackage, .mlmodel or .mlmodelc.@BESIDE@)";
constexpr std::string_view kTestUsage =
    R"(// Add it and the model @MODEL_NAME@ to a test target of Xcode, and run the test on a device. The test's report has
// the recording as an attachment.@BESIDE@)";

constexpr std::string_view kMain = R"swift(@main
private struct Record {
    static func main() async {
        let arguments = CommandLine.arguments
        do {
            guard arguments.count == 2 || arguments.count == 3 else {
                throw RecordError(description: "expected a model, and optionally the file of the recording")
            }
            let model = URL(fileURLWithPath: arguments[1])
            let file = URL(fileURLWithPath: arguments.count == 3 ? arguments[2] : "recording.json")
            try await Recorder(file: file).record(model, try cases(URL(fileURLWithPath: Plan.inputsFile)))
            print(file.path)
        } catch {
            FileHandle.standardError.write(Data("record: \(error)\n".utf8))
            exit(1)
        }
    }
}
)swift";
constexpr std::string_view kTestMain = R"swift(final class RecordTests: XCTestCase {
    private func resource(_ name: String, _ endings: [String]) throws -> URL {
        for ending in endings {
            if let url = Bundle(for: RecordTests.self).url(forResource: name, withExtension: ending) { return url }
        }
        throw RecordError(description: "the test target has no \(name)")
    }

    func testRecord() async throws {
        let stem = URL(fileURLWithPath: Plan.model).deletingPathExtension().lastPathComponent
        let model = try resource(stem, ["mlmodelc", "mlpackage", "mlmodel"])
        let inputs = Plan.inputs.isEmpty ? try resource((Plan.inputsFile as NSString).deletingPathExtension, ["json"]) : model
        let file = FileManager.default.temporaryDirectory.appendingPathComponent("recording.json")
        try await Recorder(file: file).record(model, try cases(inputs))
        let attachment = XCTAttachment(data: try Data(contentsOf: file), uniformTypeIdentifier: "public.json")
        attachment.name = "recording.json"
        attachment.lifetime = .keepAlways
        add(attachment)
    }
}
)swift";
constexpr std::string_view kFunctionLines =
    R"swift(    guard #available(macOS 15, iOS 18, tvOS 18, watchOS 11, visionOS 2, *) else {
        throw RecordError(description: "this system has no models with several functions")
    }
    configuration.functionName = Plan.function
)swift";

void check(const std::vector<Features>& inputs, const RecordingPlan& plan) {
  if (inputs.empty()) throw Exception(ErrorKind::invalid_argument, "inputs: expected those of a prediction, got none");
  if (plan.units.empty()) throw Exception(ErrorKind::invalid_argument, "units: expected some, got none");
  if (plan.predictions < 1)
    throw Exception(ErrorKind::invalid_argument, cat("predictions: expected at least 1, got ", plan.predictions));
}

/// On one line of a comment.
std::string for_comment(std::string_view name) {
  std::string out;
  for (const char c : name) out += static_cast<unsigned char>(c) < ' ' ? ' ' : c;
  return out;
}

}  // namespace
}  // namespace recording

RecordingProgram recording_program(const FunctionDescription& function, const std::vector<Features>& inputs,
                                   const RecordingPlan& plan, const std::string& inputs_file) {
  using namespace recording;
  check(inputs, plan);
  RecordingProgram out;
  std::string cases = reporting::dumped(cases_of(function, inputs));
  const bool is_apart = cases.size() / 4 * 3 > plan.embedded_bytes;
  std::string units;
  for (const ComputeUnits u : plan.units) units += cat(units.empty() ? "" : ", ", literal(reporting::name_of(u)));
  Words words{
      {"VERSION", MOKA_VERSION},
      {"MODEL_NAME", for_comment(plan.model_name)},
      {"FILE", for_comment(plan.file_name)},
      {"BESIDE", is_apart ? cat(plan.is_test ? "\n// It needs the inputs in " : "\n// Run it where the inputs are: ",
                                for_comment(inputs_file), plan.is_test ? " as a resource." : ".")
                          : ""},
      {"IMPORTS", plan.is_test ? "import XCTest" : ""},
      {"MOKA", literal(MOKA_VERSION)},
      {"MODEL", literal(plan.model_name)},
      {"FUNCTION", literal(plan.function)},
      {"UNITS", cat("[", units, "]")},
      {"PREDICTIONS", cat(plan.predictions)},
      {"FULL_BYTES", cat(plan.full_bytes)},
      {"SAMPLE_ELEMENTS", "65536"},
      {"STATEFUL", function.states.empty() ? "false" : "true"},
      {"INPUTS", is_apart ? literal("") : raw_literal(cases)},
      {"INPUTS_FILE", literal(is_apart ? inputs_file : "")},
      {"FUNCTION_LINES", plan.function.empty() ? "" : std::string(kFunctionLines)},
      {"MAIN", std::string(plan.is_test ? kTestMain : kMain)}};
  words["USAGE"] = filled(plan.is_test ? kTestUsage : kUsage, words);
  std::string_view text(reinterpret_cast<const char*>(program_bytes), program_size);
  text.remove_prefix(text.find('\n') + 1);  // the license of this file is not that of what it makes
  out.source = filled(text, words);
  if (is_apart) out.inputs = std::move(cases) + "\n";
  return out;
}

}  // namespace moka
