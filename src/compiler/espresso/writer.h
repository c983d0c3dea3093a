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

/// Neural networks as the files that Apple's compiler writes.
namespace moka::compiler::espresso {

using nlohmann::json;
using Layer = proto::NeuralNetworkLayer;

/// What layers become.
struct Network {
  const format::ModelFile& file;
  const std::map<std::string, std::vector<int64_t>>& sizes;
  std::set<std::string> outputs;
  json layers = json::array();
  std::vector<std::string> blobs;  ///< of the weights file; blob i has the number 2 i + 1

  uint64_t add_blob(std::string bytes);
  /// Five of the legacy mapping, or of the array.
  const std::vector<int64_t>& size_of(const std::string& blob) const { return sizes.at(blob); }
};

/// A layer with the ones behind it that the compiler makes part of it.
struct Fused {
  const Layer* layer = nullptr;
  const proto::BatchnormLayerParams* norm = nullptr;
  bool relu = false, tanh = false;
  std::string top;  ///< the last one's output
};

/// What every layer has: name, type, bottom, top, ...
json layer_object(const Network& net, const Layer& layer, std::string_view type, const std::string& top);

/// The numbers of a weight as float32. Errors: unsupported (other than float32 and float16), malformed (another count).
Result<std::vector<float>> numbers(const Network& net, const proto::WeightParams& weight, uint64_t count);
std::string bytes_of(const std::vector<float>& values);

/// How one kind of layer is written; it appends to Network::layers. Error unsupported names what has no known form.
struct LayerKind {
  int type;  ///< member of NeuralNetworkLayer.layer, by field number
  Status (*write)(Network& net, const Fused& fused);
  int most_inputs = 1;
};
std::span<const LayerKind> image_kinds();
std::span<const LayerKind> elementwise_kinds();
std::span<const LayerKind> shape_kinds();

/// Which layers become one, in the order of execution.
std::vector<Fused> fuse(const google::protobuf::RepeatedPtrField<Layer>& layers, const std::set<std::string>& outputs);

/// The files but coremldata.bin, and the names of the network's outputs.
struct Written {
  std::map<std::string, Bytes> files;
  std::vector<std::string> outputs;
};
/// Errors: unsupported (a layer or a weight without a known form), those of importing.
Result<Written> write(const proto::Model& model, const format::ModelFile& file);

}  // namespace moka::compiler::espresso
