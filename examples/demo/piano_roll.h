#pragma once

#include <filesystem>
#include <vector>

#include "demo/melody.h"
#include "io/picture.h"

namespace demo {

/// A piano roll of what was played (pale bars) and what was found (bold bars inside them; misses and extras in
/// colours of their own): piano keys and pitch names on the left, seconds below, legend and score on top.
moka::io::Picture piano_roll(const std::vector<Note>& played, const std::vector<Note>& found);

/// The same as a PNG file.
void draw_piano_roll(const std::filesystem::path& path, const std::vector<Note>& played,
                     const std::vector<Note>& found);

}  // namespace demo
