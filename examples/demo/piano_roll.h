// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <vector>

#include "demo/melody.h"
#include "moka/feature.h"

namespace demo {

/// A piano roll of the played notes (pale bars) and the found notes (bold bars inside them; misses and extra notes have
/// their own colors). Piano keys and pitch names are on the left, seconds below, legend and score on top.
moka::Image piano_roll(const std::vector<Note>& played, const std::vector<Note>& found);

/// The same as a PNG file.
void draw_piano_roll(const std::filesystem::path& path, const std::vector<Note>& played,
                     const std::vector<Note>& found);

}  // namespace demo
