// SPDX-License-Identifier: Apache-2.0
#include "format/espresso/specification.h"

#include <algorithm>

#include "format/espresso/layer_reader.h"
#include "format/proto/model.pb.h"

namespace moka::format::espresso {
namespace {

const LayerType* find_type(std::string_view name) {
  for (auto list : {image_layers(), elementwise_layers(), shape_layers()})
    for (const LayerType& type : list)
      if (type.name == name) return &type;
  return nullptr;
}

Status convert(LayerReader& layer) {
  const LayerType* type = find_type(layer.type);
  if (type == nullptr) return fail(ErrorCode::unsupported, "layers of this type of compiled neural networks");
  return type->read(layer);
}

Status convert_layers(Conversion& to) {
  std::vector<LayerReader> layers;
  layers.reserve(to.net.layers.size());
  for (const auto& object : to.net.layers) {
    MOKA_TRY_IN(layers.emplace_back(object, to).begin(), "model.espresso.net");
    to.blobs.insert(layers.back().bottoms.begin(), layers.back().bottoms.end());
    to.blobs.insert(layers.back().tops.begin(), layers.back().tops.end());
    to.names.insert(layers.back().name);
  }
  for (LayerReader& layer : layers) {
    Status s = convert(layer);
    if (!s.ok()) return std::move(s.error()).in(layer.place());
  }
  return {};
}

/// Whether arrays enter with the rank in the description.
bool exact_arrays(const Network& net, const proto::ModelDescription& description,
                  const std::vector<uint64_t>& optionals) {
  constexpr size_t array_mapping = 2;
  if (optionals.size() > array_mapping && optionals[array_mapping] == 1) return true;
  for (const auto& input : description.input()) {
    auto it = net.shapes.find(input.name());
    if (!input.type().has_multiarraytype() || it == net.shapes.end() || it->second.rank == 0) continue;
    if (it->second.rank != axis_count && it->second.rank == input.type().multiarraytype().shape_size()) return true;
  }
  return false;
}

bool rank4_images(const Network& net, const proto::ModelDescription& description) {
  return std::any_of(description.input().begin(), description.input().end(), [&](const auto& input) {
    auto it = net.shapes.find(input.name());
    return input.type().has_imagetype() && it != net.shapes.end() && it->second.rank == 4;
  });
}

template <class Params>
Status fill(const Network& net, const proto::ModelDescription& description, const std::vector<uint64_t>& optionals,
            Params& params, std::vector<Payload>& payloads) {
  if (exact_arrays(net, description, optionals)) params.set_arrayinputshapemapping(proto::EXACT_ARRAY_MAPPING);
  if (rank4_images(net, description)) params.set_imageinputshapemapping(proto::RANK4_IMAGE_MAPPING);
  for (const auto& input : description.input()) {
    auto it = net.transforms.find(input.name());
    if (!input.type().has_imagetype() || it == net.transforms.end()) continue;
    const ImageTransform& t = it->second;
    if (t.scale == 1 && t.red == 0 && t.green == 0 && t.blue == 0 && t.gray == 0) continue;
    auto& preprocessing = *params.add_preprocessing();
    preprocessing.set_featurename(input.name());
    auto& scaler = *preprocessing.mutable_scaler();
    scaler.set_channelscale(t.scale);
    scaler.set_redbias(t.red);
    scaler.set_greenbias(t.green);
    scaler.set_bluebias(t.blue);
    // Some files store the bias of a grayscale image in the three color channels.
    const bool in_colors = input.type().imagetype().colorspace() == proto::ImageFeatureType::GRAYSCALE && t.gray == 0 &&
                           t.red == t.green && t.red == t.blue;
    scaler.set_graybias(in_colors ? t.red : t.gray);
  }
  Conversion to{net, *params.mutable_layers(), payloads, {}, {}};
  return convert_layers(to);
}

}  // namespace

Status to_specification(const Network& net, const CoreMLData& data, const std::vector<uint64_t>& optionals,
                        proto::Model& model, std::vector<Payload>& payloads) {
  const auto& description = model.description();
  switch (data.type) {
    case 403: {
      auto& c = *model.mutable_neuralnetworkclassifier();
      c.set_labelprobabilitylayername(data.probability_layer);
      if (data.int64_labels.empty())
        for (const auto& label : data.string_labels) c.mutable_stringclasslabels()->add_vector(label);
      else
        for (int64_t label : data.int64_labels) c.mutable_int64classlabels()->add_vector(label);
      return fill(net, description, optionals, c, payloads);
    }
    case 303: return fill(net, description, optionals, *model.mutable_neuralnetworkregressor(), payloads);
    default: return fill(net, description, optionals, *model.mutable_neuralnetwork(), payloads);
  }
}

}  // namespace moka::format::espresso
