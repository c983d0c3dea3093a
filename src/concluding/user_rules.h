// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "concluding/rule.h"

namespace moka::concluding {

/// A rule of a file: which events it is about, and from when on it concludes. The texts are patterns, in which "*"
/// stands for any text; empty ones match all.
struct UserRule {
  std::string name, says, remedy;
  std::string lane, kind, event, model, device, kernel, reason;
  double least_count = 1, least_per_prediction = 0, least_seconds = 0, least_each = 0, least_share = 0,
         least_of_predictions = 0;
};

/// Error malformed: it is not JSON, or a member is unknown or has another type. `what`: what errors call it.
Result<std::vector<UserRule>> parse_user_rules(std::string_view json, const std::string& what);

void conclude(const UserRule& rule, const Subject& subject, std::vector<Conclusion>& to);

}  // namespace moka::concluding
