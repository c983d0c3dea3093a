// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "moka/edit.h"

/// How the options of `moka edit` are written. Everything throws UsageError.
namespace moka::cli {

/// "a=b" as two texts.
std::pair<std::string, std::string> split(const std::string& text, std::string_view expected);
/// "a,b".
std::vector<std::string> listed(const std::string& text);

/// "first,key=value,key=value": the first one may omit its key.
class Settings {
 public:
  Settings(const std::string& text, const std::vector<std::string>& keys);
  std::string text(const std::string& key, const std::string& otherwise) const;
  /// "0.5", "1/255" or "1:2:3".
  std::vector<double> numbers(const std::string& key, const std::vector<double>& otherwise) const;

 private:
  std::map<std::string, std::string> values_;
};

/// "1x3x32..512x32.." or "1x8|1x16".
edit::InputSizes sizes_of(const std::string& text);

ColorSpace color_of(const std::string& name);
/// The lines of a file; type: "string" or "int64".
edit::Labels read_labels(const std::string& path, const std::string& type);

}  // namespace moka::cli
