// SPDX-License-Identifier: Apache-2.0
#include "demo/transcribe.h"

#include "demo/notes.h"

namespace demo {

namespace {

constexpr const char* kNotes = "Identity_1";
constexpr const char* kOnsets = "Identity_2";
constexpr size_t kPitches = 88;

std::vector<float> values(const moka::Features& outputs, const char* name) {
  auto v = outputs.array(name).as<float>();
  return {v.begin(), v.end()};
}

}  // namespace

std::vector<Note> transcribe(const moka::Model& model, std::span<const float> sound,
                             const std::function<void(size_t, size_t)>& progress) {
  const std::string& input = model.function().inputs[0].name;
  std::vector<std::vector<float>> notes, onsets;
  auto parts = windows(sound);
  for (std::vector<float>& part : parts) {
    moka::MultiArray samples(part.data(), moka::DataType::float32, {1, static_cast<int64_t>(part.size()), 1});
    moka::Features heard = model.predict({{input, samples}});
    notes.push_back(values(heard, kNotes));
    onsets.push_back(values(heard, kOnsets));
    if (progress) progress(notes.size(), parts.size());
  }
  return find_notes(unwrap(notes, kPitches, sound.size()), unwrap(onsets, kPitches, sound.size()));
}

}  // namespace demo
