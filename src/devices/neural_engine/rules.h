// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kernel/kernel.h"

namespace moka::devices::neural_engine {

/// A condition of a rule. A rule applies when all its conditions hold.
struct Condition {
  enum class What : uint8_t { rank, dimension, channels, kernel, dilation, reduced, spatial, type, shape };
  What what;
  int64_t above = 0;  ///< limit that the largest value must exceed; not used by the last two kinds
  std::string word;   ///< value for type and shape: "fp32", "dynamic"
};

/// A rule refuses an operation that meets its conditions.
struct Rule {
  std::string name;
  std::vector<std::string> operations, except;  ///< types of operations; "*": all
  std::vector<Condition> when;
  std::string reason, remedy, source;
};

class Rules {
 public:
  /// Parses rules from text. A section begins with "[name]" and has lines "key = value". A line that starts with "#" is
  /// a comment. The section "[takes]" lists the operations that can run at all. A rule replaces an earlier one of the
  /// same name. Errors: malformed, with the line.
  Status add(std::string_view text);
  struct Refusal {
    std::string reason;
    kernel::Advice advice;
  };
  /// Why the operation cannot run there; nullopt: it can.
  std::optional<Refusal> refusal(const kernel::MatchCall& call) const;
  const std::vector<Rule>& rules() const { return rules_; }

 private:
  std::vector<Rule> rules_;
  std::vector<std::string> takes_;
};

}  // namespace moka::devices::neural_engine
