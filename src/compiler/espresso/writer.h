// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <climits>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "format/espresso/network.h"
#include "format/model_file.h"
#include "format/proto/neural_network.pb.h"

/// Writes neural networks in the files of Apple's compiler.
namespace moka::compiler::espresso {

using nlohmann::json;
using Layer = proto::NeuralNetworkLayer;

/// The layers during conversion.
struct Network {
  const format::ModelFile& file;
  const std::map<std::string, std::vector<int64_t>>& sizes;
  std::set<std::string> outputs;
  json layers = json::array();
  std::vector<std::string> blobs;  ///< contents of the weights file; blob i has number 2 i + 1

  uint64_t add_blob(std::string bytes);
  /// The sizes of a blob: five in the legacy mapping, otherwise those of the array.
  const std::vector<int64_t>& size_of(const std::string& blob) const { return sizes.at(blob); }
};

/// A layer and the following layers that the compiler merges into it.
struct Fused {
  const Layer* layer = nullptr;
  const proto::BatchnormLayerParams* norm = nullptr;
  bool relu = false, tanh = false;
  std::string top;  ///< output of the last layer
};

/// The keys that every layer has: name, type, bottom, top, ...
json layer_object(const Network& net, const Layer& layer, std::string_view type, const std::string& top);

/// The numbers of a weight as float32. Errors: unsupported (neither float32 nor float16), malformed (wrong count).
Result<std::vector<float>> numbers(const Network& net, const proto::WeightParams& weight, uint64_t count);
std::string bytes_of(const std::vector<float>& values);

/// Writes one kind of layer to Network::layers. Error unsupported names what has no known form.
struct LayerKind {
  int type;  ///< member of NeuralNetworkLayer.layer, by field number
  Status (*write)(Network& net, const Fused& fused);
  int most_inputs = 1;
};
std::span<const LayerKind> image_kinds();
std::span<const LayerKind> elementwise_kinds();
std::span<const LayerKind> shape_kinds();

/// Groups layers that become one, in order of execution.
std::vector<Fused> fuse(const google::protobuf::RepeatedPtrField<Layer>& layers, const std::set<std::string>& outputs);

/// All files except coremldata.bin, and the names of the network's outputs.
struct Written {
  std::map<std::string, Bytes> files;
  std::vector<std::string> outputs;
};
/// What has no known form, for the user.
struct Missing {
  std::string layer, type;  ///< a layer's name, and Core ML's name of its type; empty: it is not about one layer
  std::string what;         ///< "weights that are neither float32 nor float16"
};
/// Errors: unsupported (a layer or a weight without a known form, described in `missing`), those of importing.
Result<Written> write(const proto::Model& model, const format::ModelFile& file, Missing& missing);

}  // namespace moka::compiler::espresso
