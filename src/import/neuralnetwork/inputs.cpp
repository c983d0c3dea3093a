// SPDX-License-Identifier: Apache-2.0
#include "import/neuralnetwork/inputs.h"

namespace moka::import::nn {
namespace {

template <class T>
Parts parts_of_network(const T& n) {
  return {&n.layers(), &n.preprocessing(), n.arrayinputshapemapping() == proto::EXACT_ARRAY_MAPPING,
          n.imageinputshapemapping() == proto::RANK4_IMAGE_MAPPING};
}

/// scale * x + bias for each plane.
Result<Value*> scale_image(Network& net, Value* x, const proto::NeuralNetworkImageScaler& s,
                           const proto::ImageFeatureType& image, const std::string& name) {
  int64_t channels = x->type.shape()[1];
  float scale = s.channelscale();
  Value* y = x;
  if (scale != 1) y = MOKA_TRY(net.op("mul", {{"x", y}, {"y", scale}}, cat(name, "_scale")));
  std::vector<float> bias{s.graybias()};
  if (channels == 3) {
    bias = {s.redbias(), s.greenbias(), s.bluebias()};
    if (image.colorspace() == proto::ImageFeatureType::BGR) std::swap(bias[0], bias[2]);
  }
  if (std::all_of(bias.begin(), bias.end(), [](float b) { return b == 0; })) return y;
  Shape shape{1, static_cast<int64_t>(bias.size()), 1, 1};
  return net.op("add", {{"x", y}, {"y", Tensor::f32(shape, bias)}}, cat(name, "_bias"));
}

Result<Value*> subtract_mean(Network& net, Value* x, const proto::NeuralNetworkMeanImage& m, const std::string& name) {
  Shape shape{1, x->type.shape()[1], x->type.shape()[2], x->type.shape()[3]};
  int64_t n = MOKA_TRY_IN(shape.checked_count(), "mean image for an image of flexible size");
  if (m.meanimage_size() != n)
    return fail(ErrorCode::malformed, "mean image of '", name, "': expected ", n, " numbers, got ", m.meanimage_size());
  Tensor mean = Tensor::f32(shape, std::span(m.meanimage().data(), static_cast<size_t>(n)));
  return net.op("sub", {{"x", x}, {"y", mean}}, cat(name, "_mean"));
}

}  // namespace

Parts parts_of(const proto::Model& model) {
  if (model.has_neuralnetwork()) return parts_of_network(model.neuralnetwork());
  if (model.has_neuralnetworkclassifier()) return parts_of_network(model.neuralnetworkclassifier());
  return parts_of_network(model.neuralnetworkregressor());
}

Result<Blob> input_blob(Network& net, Value* x, const proto::FeatureDescription& feature, const Parts& parts) {
  const std::string& name = feature.name();
  if (!x->type.is_tensor() || (!x->type.is_ranked() && !parts.exact_arrays))
    return fail(ErrorCode::unsupported, "an input of type ", x->type, " of a neural network");
  if (x->type.dtype() != DType::fp32) x = MOKA_TRY(net.op("cast", {{"x", x}, {"dtype", "fp32"}}, name));
  int rank = x->type.rank();
  bool image = feature.type().has_imagetype();
  std::vector<Dim> lead;
  for (const auto& p : *parts.preprocessing) {
    // Old files leave the name empty. The preprocessing then belongs to the only image.
    if (p.featurename() != name && !(p.featurename().empty() && image)) continue;
    if (rank != 4) {
      if (p.has_scaler() && rank == 3) {
        x = MOKA_TRY(net.op("expand_dims", {{"x", x}, {"axes", Ints{0}}}, name));
        rank = 4;
      } else if (rank == 5 && !parts.exact_arrays) {
        Blob whole = MOKA_TRY(net.blob(x, Form::exact));
        lead = whole.lead();
        x = MOKA_TRY(net.as(whole, Form::nchw));
        rank = 4;
      } else {
        return fail(ErrorCode::unsupported, "preprocessing of an input of type ", x->type);
      }
    }
    if (p.has_scaler())
      x = MOKA_TRY(scale_image(net, x, p.scaler(), feature.type().imagetype(), name));
    else if (p.has_meanimage())
      x = MOKA_TRY(subtract_mean(net, x, p.meanimage(), name));
  }
  if (image) {
    if (rank != 4) return fail(ErrorCode::malformed, "an image of type ", x->type);
    return net.blob(x, Form::nchw,
                    parts.rank4_images ? std::vector<Dim>{dims_of(x)[0]} : std::vector<Dim>{Dim{1}, dims_of(x)[0]});
  }
  if (parts.exact_arrays) return net.blob(x, Form::exact);
  std::vector<Dim> one{Dim{1}, Dim{1}};
  switch (rank) {
    case 0:
      x = MOKA_TRY(net.op("expand_dims", {{"x", x}, {"axes", Ints{0, 1}}}, name));
      return net.blob(x, Form::matrix, one);
    case 1:
      x = MOKA_TRY(net.op("expand_dims", {{"x", x}, {"axes", Ints{0}}}, name));
      return net.blob(x, Form::matrix, one);
    case 2: return net.blob(x, Form::matrix, {dims_of(x)[0], Dim{1}});
    case 3:
      x = MOKA_TRY(net.op("expand_dims", {{"x", x}, {"axes", Ints{0}}}, name));
      return net.blob(x, Form::nchw, one);
    case 4: return net.blob(x, Form::nchw, lead.empty() ? std::vector<Dim>{Dim{1}, dims_of(x)[0]} : lead);
    case 5: return net.blob(x, Form::exact);
    default: return fail(ErrorCode::malformed, "expected an array of rank 1 or 3, got ", x->type);
  }
}

}  // namespace moka::import::nn
