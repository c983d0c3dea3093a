// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "import/outline.h"
#include "import/outline/window.h"

namespace moka::import {

/// The texts of constants and the types of all values of a function, by name.
struct ProgramValues {
  std::map<std::string, std::string, std::less<>> constants, types;

  void add(const Outline::Block& block) {
    for (const auto& [name, type] : block.inputs) types[name] = type;
    for (const Outline::Operation& op : block.operations) {
      for (const auto& [name, type] : op.outputs) types[name] = type;
      if (op.type == "const" && !op.values.empty() && !op.outputs.empty())
        constants[op.outputs[0].first] = op.values[0].second;
      for (const Outline::Block& inner : op.blocks) add(inner);
    }
  }
  /// The name of the value that the parameter takes.
  static const std::string* argument(const Outline::Operation& op, std::string_view parameter) {
    for (const auto& [name, values] : op.inputs)
      if (name == parameter && values.size() == 1) return &values[0];
    return nullptr;
  }
  /// The text of a constant parameter, wherever it is written.
  std::string text(const Outline::Operation& op, std::string_view parameter) const {
    for (const auto& [name, value] : op.values)
      if (name == parameter) return value;
    const std::string* name = argument(op, parameter);
    const auto it = name == nullptr ? constants.end() : constants.find(*name);
    return it == constants.end() ? "" : it->second;
  }
  std::vector<int64_t> sizes(const Outline::Operation& op, std::string_view parameter) const {
    constexpr double kLargest = 1e15;  // every whole number up to it is exact
    std::vector<int64_t> out;
    for (const double number : numbers_in(text(op, parameter))) {
      if (!(std::abs(number) <= kLargest)) return {};
      out.push_back(static_cast<int64_t>(number));
    }
    return out;
  }
  std::vector<int64_t> shape(const Outline::Operation& op, std::string_view parameter) const {
    const std::string* name = argument(op, parameter);
    const auto it = name == nullptr ? types.end() : types.find(*name);
    return it == types.end() ? std::vector<int64_t>() : dimensions_in(it->second);
  }
};

}  // namespace moka::import
