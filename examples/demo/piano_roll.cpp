// SPDX-License-Identifier: Apache-2.0
#include "demo/piano_roll.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>

#include "demo/canvas.h"
#include "demo/score.h"
#include "io/file.h"
#include "moka/files.h"

namespace demo {
namespace {

constexpr Rgb kPaper{252, 251, 248}, kLane{241, 240, 235}, kRule{222, 220, 212}, kOctave{196, 193, 182};
constexpr Rgb kInk{45, 43, 40}, kSoftInk{125, 121, 113}, kBlackKey{52, 50, 48}, kWhiteKey{255, 255, 255};
constexpr Rgb kPlayed{178, 201, 226}, kPlayedEdge{110, 148, 190}, kHit{31, 122, 92}, kExtra{214, 120, 18};
constexpr Rgb kMissed{250, 214, 210}, kMissedEdge{205, 60, 52};

constexpr double kLaneHeight = 20, kSecond = 104, kKeys = 92, kMargin = 28, kTop = 112, kBottom = 58;
constexpr double kHeading = 26;   // size of the title
constexpr double kLongest = 120;  // seconds that are drawn at most

bool is_black(int pitch) {
  const int semitone = ((pitch % 12) + 12) % 12;
  return semitone == 1 || semitone == 3 || semitone == 6 || semitone == 8 || semitone == 10;
}

struct Layout {
  int lowest = 60, highest = 72;
  double seconds = 1;

