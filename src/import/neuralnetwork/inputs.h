// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "format/proto/model.pb.h"
#include "import/neuralnetwork/network.h"

/// How a neural network takes its inputs.
namespace moka::import::nn {

/// The parts that all three kinds of neural networks have.
struct Parts {
  const google::protobuf::RepeatedPtrField<proto::NeuralNetworkLayer>* layers;
  const google::protobuf::RepeatedPtrField<proto::NeuralNetworkPreprocessing>* preprocessing;
  bool exact_arrays;  ///< arrays enter with their own rank, not as rank 5
  bool rank4_images;
};

Parts parts_of(const proto::Model& model);

/// The blob of input `x`, after the preprocessing that the network has for it.
Result<Blob> input_blob(Network& net, Value* x, const proto::FeatureDescription& feature, const Parts& parts);

/// Adds the blobs of the inputs and of all layers.
Status add_blobs(Network& net, const proto::Model& model, const Features& features);

}  // namespace moka::import::nn
