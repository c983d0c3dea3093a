// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>

#include "base/half.h"
#include "compiler/espresso/writer.h"
#include "format/mlmodelc/layer_names.h"
#include "format/mlmodelc/stream.h"
#include "format/proto/model.pb.h"
#include "import/neuralnetwork/blob_sizes.h"
#include "import/neuralnetwork/network.h"

namespace moka::compiler::espresso {
namespace {

using format::WeightData;

template <class List>
std::string joined(const List& names) {
  std::string out;
  for (const std::string& name : names) out += (out.empty() ? "" : ",") + name;
  return out;
}

/// The ids of padding are even, those of numbers odd; numbers begin at multiples of 64 bytes.
std::string weights_file(const std::vector<std::string>& blobs) {
  constexpr size_t alignment = 64;
  const uint64_t count = blobs.size() * 2;
  format::Writer table;
  table.number<uint64_t>(count);
  std::string data;
  const size_t begin = sizeof(uint64_t) * (1 + 2 * count);
  for (uint64_t i = 0; i < blobs.size(); ++i) {
    const size_t padding = (alignment - (begin + data.size()) % alignment) % alignment;
    data.append(padding, '\0');
    data += blobs[i];
    for (uint64_t number : {2 * i, static_cast<uint64_t>(padding), 2 * i + 1, static_cast<uint64_t>(blobs[i].size())})
      table.number<uint64_t>(number);
  }
  return table.out + data;
}

json shape_of(const std::vector<int64_t>& sizes, bool exact) {
  static constexpr const char* names[] = {"w", "h", "k", "n", "seq"};
  json out{{"w", 1}, {"h", 1}, {"k", 1}, {"n", 1}};
  for (size_t i = 0; i < sizes.size(); ++i) {
    const size_t axis = sizes.size() - 1 - i;
    if (axis < 4 || sizes[i] != 1 || exact) out[names[axis]] = sizes[i];
  }
  if (exact) out["_rank"] = sizes.size();
  return out;
}

struct Image {
  std::string name;
  proto::NeuralNetworkImageScaler scaler;
  bool bgr = false, gray = false;
};

template <class Params>
Result<std::vector<Image>> images_of(const proto::ModelDescription& description, const Params& params) {
  std::vector<Image> out;
  for (const auto& input : description.input()) {
    if (!input.type().has_imagetype()) continue;
    Image image{input.name(), {}, false, false};
    image.scaler.set_channelscale(1);
    image.bgr = input.type().imagetype().colorspace() == proto::ImageFeatureType::BGR;
    image.gray = input.type().imagetype().colorspace() == proto::ImageFeatureType::GRAYSCALE;
    for (const auto& p : params.preprocessing()) {
      if (p.featurename() != input.name() && !p.featurename().empty()) continue;
      if (!p.has_scaler()) return fail(ErrorCode::unsupported, "a mean image");
      image.scaler = p.scaler();
    }
    out.push_back(std::move(image));
  }
  const auto of_array = [&](const auto& p) {
    return std::none_of(out.begin(), out.end(),
                        [&](const Image& image) { return image.name == p.featurename() || p.featurename().empty(); });
  };
  if (std::any_of(params.preprocessing().begin(), params.preprocessing().end(), of_array))
    return fail(ErrorCode::unsupported, "preprocessing of an array");
  return out;
}

json transform(const Image& image) {
  const auto& s = image.scaler;
  return {{"scale", s.channelscale()},
          {"bias_r", s.redbias()},
          {"bias_g", s.greenbias()},
          {"bias_b", s.bluebias()},
          {"bias_a", s.graybias()},
          {"center_mean", 0},
          {"is_network_bgr", image.bgr ? 1 : 0}};
}

std::string images_file(const std::vector<Image>& images) {
  format::Writer w;
  for (int map = 0; map < 8; ++map) {
    w.number<uint64_t>(images.size());
    for (const Image& image : images) {
      const auto& s = image.scaler;
      const float values[] = {1,
                              image.bgr ? 1.0f : 0.0f,
                              image.gray ? 1.0f : 0.0f,
                              s.bluebias(),
                              s.greenbias(),
                              s.redbias(),
                              s.graybias(),
                              s.channelscale()};
      w.string(image.name);
      w.number<float>(values[map]);
    }
  }
  return std::move(w.out);
}

const LayerKind* kind_of(int type) {
  for (auto list : {image_kinds(), elementwise_kinds(), shape_kinds()})
    for (const LayerKind& kind : list)
      if (kind.type == type) return &kind;
  return nullptr;
}

/// The file separates blob names in lists with commas, and holds one shape for each name.
Status check_names(const google::protobuf::RepeatedPtrField<Layer>& layers, const proto::ModelDescription& d) {
  std::set<std::string> made;
  const auto make = [&](const std::string& name) -> Status {
    if (name.find(',') != std::string::npos) return fail(ErrorCode::unsupported, "blob '", name, "' with a comma");
    if (!made.insert(name).second) return fail(ErrorCode::unsupported, "blob '", name, "', which is written twice");
    return {};
  };
  for (const auto& input : d.input()) MOKA_TRY(make(input.name()));
  for (const Layer& layer : layers) {
    if (layer.output_size() != 1) return fail(ErrorCode::unsupported, layer.output_size(), " results of one layer");
    MOKA_TRY(make(layer.output(0)));
  }
  return {};
}

/// The file holds the size of each blob, on at most five axes.
Status check_sizes(const google::protobuf::RepeatedPtrField<Layer>& layers, const proto::ModelDescription& d,
                   const std::map<std::string, std::vector<int64_t>>& sizes) {
  const auto check = [&](const std::string& blob) -> Status {
    const auto it = sizes.find(blob);
    if (it == sizes.end()) return fail(ErrorCode::unsupported, "blob '", blob, "' of unknown size");
    if (it->second.size() > format::espresso::axis_count)
      return fail(ErrorCode::unsupported, "blob '", blob, "' of rank ", it->second.size());
    return {};
  };
  for (const auto& input : d.input()) MOKA_TRY(check(input.name()));
  for (const Layer& layer : layers) {
    for (const std::string& blob : layer.input()) MOKA_TRY(check(blob));
    for (const std::string& blob : layer.output()) MOKA_TRY(check(blob));
  }
  return {};
}

/// Compiled reshapes and pools contain sizes, which are valid for only one input size. Arrays of the legacy mapping may
/// also be sequences.
bool is_flexible(const proto::ModelDescription& description, bool exact) {
  return std::any_of(description.input().begin(), description.input().end(), [&](const auto& input) {
    if (!exact && input.type().has_multiarraytype()) return true;
    return input.type().imagetype().SizeFlexibility_case() != 0 ||
           input.type().multiarraytype().ShapeFlexibility_case() != 0;
  });
}

/// Writes one layer.
Status write_layer(Network& net, const Fused& fused, bool flexible) {
  const Layer& layer = *fused.layer;
  const LayerKind* kind = kind_of(layer.layer_case());
  if (kind == nullptr) return fail(ErrorCode::unsupported, "layers of this type");
  if (flexible && (layer.has_reshape() || layer.pooling().globalpooling()))
    return fail(ErrorCode::unsupported, "layers of this type with inputs of flexible sizes");
  if (layer.input_size() > kind->most_inputs)
    return fail(ErrorCode::unsupported, layer.input_size(), " inputs of a layer of this type");
  return kind->write(net, fused);
}

/// Names the layer in `missing` if the failure is that its form is not known.
Status with_layer(Status status, const Layer& layer, Missing& missing) {
  if (status.ok()) return status;
  const import::nn::LayerImport* known = import::nn::find_layer(layer.layer_case());
  missing = {layer.name(), known == nullptr ? "" : std::string(known->name), status.error().message()};
  return std::move(status).error().in(cat("layer '", layer.name(), "'"));
}

template <class Params>
Result<Written> write_params(const proto::Model& model, const format::ModelFile& file, const Params& params,
                             Missing& missing) {
  const auto& layers = params.layers();
  for (const Layer& layer : layers)
    if (kind_of(layer.layer_case()) == nullptr && !layer.has_batchnorm())
      MOKA_TRY(with_layer(fail(ErrorCode::unsupported, "layers of this type"), layer, missing));
  MOKA_TRY(check_names(layers, model.description()));
  const auto known = import::nn::blob_sizes(model, file);
  if (!known.ok())
    return fail(ErrorCode::unsupported, "blobs whose sizes are not known (", known.error().to_string(), ")");
  const auto& sizes = *known;
  MOKA_TRY(check_sizes(layers, model.description(), sizes));
  Written out;
  const bool classifier = model.has_neuralnetworkclassifier();
  if (classifier)
    out.outputs.push_back(import::nn::probabilities_blob(model.neuralnetworkclassifier()));
  else
    for (const auto& output : model.description().output()) out.outputs.push_back(output.name());
  Network net{file, sizes, {out.outputs.begin(), out.outputs.end()}};
  const bool exact = params.arrayinputshapemapping() == proto::EXACT_ARRAY_MAPPING;
  const bool flexible = is_flexible(model.description(), exact);
  for (const Fused& fused : fuse(layers, net.outputs))
    MOKA_TRY(with_layer(write_layer(net, fused, flexible), *fused.layer, missing));
  const std::vector<Image> images = MOKA_TRY(images_of(model.description(), params));

  json shapes = json::object();
  const auto add_shape = [&](const std::string& blob) { shapes[blob] = shape_of(sizes.at(blob), exact); };
  for (const auto& input : model.description().input()) add_shape(input.name());
  for (const Fused& fused : fuse(layers, net.outputs)) add_shape(fused.top);
  json root{{"storage", "model.espresso.weights"},  {"analyses", json::object()},
            {"properties", json::object()},         {"format_version", 200},
            {"metadata_in_weights", json::array()}, {"layers", std::move(net.layers)}};
  for (const Image& image : images) root["transform_params"][image.name] = transform(image);
  format::Writer optionals;
  for (uint64_t word : {0, 0, exact ? 1 : 0, 0, 0}) optionals.number<uint64_t>(word);
  out.files["model.espresso.net"] = Bytes::from(root.dump(2));
  out.files["model.espresso.shape"] = Bytes::from(json{{"layer_shapes", std::move(shapes)}}.dump(2));
  out.files["model.espresso.weights"] = Bytes::from(weights_file(net.blobs));
  out.files["model/coremldata.bin"] = Bytes::from(images_file(images));
  out.files["neural_network_optionals/coremldata.bin"] = Bytes::from(std::move(optionals.out));
  return out;
}

}  // namespace

uint64_t Network::add_blob(std::string bytes) {
  blobs.push_back(std::move(bytes));
  return blobs.size() * 2 - 1;
}

json layer_object(const Network& net, const Layer& layer, std::string_view type, const std::string& top) {
  json out{{"name", layer.name()}, {"debug_info", layer.name()},      {"type", type},
           {"top", top},           {"bottom", joined(layer.input())}, {"weights", json::object()}};
  if (net.outputs.contains(top)) out["attributes"] = {{"is_output", 1}};
  return out;
}

Result<std::vector<float>> numbers(const Network& net, const proto::WeightParams& weight, uint64_t count) {
  const WeightData data = MOKA_TRY(net.file.weight_data(weight));
  std::vector<float> out;
  const bool half = data.kind == WeightData::Kind::float16;
  if (!half && data.kind != WeightData::Kind::float32)
    return fail(ErrorCode::unsupported, "weights that are neither float32 nor float16");
  const size_t size = half ? sizeof(uint16_t) : sizeof(float);
  if (data.bytes.size() / size != count || data.bytes.size() % size != 0)
    return fail(ErrorCode::malformed, data.bytes.size() / size, " weights, expected ", count);
  if (count == 0) return out;
  out.resize(count);
  if (half) {
    std::vector<uint16_t> bits(count);
    std::memcpy(bits.data(), data.bytes.data(), data.bytes.size());
    half_to_float(bits.data(), out.data(), out.size());
  } else {
    std::memcpy(out.data(), data.bytes.data(), data.bytes.size());
  }
  return out;
}

std::string bytes_of(const std::vector<float>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)};
}

Result<Written> write(const proto::Model& model, const format::ModelFile& file, Missing& missing) {
  const auto written = [&]() -> Result<Written> {
    if (model.isupdatable()) return fail(ErrorCode::unsupported, "networks that can be updated");
    if (model.has_neuralnetwork()) return write_params(model, file, model.neuralnetwork(), missing);
    if (model.has_neuralnetworkclassifier()) return write_params(model, file, model.neuralnetworkclassifier(), missing);
    return write_params(model, file, model.neuralnetworkregressor(), missing);
  };
  Result<Written> out = written();
  if (!out.ok() && missing.what.empty()) missing.what = out.error().message();
  return out;
}

}  // namespace moka::compiler::espresso
