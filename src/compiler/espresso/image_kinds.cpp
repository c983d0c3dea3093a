// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "base/half.h"
#include "compiler/espresso/writer.h"

namespace moka::compiler::espresso {
namespace {

using format::WeightData;

struct Padding {
  int mode = 0;
  uint64_t top = 0, bottom = 0, left = 0, right = 0;
  bool any() const { return top + bottom + left + right > 0; }
};

Result<Padding> borders(const proto::BorderAmounts& amounts) {
  if (amounts.borderamounts_size() == 0) return Padding{};
  if (amounts.borderamounts_size() != 2)
    return fail(ErrorCode::malformed, amounts.borderamounts_size(), " border amounts, expected 2");
  const auto &h = amounts.borderamounts(0), &w = amounts.borderamounts(1);
  return Padding{0, h.startedgesize(), h.endedgesize(), w.startedgesize(), w.endedgesize()};
}

void set(json& to, const Padding& p) {
  to["pad_mode"] = p.mode;
  to["pad_t"] = p.top;
  to["pad_b"] = p.bottom;
  to["pad_l"] = p.left;
  to["pad_r"] = p.right;
  to["pad_fill_mode"] = 0;
  to["pad_value"] = 0;
}

/// Omits the keys if their values are 1.
template <class List>
void set_unless_one(json& to, const char* y, const char* x, const List& list) {
  if (list.size() > 0 && list.Get(0) != 1) to[y] = list.Get(0);
  if (list.size() > 1 && list.Get(1) != 1) to[x] = list.Get(1);
}

template <class Params>
Result<Padding> padding_of(const Params& p) {
  if (p.has_same()) {
    if (p.same().asymmetrymode() != proto::SamePadding::BOTTOM_RIGHT_HEAVY)
      return fail(ErrorCode::unsupported, "same padding that is larger at the top and left");
    return Padding{1};
  }
  return borders(p.valid().paddingamounts());
}

bool is_half(const Network& net, const proto::WeightParams& weight) {
  auto data = net.file.weight_data(weight);
  return data.ok() && data->kind == WeightData::Kind::float16;
}

/// One number for each channel. A specification may have a single one for all.
template <class List>
std::string of_channels(const List& list, uint64_t channels) {
  std::vector<float> out(channels, list.size() > 0 ? list.Get(0) : 0);
  if (list.size() > 1) out.assign(list.begin(), list.end());
  return bytes_of(out);
}

/// Weights of 8 bits, with a scale and a bias for each channel.
Status add_quantized(Network& net, json& to, const proto::WeightParams& weight, uint64_t count, uint64_t channels) {
  const WeightData data = MOKA_TRY(net.file.weight_data(weight));
  const auto& q = weight.quantization();
  if (!q.has_linearquantization() || q.numberofbits() != 8 || data.kind != WeightData::Kind::raw)
    return fail(ErrorCode::unsupported, "quantized weights other than 8 bits with a scale");
  const auto& linear = q.linearquantization();
  if (data.bytes.size() != count) return fail(ErrorCode::malformed, data.bytes.size(), " weights, expected ", count);
  for (const auto* list : {&linear.scale(), &linear.bias()})
    if (list->size() > 1 && static_cast<uint64_t>(list->size()) != channels)
      return fail(ErrorCode::malformed, list->size(), " numbers of quantization for ", channels, " channels");
  json& weights = to["weights"];
  weights["W_U8"] = net.add_blob(std::string(data.bytes.text()));
  weights["per_ch_qbias"] = net.add_blob(of_channels(linear.bias(), channels));
  weights["per_ch_qscale"] = net.add_blob(of_channels(linear.scale(), channels));
  return {};
}

void add_biases(Network& net, json& to, const std::vector<float>& biases) {
  to["has_biases"] = biases.empty() ? 0 : 1;
  if (!biases.empty()) to["blob_biases"] = net.add_blob(bytes_of(biases));
}

/// Adds the biases, then the weights, in the order of their blobs.
void add_weights(Network& net, json& to, const std::vector<float>& weights, bool half,
                 const std::vector<float>& biases) {
  add_biases(net, to, biases);
  if (!half) {
    to["blob_weights"] = net.add_blob(bytes_of(weights));
    return;
  }
  std::string bytes(weights.size() * sizeof(uint16_t), '\0');
  float_to_half(weights.data(), reinterpret_cast<uint16_t*>(bytes.data()), weights.size());
  to["blob_weights_f16"] = net.add_blob(std::move(bytes));
}

/// Folds the batch norm that follows into weights and biases.
Status fold(const Network& net, const proto::BatchnormLayerParams& norm, std::vector<float>& weights,
            std::vector<float>& biases) {
  const uint64_t channels = norm.channels();
  const std::vector<float> gamma = MOKA_TRY(numbers(net, norm.gamma(), channels));
  const std::vector<float> beta = MOKA_TRY(numbers(net, norm.beta(), channels));
  const std::vector<float> mean = MOKA_TRY(numbers(net, norm.mean(), channels));
  const std::vector<float> variance = MOKA_TRY(numbers(net, norm.variance(), channels));
  biases.resize(channels, 0);
  const size_t each = weights.size() / channels;
  for (size_t c = 0; c < channels; ++c) {
    // This order gives the same products as Apple's compiler, to the last bit.
    const float deviation = std::sqrt(variance[c] + norm.epsilon());
    for (size_t i = 0; i < each; ++i) weights[c * each + i] = weights[c * each + i] * gamma[c] / deviation;
    biases[c] = (biases[c] - mean[c]) * gamma[c] / deviation + beta[c];
  }
  return {};
}

Status convolution(Network& net, const Fused& fused) {
  const auto& p = fused.layer->convolution();
  if (p.kernelsize_size() != 2 && p.kernelsize_size() != 0)
    return fail(ErrorCode::malformed, p.kernelsize_size(), " kernel sizes, expected 2");
  const bool transposed = p.isdeconvolution(), quantized = p.weights().has_quantization();
  const uint64_t height = p.kernelsize_size() ? p.kernelsize(0) : 3, width = p.kernelsize_size() ? p.kernelsize(1) : 3;
  const uint64_t groups = std::max<uint64_t>(p.ngroups(), 1), channels = p.outputchannels();
  const uint64_t inputs = transposed ? p.kernelchannels() : p.kernelchannels() * groups;
  if (transposed && quantized) return fail(ErrorCode::unsupported, "a transposed convolution with quantized weights");
  uint64_t count = transposed ? channels / groups : channels;
  for (uint64_t factor : {p.kernelchannels(), height, width})
    if (__builtin_mul_overflow(count, factor, &count))
      return fail(ErrorCode::malformed, "a convolution with too many weights");
  std::vector<float> biases;
  if (p.hasbias()) biases = MOKA_TRY(numbers(net, p.bias(), channels));

  json out = layer_object(net, *fused.layer, transposed ? "deconvolution" : "convolution", fused.top);
  out["K"] = inputs;
  out["C"] = channels;
  out["Nx"] = width;
  out["Ny"] = height;
  out["n_groups"] = groups;
  out["n_parallel"] = 1;
  set_unless_one(out, "stride_y", "stride_x", p.stride());
  set_unless_one(out, "dilation_y", "dilation_x", p.dilationfactor());
  set(out, MOKA_TRY(padding_of(p)));
  if (transposed && p.outputshape_size() == 2) {
    out["deconv_out_height"] = p.outputshape(0);
    out["deconv_out_width"] = p.outputshape(1);
  }
  out["fused_relu"] = fused.relu ? 1 : 0;
  out["fused_tanh"] = fused.tanh ? 1 : 0;
  out["has_batch_norm"] = 0;
  if (quantized) {
    add_biases(net, out, biases);
    MOKA_TRY(add_quantized(net, out, p.weights(), count, channels));
  } else {
    std::vector<float> weights = MOKA_TRY(numbers(net, p.weights(), count));
    if (fused.norm != nullptr) MOKA_TRY(fold(net, *fused.norm, weights, biases));
    add_weights(net, out, weights, is_half(net, p.weights()), biases);
  }
  net.layers.push_back(std::move(out));
  return {};
}

Status inner_product(Network& net, const Fused& fused) {
  const auto& p = fused.layer->innerproduct();
  if (p.int8dynamicquantize()) return fail(ErrorCode::unsupported, "dynamic quantization");
  uint64_t count = 0;
  if (__builtin_mul_overflow(p.inputchannels(), p.outputchannels(), &count))
    return fail(ErrorCode::malformed, "an inner product with too many weights");
  std::vector<float> weights = MOKA_TRY(numbers(net, p.weights(), count)), biases;
  if (p.hasbias()) {
    biases = MOKA_TRY(numbers(net, p.bias(), p.outputchannels()));
    biases.resize(biases.size() * 4);  // files have this length; the rest is zero
  }
  json out = layer_object(net, *fused.layer, "inner_product", fused.top);
  out["nB"] = p.inputchannels();
  out["nC"] = p.outputchannels();
  out["has_relu"] = fused.relu ? 1 : 0;
  out["has_tanh"] = fused.tanh ? 1 : 0;
  out["has_prelu"] = 0;
  add_weights(net, out, weights, is_half(net, p.weights()), biases);
  net.layers.push_back(std::move(out));
  return {};
}

Status pooling(Network& net, const Fused& fused) {
  using Pooling = proto::PoolingLayerParams;
  const auto& p = fused.layer->pooling();
  if (p.kernelsize_size() != 2 && !p.globalpooling())
    return fail(ErrorCode::unsupported, "a pool with ", p.kernelsize_size(), " kernel sizes");
  json out = layer_object(net, *fused.layer, "pool", fused.top);
  out["avg_or_max"] = p.type() == Pooling::AVERAGE ? 0 : p.type() == Pooling::MAX ? 1 : 2;
  const auto& in = net.size_of(fused.layer->input(0));
  if (in.size() < 2) return fail(ErrorCode::unsupported, "a pool of an array of rank ", in.size());
  out["size_y"] = p.globalpooling() ? static_cast<uint64_t>(in[in.size() - 2]) : p.kernelsize(0);
  out["size_x"] = p.globalpooling() ? static_cast<uint64_t>(in[in.size() - 1]) : p.kernelsize(1);
  set_unless_one(out, "stride_y", "stride_x", p.stride());
  out["average_count_exclude_padding"] = p.avgpoolexcludepadding() ? 1 : 0;
  if (p.globalpooling()) out["is_global"] = 1;
  const bool last = p.has_includelastpixel();
  out["top_shape_style"] = last ? 2 : 0;
  Padding padding;
  if (last) {
    const auto& amounts = p.includelastpixel().paddingamounts();
    if (amounts.size() > 0) padding.top = padding.bottom = amounts[0];
    if (amounts.size() > 1) padding.left = padding.right = amounts[1];
  } else {
    padding = MOKA_TRY(padding_of(p));
    if (padding.mode == 0 && !padding.any()) padding.mode = 2;
  }
  set(out, padding);
  net.layers.push_back(std::move(out));
  return {};
}

Status padding(Network& net, const Fused& fused) {
  const auto& p = fused.layer->padding();
  json out = layer_object(net, *fused.layer, "general_padding", fused.top);
  set(out, MOKA_TRY(borders(p.paddingamounts())));
  out.erase("pad_mode");
  out["pad_pad_mode"] = 0;
  if (p.has_replication()) return fail(ErrorCode::unsupported, "padding by the edges' values");
  if (p.has_reflection())
    out["pad_fill_mode"] = 2;
  else
    out["pad_value"] = p.constant().value();
  net.layers.push_back(std::move(out));
  return {};
}

Status upsample(Network& net, const Fused& fused) {
  const auto& p = fused.layer->upsample();
  if (p.fractionalscalingfactor_size() > 0 || p.linearupsamplemode() != proto::UpsampleLayerParams::DEFAULT)
    return fail(ErrorCode::unsupported, "an upsampling of a newer kind");
  json out = layer_object(net, *fused.layer, "upsample", fused.top);
  out["scaling_factor_y"] = p.scalingfactor_size() > 0 ? p.scalingfactor(0) : 1;
  out["scaling_factor_x"] = p.scalingfactor_size() > 1 ? p.scalingfactor(1) : 1;
  out["mode"] = p.mode() == proto::UpsampleLayerParams::BILINEAR ? 1 : 0;
  net.layers.push_back(std::move(out));
  return {};
}

}  // namespace

std::span<const LayerKind> image_kinds() {
  static constexpr LayerKind list[] = {{Layer::kConvolution, convolution},
                                       {Layer::kInnerProduct, inner_product},
                                       {Layer::kPooling, pooling},
                                       {Layer::kPadding, padding},
                                       {Layer::kUpsample, upsample}};
  return list;
}

}  // namespace moka::compiler::espresso
