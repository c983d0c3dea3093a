// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "demo/melody.h"

namespace demo {

/// A played note and the matching found note; one of them is empty if there is no match.
struct Pair {
  std::optional<size_t> played, found;
};

struct Score {
  size_t played = 0, found = 0, matched = 0;
  double precision = 0, recall = 0, f_measure = 0;  // 0 where undefined
  std::vector<Pair> pairs;                          // ordered by time
};

/// The most pairs of equal pitch whose starts are at most `tolerance_s` apart, each note used once: the onset-only
/// transcription score of the MIR literature. Differences are rounded to 0.1 ms first.
Score score(const std::vector<Note>& played, const std::vector<Note>& found, double tolerance_s = 0.05);

/// Played and found notes side by side, then the totals. `color`: print misses in red.
std::string side_by_side(const std::vector<Note>& played, const std::vector<Note>& found, const Score& score,
                         bool color = false);

}  // namespace demo