  size_t width() const { return static_cast<size_t>(right() + kMargin); }
  size_t height() const { return static_cast<size_t>(floor() + kBottom); }
  double left() const { return kMargin + kKeys; }
  double right() const { return x(seconds); }
  double x(double s) const { return left() + s * kSecond; }
  double y(int pitch) const { return kTop + (highest - pitch) * kLaneHeight; }
  double floor() const { return y(lowest) + kLaneHeight; }
};

Layout layout_for(const std::vector<Note>& played, const std::vector<Note>& found) {
  Layout layout;
  bool first = true;
  double end = 1;
  for (const auto* notes : {&played, &found}) {
    for (const Note& note : *notes) {
      const int pitch = std::clamp(note.pitch, 0, 127);
      layout.lowest = first ? pitch : std::min(layout.lowest, pitch);
      layout.highest = first ? pitch : std::max(layout.highest, pitch);
      first = false;
      end = std::max(end, note.start_s + note.duration_s);
    }
  }
  layout.lowest -= 2;
  layout.highest += 2;
  layout.seconds = std::ceil(std::min(end, kLongest) * 2 + 0.2) / 2;
  return layout;
}

void draw_grid(Canvas& canvas, const Layout& l) {
  const double span = l.right() - l.left();
  for (int pitch = l.lowest; pitch <= l.highest; ++pitch) {
    if (is_black(pitch)) canvas.rect(l.left(), l.y(pitch), span, kLaneHeight, kLane);
  }
  for (double s = 0; s <= l.seconds + 1e-9; s += 0.5) {
    const bool whole = std::abs(s - std::round(s)) < 1e-9;
    canvas.rect(std::round(l.x(s)), kTop, 1, l.floor() - kTop, kRule, whole ? 1 : 0.45);
    if (!whole) continue;
    const std::string text = std::to_string(std::lround(s));
    canvas.rect(std::round(l.x(s)), l.floor(), 1, 6, kSoftInk);
    canvas.text(l.x(s) - canvas.text_width(text) / 2, l.floor() + 12, text, kSoftInk);
  }
  for (int pitch = l.lowest; pitch <= l.highest; ++pitch) {
    if (((pitch % 12) + 12) % 12 == 0) canvas.rect(l.left(), l.y(pitch) + kLaneHeight - 1, span, 1, kOctave);
  }
  canvas.rect(l.left(), l.floor(), span + 1, 1, kSoftInk);
  const std::string unit = "seconds";
  canvas.text(l.left() + (span - canvas.text_width(unit)) / 2, l.floor() + 34, unit, kSoftInk);
}

void draw_keys(Canvas& canvas, const Layout& l) {
  canvas.rect(kMargin, kTop, kKeys, l.floor() - kTop, kWhiteKey);
  for (int pitch = l.lowest; pitch <= l.highest; ++pitch) {
    const double top = l.y(pitch);
    if (is_black(pitch)) {
      canvas.rect(kMargin, top + kLaneHeight / 2, kKeys, 1, kRule);
      canvas.rect(kMargin, top + 1, kKeys * 0.52, kLaneHeight - 2, kBlackKey, 1, 2.5);
      continue;
    }
    if (!is_black(pitch + 1) && pitch != l.highest) canvas.rect(kMargin, top, kKeys, 1, kRule);
    const std::string name = pitch_name(pitch);
    const bool c = name[0] == 'C';
    canvas.text(kMargin + kKeys - canvas.text_width(name) - 8, top + (kLaneHeight - canvas.text_height()) / 2, name,
                c ? kInk : kSoftInk);
  }
  canvas.outline(kMargin, kTop, kKeys, l.floor() - kTop, 1, kSoftInk);
}

void draw_bar(Canvas& canvas, const Layout& l, const Note& note, double inset, Rgb fill, const Rgb* edge) {
  const double from = l.x(std::clamp(note.start_s, 0.0, l.seconds));
  const double to = l.x(std::clamp(note.start_s + note.duration_s, 0.0, l.seconds));
  const double width = std::max(3.0, to - from), height = kLaneHeight - 2 * inset;
  const double y = l.y(std::clamp(note.pitch, 0, 127)) + inset;
  canvas.rect(from, y, width, height, fill, 1, 4);
  if (edge) canvas.outline(from, y, width, height, 1.2, *edge, 4);
}

void draw_header(Canvas& canvas, const Layout& l, const Score& result) {
  canvas.text(kMargin, 26, "Played and found", kInk, kHeading);
  char text[96];
  std::snprintf(text, sizeof(text), "F %.3f   precision %.3f   recall %.3f", result.f_measure, result.precision,
                result.recall);
  if (kMargin + canvas.text_width("Played and found", kHeading) + 40 + canvas.text_width(text) < l.right()) {
    canvas.text(l.right() - canvas.text_width(text), 30, text, kSoftInk);
  }
  struct Entry {
    std::string text;
    Rgb fill;
    const Rgb* edge;
    double inset;
  };
  const Entry entries[] = {{"played " + std::to_string(result.played), kPlayed, &kPlayedEdge, 0},
                           {"matched " + std::to_string(result.matched), kHit, nullptr, 4},
                           {"missed " + std::to_string(result.played - result.matched), kMissed, &kMissedEdge, 0},
                           {"extra " + std::to_string(result.found - result.matched), kExtra, nullptr, 4}};
  double x = kMargin;
  for (const Entry& e : entries) {
    canvas.rect(x, 68 + e.inset, 34, 18 - 2 * e.inset, e.fill, 1, 4);
    if (e.edge) canvas.outline(x, 68 + e.inset, 34, 18 - 2 * e.inset, 1.2, *e.edge, 4);
    canvas.text(x + 44, 70, e.text, kInk);
    x += 44 + canvas.text_width(e.text) + 32;
  }
}

}  // namespace

moka::Image piano_roll(const std::vector<Note>& played, const std::vector<Note>& found) {
  const Layout layout = layout_for(played, found);
  const Score result = score(played, found);
  Canvas canvas(std::max<size_t>(layout.width(), 760), layout.height(), kPaper);
  draw_grid(canvas, layout);
  draw_keys(canvas, layout);
  for (const Pair& pair : result.pairs) {
    if (!pair.played) continue;
    const bool hit = pair.found.has_value();
    draw_bar(canvas, layout, played[*pair.played], 1.5, hit ? kPlayed : kMissed, hit ? &kPlayedEdge : &kMissedEdge);
  }
  for (const Pair& pair : result.pairs) {
    if (pair.found) draw_bar(canvas, layout, found[*pair.found], 5.5, pair.played ? kHit : kExtra, nullptr);
  }
  draw_header(canvas, layout, result);
  return canvas.picture();
}

void draw_piano_roll(const std::filesystem::path& path, const std::vector<Note>& played,
                     const std::vector<Note>& found) {
  moka::io::write_file(path, moka::encode_png(piano_roll(played, found)));
}

}  // namespace demo
