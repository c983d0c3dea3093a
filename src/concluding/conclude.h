// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "concluding/rule.h"
#include "moka/conclusions.h"

namespace moka::concluding {

/// A trace with what the rules say of it. It points into itself.
struct Concluded {
  explicit Concluded(trace::Contents c) : contents(std::move(c)), subject(subject_of(contents)) {}
  Concluded(const Concluded&) = delete;
  trace::Contents contents;
  Subject subject;
  std::vector<Conclusion> conclusions;  ///< the most expensive first
};

/// Errors: as conclude_trace.
Result<std::unique_ptr<Concluded>> concluded(const std::string& trace, const ConclusionOptions& options);

/// Some of the events of a conclusion: the first, the longest and the last among these, in the order of time.
Events chosen_events(const Conclusion& conclusion, size_t most);

TraceConclusions to_public(const Concluded& all);

}  // namespace moka::concluding
