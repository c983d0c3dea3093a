// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <fstream>

#include "base/error.h"
#include "base/json_depth.h"
#include "recording/values.h"
#include "report/measure.h"

namespace moka {

namespace recording {

namespace {

constexpr int kDeepestJson = 32;
constexpr std::array kUnits{ComputeUnits::all, ComputeUnits::cpu_only, ComputeUnits::cpu_and_gpu,
                            ComputeUnits::cpu_and_neural_engine};

ComputeUnits read_units(const Field& from) {
  const std::string text = from.text();
  for (const ComputeUnits u : kUnits)
    if (reporting::name_of(u) == text) return u;
  from.bad("compute units", "'" + text.substr(0, 40) + "'");
}

/// Times: none is negative.
std::vector<double> read_seconds(const Field& from, const char* key) {
  const auto found = from.find(key);
  if (!found) return {};
  std::vector<double> out = found->numbers();
  for (const double v : out)
    if (!(v >= 0)) found->bad("seconds", cat(v));
  return out;
}

void read(const Field& from, RecordedDevice& to) {
  to.system = from.text_or("system");
  to.version = from.text_or("version");
  to.machine = from.text_or("machine");
  to.chip = from.text_or("chip");
  to.thermal_state = from.text_or("thermalState");
  to.processors = from.whole_or<int64_t>("processors", 0);
  to.memory_bytes = from.whole_or<uint64_t>("memoryBytes", 0);
  to.low_power_mode = from.flag_or("lowPowerMode", false);
  to.simulator = from.flag_or("simulated", false);
}

void read(const Field& from, RecordedAnswers& to) {
  for (const std::string& name : from.names()) {
    const Field value = from.member(name);
    if (auto sample = read_sample(value))
      to.samples.emplace(name, std::move(*sample));
    else
      to.values[name] = read_value(value);
  }
}

void read(const Field& from, RecordedOperation& to) {
  to.model = from.text_or("model");
  to.function = from.text_or("function");
  to.name = from.text_or("name");
  to.type = from.at("type").text();
  to.outputs = from.texts_or("outputs");
  to.supported = from.texts_or("supported");
  to.preferred = from.text_or("preferred");
  to.depth = from.whole_or<int>("depth", 0);
  if (const auto cost = from.find("cost")) to.cost = cost->number();
}

void read(const Field& from, RecordedSetting& to) {
  to.units = read_units(from.at("computeUnits"));
  to.error = from.text_or("error");
  to.load_seconds = read_seconds(from, "loadSeconds");
  to.first_seconds = from.number_or("firstSeconds", 0);
  to.prediction_seconds = read_seconds(from, "predictionSeconds");
  if (const auto outputs = from.find("outputs"))
    for (size_t i = 0; i < outputs->size(); i++) read(outputs->item(i), to.answers.emplace_back());
  const auto plan = from.find("plan");
  if (!plan) return;
  to.plan_error = plan->text_or("error");
  if (const auto operations = plan->find("operations"))
    for (size_t i = 0; i < operations->size(); i++) read(operations->item(i), to.operations.emplace_back());
}

void read(const Field& from, DeviceRecording& to) {
  to.moka = from.text_or("moka");
  to.date = from.text_or("date");
  read(from.at("device"), to.device);
  const Field model = from.at("model");
  to.model = model.text_or("name");
  to.function = model.text_or("function");
  if (const auto seconds = from.find("compileSeconds")) to.compile_seconds = seconds->number();
  const Field inputs = from.at("inputs");
  for (size_t i = 0; i < inputs.size(); i++) to.inputs.push_back(read_features(inputs.item(i)));
  const Field settings = from.at("settings");
  for (size_t i = 0; i < settings.size(); i++) {
    RecordedSetting s;
    read(settings.item(i), s);
    if (!s.answers.empty() && s.answers.size() != to.inputs.size())
      settings.item(i).at("outputs").bad(cat("answers for ", to.inputs.size(), " inputs"), cat(s.answers.size()));
    if (to.find(s.units) != nullptr) settings.item(i).bad("one setting of its units", "another one");
    to.settings.push_back(std::move(s));
  }
}

[[noreturn]] void refuse(std::string_view what) {
  throw Exception(ErrorKind::malformed, cat("expected a recording that a program of 'moka record' wrote, got ", what));
}

}  // namespace
}  // namespace recording

const RecordedSetting* DeviceRecording::find(ComputeUnits units) const {
  for (const RecordedSetting& s : settings)
    if (s.units == units) return &s;
  return nullptr;
}

std::string DeviceRecording::device_text() const {
  const std::string chip = device.chip.empty() ? device.machine : device.chip;
  return cat(chip, chip.empty() ? "" : ", ", device.system, device.version.empty() ? "" : " ", device.version,
             device.simulator ? ", a simulator" : "");
}

DeviceRecording parse_device_recording(std::string_view json) {
  using recording::Json;
  if (json_nests_deeper(json, recording::kDeepestJson)) recording::refuse("lists nested too deep");
  const Json parsed = Json::parse(json.begin(), json.end(), nullptr, false);
  if (parsed.is_discarded() || !parsed.is_object() || parsed.value("format", Json()) != "moka-recording")
    recording::refuse("something else");
  if (parsed.value("version", Json()) != 1) recording::refuse("one of another version");
  DeviceRecording out;
  try {
    recording::read(recording::Field(parsed), out);
  } catch (const reporting::BadField& e) {
    recording::refuse(e.what());
  }
  return out;
}

DeviceRecording read_device_recording(const std::filesystem::path& path) {
  const std::string text = reporting::file_text(path);
  try {
    return parse_device_recording(text);
  } catch (const Exception& e) {
    throw Exception(e.kind(), cat(path.string(), ": ", e.what()));
  }
}

bool is_device_recording(const std::filesystem::path& path) {
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(path, ignored)) return false;
  std::string text;
  try {
    text = reporting::file_text(path);
  } catch (const Exception&) {
    return false;
  }
  // The keys are sorted, so the format comes after what may be megabytes.
  const size_t at = text.find("\"moka-recording\"");
  if (at == std::string::npos) return false;
  const size_t key = text.rfind("\"format\"", at);
  return key != std::string::npos && text.find_first_not_of(" \t\r\n:", key + 8) == at;
}

}  // namespace moka
