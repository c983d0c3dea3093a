#include "checks.h"

#include <fmt/format.h>

#include <algorithm>

#include "text.h"

namespace moka::cli {

CLI::Validator whole_number(int64_t least, int64_t most) {
  return CLI::Validator(
      [=](const std::string& text) {
        const auto value = parse_integer(text);
        if (value && *value >= least && *value <= most) return std::string();
        return fmt::format("expected a whole number from {} to {}, got '{}'", least, most, text);
      },
      "");
}

CLI::Validator number(double least, double most) {
  return CLI::Validator(
      [=](const std::string& text) {
        const auto value = parse_number(text);
        if (value && *value >= least && *value <= most) return std::string();
        return fmt::format("expected a number from {} to {}, got '{}'", least, most, text);
      },
      "");
}

CLI::Validator one_of(std::vector<std::string> choices) {
  const std::string listed = fmt::format("{{{}}}", fmt::join(choices, ","));  // shell completion offers these
  return CLI::Validator(
      [choices = std::move(choices)](const std::string& text) {
        if (std::find(choices.begin(), choices.end(), text) != choices.end()) return std::string();
        const auto close = nearest(text, choices);
        return fmt::format("expected one of {}, got '{}'{}", quoted_list(choices), text,
                           close ? fmt::format("; did you mean '{}'?", *close) : "");
      },
      listed);
}

}  // namespace moka::cli
