// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "format/onnx/model.h"
#include "format/weights/weight_store.h"

namespace moka::format::onnx {

/// Decodes a model. Payloads refer to `bytes`. Fields that are not known are skipped. Errors: malformed (bytes that do
/// not decode, graphs or types that nest too deeply, too many messages).
Result<Model> read_model(const Bytes& bytes);

/// Decodes a TensorProto, as the files of ONNX's test data hold it. Errors as read_model.
Result<Tensor> read_tensor(const Bytes& bytes);

/// A model with the files beside it that hold external data.
struct ModelFile {
  Model model;
  WeightStore files;
};
/// Opens a file, which is mapped. Errors: not_found, io, and those of read_model.
Result<ModelFile> open_model(const std::string& path);

/// The number of elements. Errors: malformed (negative or too large dimensions).
Result<int64_t> count_of(const Tensor& tensor);

/// The elements as little-endian raw data. Does not copy raw data, external data and packed floats; decodes the other
/// forms. Errors: malformed (more or fewer elements than `dims` says, data in several places, a path outside of the
/// model's folder), unsupported (strings, unknown types), not_found, io.
Result<Bytes> contents(const Tensor& tensor, const WeightStore& files);

}  // namespace moka::format::onnx
