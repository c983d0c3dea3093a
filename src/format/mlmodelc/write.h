// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/error.h"
#include "format/mlmodelc/coremldata.h"

namespace google::protobuf {
class MessageLite;
}
namespace moka::proto {
class Model;
class ModelDescription;
}  // namespace moka::proto

/// Parts of a compiled model's folder.
namespace moka::format {

/// Sections of analytics/coremldata.bin: a name, then keys and values.
using Analytics = std::vector<std::pair<std::string, std::vector<std::pair<std::string, std::string>>>>;
std::string write_analytics(const Analytics& sections);

/// A list of strings (modelNames/coremldata.bin).
std::string write_strings(const std::vector<std::string>& list);

/// Base64 of the SHA-256 of the bytes.
std::string hash(const Bytes& bytes);

/// The bytes of a message with maps ordered by key: the same message gives the same bytes.
std::string serialize(const google::protobuf::MessageLite& message);
/// serialize of a description. `with_metadata`: also an empty metadata message is written.
std::string serialize_description(const proto::ModelDescription& description, bool with_metadata);

/// "weights/weight.bin" for "@model_path/weights/weight.bin". Error malformed for names that leave the folder.
Result<std::string> weight_file_name(std::string_view name);

/// Class labels and the probabilities' layer of a neural network classifier.
void set_class_labels(const proto::Model& model, CoreMLData& data);

/// Names of a pipeline's models, model0, model1, ... where the specification has none.
std::vector<std::string> stage_names(const proto::Model& pipeline);

/// The bytes of each model of a pipeline, `type` being the field number of its kind. Error malformed.
Result<std::vector<Bytes>> stage_specifications(const Bytes& specification, uint32_t type);

}  // namespace moka::format
