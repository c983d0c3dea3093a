// SPDX-License-Identifier: Apache-2.0
// Input: the JSON files of an .mlpackage.
#include <cstdint>
#include <cstdlib>

#include "format/mlpackage/manifest.h"
#include "format/mlpackage/overlay.h"
#include "format/path_guard.h"
#include "format/proto/model.pb.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  auto bytes = moka::Bytes::copy_of(std::as_bytes(std::span(data, size)));
  if (auto manifest = moka::format::parse_manifest(bytes); manifest.ok())
    for (const auto& item : manifest->items)
      if (!moka::format::normalise_inside(item.path).ok()) std::abort();
  moka::proto::ModelDescription description;
  description.add_input()->set_name("x");
  (void)moka::format::apply_metadata_overlay(bytes, true, description).ok();
  (void)moka::format::apply_feature_overlay(bytes, true, description).ok();
  return 0;
}
