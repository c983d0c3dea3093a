// SPDX-License-Identifier: Apache-2.0
#include "import/outline/window.h"

namespace moka::import {
namespace {

using Sizes = std::vector<int64_t>;
using proto::NeuralNetworkLayer;

int64_t size(uint64_t n) { return static_cast<int64_t>(n); }

/// The two spatial sizes of a list, which is empty for the default.
template <class List>
Sizes pair_or(const List& list, int64_t otherwise) {
  if (list.empty()) return {otherwise, otherwise};
  return {list.begin(), list.end()};
}

Sizes edges(const proto::BorderAmounts& amounts) {
  Sizes out;
  for (const auto& edge : amounts.borderamounts()) {
    out.push_back(size(edge.startedgesize()));
    out.push_back(size(edge.endedgesize()));
  }
  return out;
}

bool any(const Sizes& sizes) {
  for (const int64_t s : sizes)
    if (s != 0) return true;
  return false;
}

/// The padding of layers that have the members `valid` and `same`.
template <class Layer>
void add_padding(const Layer& l, Outline::Window& w) {
  if (l.has_same()) {
    w.padding_mode = l.same().asymmetrymode() == proto::SamePadding::TOP_LEFT_HEAVY ? "same_lower" : "same";
    return;
  }
  w.padding = edges(l.valid().paddingamounts());
  w.padding_mode = any(w.padding) ? "custom" : "valid";
  if (!any(w.padding)) w.padding.clear();
}

/// The padding of layers with three spatial dimensions, whose types have the same numbers.
template <class Layer>
void add_padding_3d(const Layer& l, Outline::Window& w) {
  const int type = l.paddingtype();
  w.padding_mode = type == 0 ? "custom" : type == 2 ? "same" : "valid";
  if (type == 0)
    w.padding = {l.custompaddingfront(),  l.custompaddingback(), l.custompaddingtop(),
                 l.custompaddingbottom(), l.custompaddingleft(), l.custompaddingright()};
}

int64_t at_least_one(int64_t n) { return std::max<int64_t>(n, 1); }

Outline::Window convolution(const proto::ConvolutionLayerParams& l) {
  Outline::Window w;
  w.kernel = pair_or(l.kernelsize(), 3);
  w.stride = pair_or(l.stride(), 1);
  w.dilation = pair_or(l.dilationfactor(), 1);
  add_padding(l, w);
  w.groups = at_least_one(size(l.ngroups()));
  // The channels of a kernel are those of one group, except in a deconvolution.
  w.input_channels =
      size(l.isdeconvolution() ? l.kernelchannels() : l.kernelchannels() * static_cast<uint64_t>(w.groups));
  w.output_channels = size(l.outputchannels());
  return w;
}

Outline::Window convolution_3d(const proto::Convolution3DLayerParams& l) {
  Outline::Window w;
  w.kernel = {at_least_one(l.kerneldepth()), at_least_one(l.kernelheight()), at_least_one(l.kernelwidth())};
  w.stride = {at_least_one(l.stridedepth()), at_least_one(l.strideheight()), at_least_one(l.stridewidth())};
  w.dilation = {at_least_one(l.dilationdepth()), at_least_one(l.dilationheight()), at_least_one(l.dilationwidth())};
  add_padding_3d(l, w);
  w.groups = at_least_one(l.ngroups());
  w.input_channels = l.inputchannels();
  w.output_channels = l.outputchannels();
  return w;
}

Outline::Window pooling(const proto::PoolingLayerParams& l) {
  Outline::Window w;
  if (l.globalpooling()) {
    w.padding_mode = "global";
    return w;
  }
  w.kernel = pair_or(l.kernelsize(), 3);
  w.stride = pair_or(l.stride(), 1);
  if (!l.has_includelastpixel()) {
    add_padding(l, w);
    return w;
  }
  w.padding_mode = "includeLastPixel";
  for (const uint64_t amount : l.includelastpixel().paddingamounts())
    w.padding.insert(w.padding.end(), 2, size(amount));
  return w;
}

Outline::Window pooling_3d(const proto::Pooling3DLayerParams& l) {
  Outline::Window w;
  w.kernel = {at_least_one(l.kerneldepth()), at_least_one(l.kernelheight()), at_least_one(l.kernelwidth())};
  w.stride = {at_least_one(l.stridedepth()), at_least_one(l.strideheight()), at_least_one(l.stridewidth())};
  add_padding_3d(l, w);
  return w;
}

Outline::Window padding(const proto::PaddingLayerParams& l) {
  Outline::Window w;
  w.padding = edges(l.paddingamounts());
  w.padding_mode = l.has_reflection() ? "reflection" : l.has_replication() ? "replication" : "constant";
  return w;
}

Outline::Window channels(uint64_t in, uint64_t out) {
  Outline::Window w;
  w.input_channels = size(in);
  w.output_channels = size(out);
  return w;
}

template <class Layer>
Outline::Window vectors(const Layer& l) {
  return channels(l.inputvectorsize(), l.outputvectorsize());
}

/// The matrices and vectors of a recurrent layer.
template <class Layer>
Sizes recurrent_shape(const Layer& l, std::string_view field) {
  const int64_t in = size(l.inputvectorsize()), out = size(l.outputvectorsize());
  const bool recursion = field.find("ecursionMatrix") != field.npos;
  if (recursion) return {out, out};
  return field.find("eightMatrix") != field.npos ? Sizes{out, in} : Sizes{out};
}

Sizes convolution_shape(const Outline::Window& w, bool deconvolution) {
  Sizes out{w.output_channels, w.input_channels / w.groups};
  if (deconvolution) out = {w.input_channels, w.output_channels / w.groups};
  out.insert(out.end(), w.kernel.begin(), w.kernel.end());
  return out;
}

template <class List>
Sizes list(const List& sizes) {
  return {sizes.begin(), sizes.end()};
}

}  // namespace

Outline::Window window_of(const NeuralNetworkLayer& l) {
  switch (l.layer_case()) {
    case NeuralNetworkLayer::kConvolution: return convolution(l.convolution());
    case NeuralNetworkLayer::kConvolution3D: return convolution_3d(l.convolution3d());
    case NeuralNetworkLayer::kPooling: return pooling(l.pooling());
    case NeuralNetworkLayer::kPooling3D: return pooling_3d(l.pooling3d());
    case NeuralNetworkLayer::kPadding: return padding(l.padding());
    case NeuralNetworkLayer::kInnerProduct:
      return channels(l.innerproduct().inputchannels(), l.innerproduct().outputchannels());
    case NeuralNetworkLayer::kEmbedding: return channels(l.embedding().inputdim(), l.embedding().outputchannels());
    case NeuralNetworkLayer::kEmbeddingND:
      return channels(l.embeddingnd().vocabsize(), l.embeddingnd().embeddingsize());
    case NeuralNetworkLayer::kBatchnorm: return channels(l.batchnorm().channels(), l.batchnorm().channels());
    case NeuralNetworkLayer::kSimpleRecurrent: return vectors(l.simplerecurrent());
    case NeuralNetworkLayer::kGru: return vectors(l.gru());
    case NeuralNetworkLayer::kUniDirectionalLSTM: return vectors(l.unidirectionallstm());
    case NeuralNetworkLayer::kBiDirectionalLSTM: return vectors(l.bidirectionallstm());
    default: return {};
  }
}

std::vector<int64_t> weight_shape(const NeuralNetworkLayer& l, std::string_view field) {
  const bool weights = field == "weights";
  const Sizes outputs{window_of(l).output_channels};
  switch (l.layer_case()) {
    case NeuralNetworkLayer::kConvolution:
      return weights ? convolution_shape(window_of(l), l.convolution().isdeconvolution()) : outputs;
    case NeuralNetworkLayer::kConvolution3D:
      return weights ? convolution_shape(window_of(l), l.convolution3d().isdeconvolution()) : outputs;
    case NeuralNetworkLayer::kInnerProduct:
    case NeuralNetworkLayer::kEmbedding:
    case NeuralNetworkLayer::kEmbeddingND: return weights ? Sizes{outputs[0], window_of(l).input_channels} : outputs;
    case NeuralNetworkLayer::kBatchnorm: return outputs;
    case NeuralNetworkLayer::kBatchedMatmul: {
      const int64_t second = size(l.batchedmatmul().weightmatrixseconddimension());
      return weights ? Sizes{size(l.batchedmatmul().weightmatrixfirstdimension()), second} : Sizes{second};
    }
    case NeuralNetworkLayer::kScale: return list(field == "scale" ? l.scale().shapescale() : l.scale().shapebias());
    case NeuralNetworkLayer::kBias: return list(l.bias().shape());
    case NeuralNetworkLayer::kLoadConstant: return list(l.loadconstant().shape());
    case NeuralNetworkLayer::kLoadConstantND: return list(l.loadconstantnd().shape());
    case NeuralNetworkLayer::kLayerNormalization: return list(l.layernormalization().normalizedshape());
    case NeuralNetworkLayer::kSimpleRecurrent: return recurrent_shape(l.simplerecurrent(), field);
    case NeuralNetworkLayer::kGru: return recurrent_shape(l.gru(), field);
    case NeuralNetworkLayer::kUniDirectionalLSTM: return recurrent_shape(l.unidirectionallstm(), field);
    case NeuralNetworkLayer::kBiDirectionalLSTM: return recurrent_shape(l.bidirectionallstm(), field);
    default: return {};
  }
}

}  // namespace moka::import
