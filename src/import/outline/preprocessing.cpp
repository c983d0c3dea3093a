// SPDX-License-Identifier: Apache-2.0
#include "format/espresso/network.h"
#include "format/proto/model.pb.h"
#include "import/outline/parts.h"

namespace moka::import {
namespace {

const proto::FeatureDescription* input_of(const proto::Model& model, const std::string& name) {
  const proto::FeatureDescription* only = nullptr;
  int images = 0;
  for (const auto& input : model.description().input()) {
    if (input.name() == name) return &input;
    if (input.type().has_imagetype() && ++images == 1) only = &input;
  }
  // Old files leave the name empty. The preprocessing then belongs to the only image.
  return name.empty() && images == 1 ? only : nullptr;
}

/// Red, green and blue in the order of the channels, or the one of gray.
std::vector<double> in_order(const std::string& channels, float red, float green, float blue, float gray) {
  if (channels == "grayscale") return {gray};
  if (channels == "BGR") return {blue, green, red};
  return {red, green, blue};
}

template <class Network>
void add_network(const proto::Model& model, const Network& network, Outline& out) {
  for (const auto& p : network.preprocessing()) {
    Outline::Preprocessing made;
    const proto::FeatureDescription* input = input_of(model, p.featurename());
    made.input = input != nullptr ? input->name() : p.featurename();
    if (input != nullptr && input->type().has_imagetype()) made.channels = channels_of(input->type().imagetype());
    if (p.has_scaler()) {
      const auto& s = p.scaler();
      made.stored = "scaler";
      made.scale = {s.channelscale()};
      made.bias = in_order(made.channels, s.redbias(), s.greenbias(), s.bluebias(), s.graybias());
    } else if (p.has_meanimage()) {
      made.stored = "mean image";
      made.mean_image = p.meanimage().meanimage_size();
    } else {
      continue;
    }
    out.preprocessing.push_back(std::move(made));
  }
}

}  // namespace

std::string channels_of(const proto::ImageFeatureType& image) {
  switch (image.colorspace()) {
    case proto::ImageFeatureType::RGB: return "RGB";
    case proto::ImageFeatureType::BGR: return "BGR";
    case proto::ImageFeatureType::GRAYSCALE:
    case proto::ImageFeatureType::GRAYSCALE_FLOAT16: return "grayscale";
    default: return "";
  }
}

void outline_preprocessing(const proto::Model& model, Outline& out) {
  if (model.has_neuralnetwork()) add_network(model, model.neuralnetwork(), out);
  if (model.has_neuralnetworkclassifier()) add_network(model, model.neuralnetworkclassifier(), out);
  if (model.has_neuralnetworkregressor()) add_network(model, model.neuralnetworkregressor(), out);
}

void outline_transforms(const proto::Model& model, const format::ModelFile& file, Outline& out) {
  std::map<std::string, format::espresso::ImageTransform> transforms;
  if (auto net = file.weights().file("model.espresso.net"); net.ok())
    if (auto parsed = format::espresso::parse_net(*net); parsed.ok()) transforms = std::move(parsed->transforms);
  if (transforms.empty())
    if (auto bin = file.weights().file("model/coremldata.bin"); bin.ok())
      if (auto parsed = format::espresso::parse_transforms(*bin); parsed.ok()) transforms = std::move(*parsed);
  for (const auto& [name, t] : transforms) {
    Outline::Preprocessing made;
    made.input = name;
    made.stored = "scaler";
    const proto::FeatureDescription* input = input_of(model, name);
    made.channels = input != nullptr && input->type().has_imagetype() ? channels_of(input->type().imagetype())
                    : t.grayscale                                     ? "grayscale"
                    : t.bgr                                           ? "BGR"
                                                                      : "RGB";
    made.scale = {t.scale};
    made.bias = in_order(made.channels, t.red, t.green, t.blue, t.gray);
    out.preprocessing.push_back(std::move(made));
  }
}

}  // namespace moka::import
