// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/error.h"

/// The files of a compiled neural network: model.espresso.net (layers, JSON), .shape (sizes of the blobs, JSON) and
/// .weights (numbers). docs/compiled-models.md describes them.
namespace moka::format::espresso {

/// Axis numbers as used in the files.
enum Axis : int { axis_w = 0, axis_h = 1, axis_k = 2, axis_n = 3, axis_seq = 4, axis_count = 5 };

/// Sizes of a blob. An axis that the file does not name has size 1.
struct BlobShape {
  int64_t size[axis_count] = {1, 1, 1, 1, 1};  ///< by Axis
  int rank = 0;                                ///< 0: not specified
};

/// Image preprocessing: pixel * scale + bias of its channel.
struct ImageTransform {
  float scale = 1, red = 0, green = 0, blue = 0, gray = 0;
  bool bgr = false;
  bool grayscale = false;
};

struct Network {
  std::string storage;  ///< name of the weights file, beside the .net file
  std::vector<nlohmann::json> layers;
  std::map<std::string, ImageTransform> transforms;
  std::map<std::string, BlobShape> shapes;
  std::map<uint64_t, Bytes> blobs;  ///< views of the weights file
};

/// All functions: errors malformed (names the file and the place), unsupported (a compressed or unknown version).

/// Fills `storage`, `layers` and `transforms`.
Result<Network> parse_net(const Bytes& file);
Result<std::map<std::string, BlobShape>> parse_shapes(const Bytes& file);
Result<std::map<uint64_t, Bytes>> parse_weights(const Bytes& file);
/// Parses model/coremldata.bin: the transforms of the image inputs.
Result<std::map<std::string, ImageTransform>> parse_transforms(const Bytes& file);
/// Parses neural_network_optionals/coremldata.bin: words, of which the third is 1 for EXACT_ARRAY_MAPPING.
std::vector<uint64_t> parse_optionals(const Bytes& file);

/// Limit on the memory for parsing a JSON file of `size` bytes.
constexpr size_t json_memory(size_t size) { return size * 16; }

}  // namespace moka::format::espresso
