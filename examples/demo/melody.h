// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace demo {

struct Note {
  double start_s = 0;
  double duration_s = 0;
  int pitch = 60;         // MIDI: 60 is middle C, 69 is A at 440 Hz
  double velocity = 0.8;  // 0 to 1
};

/// "C4" for 60, "F#5" for 78.
std::string pitch_name(int pitch);

/// The first two phrases of the "Ode to Joy" (Beethoven, 1824, public domain) with our own chords, about thirteen
/// seconds, in order of start.
std::vector<Note> melody();

/// Plucked strings: higher partials decay faster and are slightly sharp, as on stiff strings. Mono, with the loudest
/// sample at 0.9, the same on every run. Ends when the last string is silent.
std::vector<float> synthesize(const std::vector<Note>& notes, uint32_t sample_rate);

}  // namespace demo
