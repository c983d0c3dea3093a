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
  enum class What : uint8_t {
    rank,
    dimension,
    channels,
    kernel,
    dilation,
    reduced,
    spatial,
    depth,
    elements,
    operations,
    multiply_adds,
    parameters,
    type,
    shape,
    window
  };
  What what;
  int64_t limit = 0;      ///< which the value must exceed, or stay below; not used by the last three kinds
  bool is_below = false;  ///< must stay below
  std::string word;       ///< value for type, shape and window: "fp32", "dynamic", "patches"
  bool negated = false;   ///< of the last three kinds: "is not"
};

/// A rule refuses an operation that meets its conditions, or says why Core ML would prefer another unit for it.
struct Rule {
  std::string name;
  std::vector<std::string> operations, except;  ///< types of operations; "*": all
  std::vector<Condition> when;
  std::string reason, doubt, remedy, source;  ///< either a reason for a refusal, or a doubt
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
  /// Why Core ML would probably run it elsewhere. Empty: no rule says so.
  kernel::Advice doubt(const kernel::MatchCall& call) const;
  const std::vector<Rule>& rules() const { return rules_; }

 private:
  std::vector<Rule> rules_;
  std::vector<std::string> takes_;
};

}  // namespace moka::devices::neural_engine
