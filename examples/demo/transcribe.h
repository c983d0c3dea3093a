// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "demo/melody.h"
#include "moka/model.h"

namespace demo {

/// The notes that `model` hears in mono sound at kSampleRate. `model` is Basic Pitch, or has the same inputs and
/// outputs. `progress(done, total)` is called after each window. Throws moka::Exception.
std::vector<Note> transcribe(const moka::Model& model, std::span<const float> sound,
                             const std::function<void(size_t, size_t)>& progress = {});

}  // namespace demo
