#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kernel/kernel.h"

namespace moka::devices::neural_engine {

/// What a rule asks of an operation; it holds when all its conditions do.
struct Condition {
  enum class What : uint8_t { rank, dimension, channels, kernel, dilation, reduced, spatial, type, shape };
  What what;
  int64_t above = 0;  ///< all but the last two: that the largest one is above
  std::string word;   ///< of type and shape: "fp32", "dynamic"
};

/// An operation that fits is refused.
struct Rule {
  std::string name;
  std::vector<std::string> operations, except;  ///< names of types; "*": all
  std::vector<Condition> when;
  std::string reason, remedy, source;
};

class Rules {
 public:
  /// Rules as text, in sections that begin with "[name]" and consist of lines "key = value"; what follows "#" at the
  /// start of a line is a comment. The section "[takes]" lists operations that can run at all; one of the same name
  /// replaces an earlier rule. Errors: malformed, with the line.
  Status add(std::string_view text);
  /// Why the operation stays off; empty: it does not. With the remedy and the source.
  std::string refusal(const kernel::MatchCall& call) const;
  const std::vector<Rule>& rules() const { return rules_; }

 private:
  std::vector<Rule> rules_;
  std::vector<std::string> takes_;
};

}  // namespace moka::devices::neural_engine
