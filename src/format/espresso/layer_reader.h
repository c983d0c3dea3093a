// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <set>
#include <span>

#include "format/espresso/network.h"
#include "format/mlmodel/payload_cutter.h"
#include "format/proto/neural_network.pb.h"

namespace moka::format::espresso {

using Layers = google::protobuf::RepeatedPtrField<proto::NeuralNetworkLayer>;

/// A network during the conversion of its layers to a specification.
struct Conversion {
  const Network& net;
  Layers& layers;
  std::vector<Payload>& payloads;
  std::set<std::string> blobs;  ///< names of blobs in use
  std::set<std::string> names;  ///< names of layers
};

/// One layer of the file: its keys, and the layer it becomes. Every error names the layer and its type (`place`).
class LayerReader {
 public:
  LayerReader(const nlohmann::json& object, Conversion& to) : object_(object), to_(to) {}
  /// Reads the keys that all layers have: type, name, bottom, top.
  Status begin();

  std::string type, name;
  std::vector<std::string> bottoms, tops;

  Status arity(size_t bottoms_min, size_t bottoms_max, size_t tops_count = 1) const;

  bool has(const char* key) const { return object_.contains(key); }
  Result<int64_t> integer(const char* key, int64_t fallback) const;
  /// An integer from 0 to 2^31 - 1.
  Result<uint64_t> size(const char* key, uint64_t fallback) const;
  Result<float> number(const char* key, float fallback) const;
  Result<bool> flag(const char* key) const;
  /// Whether `attributes` has this key with a nonzero value.
  bool attribute(const char* key) const;
  const nlohmann::json& object() const { return object_; }

  /// The sizes of a blob; sizes of 1 and no rank when the file does not list it.
  const BlobShape& shape(const std::string& blob) const;
  /// The rank of the blob if it is an array with its own rank; 0 for blobs with the five legacy axes.
  int nd_rank(const std::string& blob) const;

  /// Appends a layer with these blobs. The specification owns it.
  proto::NeuralNetworkLayer& add() { return add(name, bottoms, tops); }
  proto::NeuralNetworkLayer& add(const std::string& layer, const std::vector<std::string>& inputs,
                                 const std::vector<std::string>& outputs);
  /// Appends a layer and passes its one output through the activations that the file marks as fused.
  Result<proto::NeuralNetworkLayer*> add_fused(const char* relu_key, const char* tanh_key);
  /// An unused name for a blob or a layer.
  std::string new_blob(const std::string& wish);
  std::string new_layer(const std::string& wish);

  /// The first `size` bytes of the blob that `key` refers to. Error malformed when it has fewer.
  Result<Bytes> blob(const char* key, uint64_t size) const;
  Result<Bytes> blob(const nlohmann::json& reference, std::string_view what, uint64_t size) const;
  void set(proto::WeightParams* weight, Payload::Kind kind, Bytes bytes);
  /// Reads `count` numbers: half floats if `key`_f16 exists, 8-bit integers if the object `weights` has them, otherwise
  /// float32. `channels`: the number of scales that 8-bit integers may have.
  Status weights(proto::WeightParams* weight, const char* key, uint64_t count, uint64_t channels);
  Status biases(proto::WeightParams* weight, const char* key, uint64_t count);
  /// The product; an error if it exceeds 2^48.
  Result<uint64_t> product(std::initializer_list<uint64_t> sizes) const;

  Error malformed(std::string_view what) const { return fail(ErrorCode::malformed, what); }
  Error unsupported(std::string_view what) const { return fail(ErrorCode::unsupported, what); }
  std::string place() const;

 private:
  const nlohmann::json& object_;
  Conversion& to_;
};

/// The reader of one type of layer.
struct LayerType {
  std::string_view name;
  Status (*read)(LayerReader&);
};

std::span<const LayerType> image_layers();
std::span<const LayerType> elementwise_layers();
std::span<const LayerType> shape_layers();

}  // namespace moka::format::espresso
