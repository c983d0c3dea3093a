#include "format/mlpackage/overlay.h"

#include <google/protobuf/repeated_ptr_field.h>

#include <optional>

#include "format/json_text.h"
#include "format/proto/model.pb.h"

namespace moka::format {
namespace {

using nlohmann::json;

constexpr int max_overlay_depth = 16;

std::optional<std::string> text(const json& object, const char* key) {
  auto it = object.find(key);
  if (it == object.end() || !it->is_string()) return std::nullopt;
  auto value = it->get<std::string>();
  if (value == "--") return std::nullopt;
  return value;
}

using Features = google::protobuf::RepeatedPtrField<proto::FeatureDescription>;

void apply(const json& root, const char* key, Features& features) {
  auto it = root.find(key);
  if (it == root.end() || !it->is_object()) return;
  for (proto::FeatureDescription& feature : features) {
    auto entry = it->find(feature.name());
    if (entry == it->end() || !entry->is_object()) continue;
    if (auto t = text(*entry, "MLFeatureShortDescription")) feature.set_shortdescription(*t);
  }
}

}  // namespace

Status apply_metadata_overlay(const Bytes& bytes, proto::ModelDescription& description) {
  json root = MOKA_TRY(parse_json_object(bytes, "Metadata.json", max_overlay_depth));
  auto author = text(root, "MLModelAuthorKey"), license = text(root, "MLModelLicenseKey"),
       version = text(root, "MLModelVersionStringKey"), about = text(root, "MLModelDescriptionKey");
  if (!author && !license && !version && !about) return {};
  proto::Metadata& metadata = *description.mutable_metadata();
  if (author) metadata.set_author(*author);
  if (license) metadata.set_license(*license);
  if (version) metadata.set_versionstring(*version);
  if (about) metadata.set_shortdescription(*about);
  return {};
}

Status apply_feature_overlay(const Bytes& bytes, proto::ModelDescription& description) {
  json root = MOKA_TRY(parse_json_object(bytes, "FeatureDescriptions.json", max_overlay_depth));
  apply(root, "Inputs", *description.mutable_input());
  apply(root, "Outputs", *description.mutable_output());
  apply(root, "TrainingInputs", *description.mutable_traininginput());
  return {};
}

}  // namespace moka::format
