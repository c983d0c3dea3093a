// SPDX-License-Identifier: Apache-2.0
// Input: a recording of a device. One that was read must be the same after writing and reading it again.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "moka/recording.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  moka::DeviceRecording recording;
  try {
    recording = moka::parse_device_recording({reinterpret_cast<const char*>(data), size});
  } catch (const moka::Exception& e) {
    if (e.kind() != moka::ErrorKind::malformed) std::abort();
    return 0;
  }
  const std::string text = moka::to_json(recording);
  if (moka::to_json(moka::parse_device_recording(text)) != text) std::abort();
  (void)moka::report_of(recording);
  (void)moka::compare_recordings(recording, recording);
  for (const moka::RecordedSetting& s : recording.settings) (void)moka::compare_placement({}, {}, s);
  return 0;
}
