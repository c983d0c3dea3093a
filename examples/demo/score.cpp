// SPDX-License-Identifier: Apache-2.0
#include "demo/score.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>

#include "io/table.h"

namespace demo {
namespace {

using moka::io::Align;
using moka::io::Color;

std::string number(double value, int decimals, bool sign = false) {
  char text[64];
  std::snprintf(text, sizeof(text), sign ? "%+.*f" : "%.*f", decimals, value);
  return text;
}

std::map<int, std::vector<size_t>> by_pitch(const std::vector<Note>& notes) {
  std::map<int, std::vector<size_t>> result;
  for (size_t i = 0; i < notes.size(); ++i) result[notes[i].pitch].push_back(i);
  for (auto& [pitch, list] : result) {
    std::stable_sort(list.begin(), list.end(), [&](size_t a, size_t b) { return notes[a].start_s < notes[b].start_s; });
  }
  return result;
}

}  // namespace

Score score(const std::vector<Note>& played, const std::vector<Note>& found, double tolerance_s) {
  Score result{played.size(), found.size()};
  const auto played_by_pitch = by_pitch(played), found_by_pitch = by_pitch(found);
  std::vector<bool> used(found.size());
  for (const auto& [pitch, starts] : played_by_pitch) {
    const auto others = found_by_pitch.find(pitch);
    static const std::vector<size_t> nothing;
    const auto& candidates = others == found_by_pitch.end() ? nothing : others->second;
    // Since all notes have the same tolerance, always taking the earliest partner gives the most pairs.
    size_t next = 0;
    for (size_t p : starts) {
      Pair pair{p, std::nullopt};
      for (; next < candidates.size(); ++next) {
        const double late = std::round((found[candidates[next]].start_s - played[p].start_s) * 1e4) / 1e4;
        if (late > tolerance_s) break;
        if (late < -tolerance_s) continue;
        pair.found = candidates[next++];
        used[*pair.found] = true;
        ++result.matched;
        break;
      }
      result.pairs.push_back(pair);
    }
  }
  for (size_t f = 0; f < found.size(); ++f) {
    if (!used[f]) result.pairs.push_back({std::nullopt, f});
  }
  const auto note_of = [&](const Pair& p) -> const Note& { return p.played ? played[*p.played] : found[*p.found]; };
  std::stable_sort(result.pairs.begin(), result.pairs.end(), [&](const Pair& a, const Pair& b) {
    const Note &x = note_of(a), &y = note_of(b);
    return x.start_s != y.start_s ? x.start_s < y.start_s : x.pitch < y.pitch;
  });
  const auto matched = static_cast<double>(result.matched);
  if (!found.empty()) result.precision = matched / static_cast<double>(found.size());
  if (!played.empty()) result.recall = matched / static_cast<double>(played.size());
  if (result.matched) result.f_measure = 2 * result.precision * result.recall / (result.precision + result.recall);
  return result;
}

std::string side_by_side(const std::vector<Note>& played, const std::vector<Note>& found, const Score& score,
                         bool color) {
  moka::io::Table table(
      {"played", "at s", "for s", "found", "at s", "for s", "off by ms", ""},
      {Align::left, Align::right, Align::right, Align::left, Align::right, Align::right, Align::right, Align::left});
  for (const Pair& pair : score.pairs) {
    std::vector<std::string> row(8);
    const auto put = [&](const Note& note, size_t at) {
      row[at] = pitch_name(note.pitch);
      row[at + 1] = number(note.start_s, 3);
      row[at + 2] = number(note.duration_s, 3);
    };
    if (pair.played) put(played[*pair.played], 0);
    if (pair.found) put(found[*pair.found], 3);
    if (pair.played && pair.found) {
      row[6] = number((found[*pair.found].start_s - played[*pair.played].start_s) * 1000, 1, true);
    } else {
      row[7] = moka::io::painted(pair.played ? "missed" : "extra", Color::red, color);
    }
    table.add_row(std::move(row));
  }
  return table.render(color) + "\n" + std::to_string(score.played) + " played, " + std::to_string(score.found) +
         " found, " + std::to_string(score.matched) + " matched: precision " + number(score.precision, 3) +
         ", recall " + number(score.recall, 3) + ", F-measure " + number(score.f_measure, 3) + "\n";
}

}  // namespace demo
