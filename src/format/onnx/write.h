// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "format/message/rope.h"
#include "format/onnx/model.h"
#include "format/onnx/write_options.h"

namespace moka::format::onnx {

/// The content of a model file and of its file for external data. Both refer to the payloads of the model.
struct Written {
  Rope model;
  Rope data;
};

/// Tensors that are already external stay external. Error unsupported: a model of 2 GiB or more without its external
/// data.
Result<Written> write_model(const Model& model, const WriteOptions& options = {});

/// A tensor as a TensorProto.
Rope write_tensor(const Tensor& tensor);

}  // namespace moka::format::onnx
