// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <set>

#include "answers.h"
#include "convert.h"
#include "io/csv.h"
#include "moka/files.h"

namespace moka::cli {
namespace {

namespace fs = std::filesystem;

/// Writes one value to `stem` plus the extension of its kind. Returns an empty string for plain values.
fs::path write_value(const FeatureValue& value, const fs::path& stem, const Outputs& to) {
  const auto with = [&](const char* extension) { return fs::path(stem.string() + extension); };
  if (const auto* array = std::get_if<MultiArray>(&value)) {
    to.write(with(".npy"), FileKind::array, encode_npy(*array));
    return with(".npy");
  }
  if (const auto* image = std::get_if<Image>(&value)) {
    if (image->format == PixelFormat::gray_float32 || image->format == PixelFormat::gray_float16) {
      to.write(with(".npy"), FileKind::array, encode_npy(numbers_of(*image)));
      return with(".npy");
    }
    to.write(with(".png"), FileKind::picture, encode_png(*image));
    return with(".png");
  }
  if (std::holds_alternative<Dictionary>(value) || std::holds_alternative<StringSequence>(value) ||
      std::holds_alternative<Int64Sequence>(value)) {
    to.write(with(".json"), FileKind::json, rendered(to_json(value)["value"]));
    return with(".json");
  }
  return {};
}

std::string cell_of(const FeatureValue& value) {
  if (const auto* number = std::get_if<double>(&value)) return fmt::format("{}", *number);
  if (const auto* integer = std::get_if<int64_t>(&value)) return std::to_string(*integer);
  if (const auto* text = std::get_if<std::string>(&value)) return *text;
  return {};
}

}  // namespace

std::string safe_file_name(std::string_view name) {
  constexpr size_t kLongest = 120, kLongestExtension = 16;
  const size_t dot = std::min(name.rfind('.'), name.size());
  const std::string_view extension = name.size() - dot > kLongestExtension ? std::string_view() : name.substr(dot);
  std::string kept(name.substr(0, kLongest));
  if (name.size() > kLongest) kept.replace(kLongest - extension.size(), extension.size(), extension);
  std::string out;
  for (char c : kept) {
    const bool fine = std::isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '_' || c == '.';
    out += fine ? c : '_';
  }
  if (out.empty() || out[0] == '.') out.insert(out.begin(), '_');
  return out;
}

std::vector<std::string> write_outputs(const std::vector<Features>& outputs, bool batch, const fs::path& folder,
                                       const Outputs& to) {
  to.make_folder(folder.string());
  if (batch) to.check((folder / "predictions.csv").string(), FileKind::table);
  std::vector<std::string> files;
  std::set<std::string> taken{"values", "predictions"};
  std::map<std::string, std::string> stems;
  const auto stem_of = [&](const std::string& name) {
    auto [entry, added] = stems.try_emplace(name, safe_file_name(name));
    if (!added) return entry->second;
    const std::string plain = entry->second;
    for (int n = 2; !taken.insert(entry->second).second; ++n) entry->second = fmt::format("{}_{}", plain, n);
    return entry->second;
  };
  const size_t digits = std::max<size_t>(3, std::to_string(outputs.size()).size());
  Json values = Json::object();
  std::string table;
  for (size_t r = 0; r < outputs.size(); ++r) {
    std::string header = "row", row = std::to_string(r + 1);
    for (const auto& [name, value] : outputs[r]) {
      std::string stem = stem_of(name);
      if (batch) stem += fmt::format("_{:0{}}", r + 1, digits);
      const fs::path written = write_value(value, folder / stem, to);
      if (!written.empty()) files.push_back(written.string());
      if (written.empty() && !batch) values[name] = to_json(value)["value"];
      header += "," + io::csv_field(name);
      row += "," + io::csv_field(written.empty() ? cell_of(value) : written.filename().string());
    }
    if (r == 0) table = header + "\r\n";
    table += row + "\r\n";
  }
  if (batch) {
    to.write(folder / "predictions.csv", FileKind::table, table);
    files.push_back((folder / "predictions.csv").string());
  } else if (!values.empty()) {
    to.write(folder / "values.json", FileKind::json, rendered(values));
    files.push_back((folder / "values.json").string());
  }
  return files;
}

}  // namespace moka::cli
