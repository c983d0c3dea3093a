// SPDX-License-Identifier: Apache-2.0
#include "format/mlpackage/overlay.h"

#include <google/protobuf/repeated_ptr_field.h>

#include <optional>

#include "format/json_text.h"
#include "format/proto/model.pb.h"

namespace moka::format {
namespace {

using nlohmann::json;

constexpr int max_overlay_depth = 16;

std::optional<std::string> text(const json& object, const char* key, bool verbatim) {
  auto it = object.find(key);
  if (it == object.end() || !it->is_string()) return std::nullopt;
  auto value = it->get<std::string>();
  if (value == "--" && !verbatim) return std::nullopt;
  return value;
}

using Features = google::protobuf::RepeatedPtrField<proto::FeatureDescription>;

void apply(const json& root, const char* key, bool verbatim, Features& features) {
  auto it = root.find(key);
  if (it == root.end() || !it->is_object()) return;
  for (proto::FeatureDescription& feature : features) {
    auto entry = it->find(feature.name());
    if (entry == it->end() || !entry->is_object()) continue;
    if (auto t = text(*entry, "MLFeatureShortDescription", verbatim)) feature.set_shortdescription(*t);
  }
}

}  // namespace

Status apply_metadata_overlay(const Bytes& bytes, bool verbatim, proto::ModelDescription& description) {
  json root = MOKA_TRY(parse_json_object(bytes, "Metadata.json", max_overlay_depth));
  auto author = text(root, "MLModelAuthorKey", verbatim), license = text(root, "MLModelLicenseKey", verbatim),
       version = text(root, "MLModelVersionStringKey", verbatim), about = text(root, "MLModelDescriptionKey", verbatim);
  if (!author && !license && !version && !about) return {};
  proto::Metadata& metadata = *description.mutable_metadata();
  if (author) metadata.set_author(*author);
  if (license) metadata.set_license(*license);
  if (version) metadata.set_versionstring(*version);
  if (about) metadata.set_shortdescription(*about);
  return {};
}

Status apply_feature_overlay(const Bytes& bytes, bool verbatim, proto::ModelDescription& description) {
  json root = MOKA_TRY(parse_json_object(bytes, "FeatureDescriptions.json", max_overlay_depth));
  apply(root, "Inputs", verbatim, *description.mutable_input());
  apply(root, "Outputs", verbatim, *description.mutable_output());
  apply(root, "TrainingInputs", verbatim, *description.mutable_traininginput());
  return {};
}

}  // namespace moka::format
