// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "arguments.h"
#include "text.h"

namespace moka::cli {

Check whole_number(int64_t least, int64_t most) {
  return {[=](std::string& text) {
            const auto value = parse_integer(text);
            const bool fits = value && *value >= least && *value <= most;
            if (fits) text = std::to_string(*value);  // a number of CLI11 that begins with 0 is octal
            if (fits) return std::string();
            return fmt::format("expected a whole number from {} to {}, got '{}'", least, most, text);
          },
          {}};
}

Check number(double least, double most) {
  return {[=](const std::string& text) {
            const auto value = parse_number(text);
            if (value && *value >= least && *value <= most) return std::string();
            return fmt::format("expected a number from {} to {}, got '{}'", least, most, text);
          },
          {}};
}

Check one_of(std::vector<std::string> choices) {
  return {[choices](const std::string& text) {
            if (std::find(choices.begin(), choices.end(), text) != choices.end()) return std::string();
            const auto close = nearest(text, choices);
            return fmt::format("expected one of {}, got '{}'{}", quoted_list(choices), text,
                               close ? fmt::format("; did you mean '{}'?", *close) : "");
          },
          choices};
}

}  // namespace moka::cli
