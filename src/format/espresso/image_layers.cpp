// SPDX-License-Identifier: Apache-2.0
#include "format/espresso/layer_reader.h"

namespace moka::format::espresso {
namespace {

/// pad_mode of convolutions and pools.
enum PadMode : int64_t { pad_amounts = 0, pad_same = 1, pad_valid = 2 };

/// [top, bottom, left, right]
Result<std::vector<uint64_t>> borders(LayerReader& r) {
  std::vector<uint64_t> out;
  for (const char* key : {"pad_t", "pad_b", "pad_l", "pad_r"}) out.push_back(MOKA_TRY(r.size(key, 0)));
  return out;
}

void set_borders(proto::BorderAmounts& to, const std::vector<uint64_t>& amounts) {
  for (size_t i = 0; i < 4; i += 2) {
    auto* edge = to.add_borderamounts();
    edge->set_startedgesize(amounts[i]);
    edge->set_endedgesize(amounts[i + 1]);
  }
}

/// Sets valid or same padding of `to`, a message with both.
template <class Params>
Status set_padding(LayerReader& r, Params& to) {
  const int64_t mode = MOKA_TRY(r.integer("pad_mode", pad_amounts));
  std::vector<uint64_t> amounts = MOKA_TRY(borders(r));
  const bool pads = amounts[0] + amounts[1] + amounts[2] + amounts[3] > 0;
  if (mode == pad_same) {
    to.mutable_same();
    return {};
  }
  if (mode != pad_amounts && mode != pad_valid) return r.unsupported(cat("pad_mode ", mode));
  if (mode == pad_amounts && pads) {
    if (MOKA_TRY(r.integer("pad_fill_mode", 0)) != 0 || MOKA_TRY(r.number("pad_value", 0)) != 0)
      return r.unsupported("padding with anything but zeros");
    set_borders(*to.mutable_valid()->mutable_paddingamounts(), amounts);
  } else {
    set_borders(*to.mutable_valid()->mutable_paddingamounts(), {0, 0, 0, 0});
  }
  return {};
}

Status convolution(LayerReader& r) {
  MOKA_TRY(r.arity(1, 1));
  if (MOKA_TRY(r.flag("has_batch_norm"))) return r.unsupported("a batch norm inside the layer");
  const bool transposed = r.type == "deconvolution";
  const uint64_t in = MOKA_TRY(r.size("K", 0)), out = MOKA_TRY(r.size("C", 0));
  const uint64_t width = MOKA_TRY(r.size("Nx", 1)), height = MOKA_TRY(r.size("Ny", 1));
  const uint64_t groups = MOKA_TRY(r.size("n_groups", 1));
  if (in == 0 || out == 0 || groups == 0 || in % groups != 0 || out % groups != 0)
    return r.malformed(cat(in, " channels (K), ", out, " results (C), ", groups, " groups"));
  proto::NeuralNetworkLayer* layer = MOKA_TRY(r.add_fused("fused_relu", "fused_tanh"));
  proto::ConvolutionLayerParams& p = *layer->mutable_convolution();
  p.set_outputchannels(out);
  p.set_kernelchannels(transposed ? in : in / groups);
  p.set_ngroups(groups);
  p.add_kernelsize(height);
  p.add_kernelsize(width);
  p.add_stride(MOKA_TRY(r.size("stride_y", 1)));
  p.add_stride(MOKA_TRY(r.size("stride_x", 1)));
  p.add_dilationfactor(MOKA_TRY(r.size("dilation_y", 1)));
  p.add_dilationfactor(MOKA_TRY(r.size("dilation_x", 1)));
  MOKA_TRY(set_padding(r, p));
  if (transposed) {
    p.set_isdeconvolution(true);
    const uint64_t h = MOKA_TRY(r.size("deconv_out_height", 0)), w = MOKA_TRY(r.size("deconv_out_width", 0));
    if (h > 0 && w > 0) {
      p.add_outputshape(h);
      p.add_outputshape(w);
    }
  }
  MOKA_TRY(r.weights(p.mutable_weights(), "blob_weights", MOKA_TRY(r.product({out, in / groups, height, width})), out));
  p.set_hasbias(MOKA_TRY(r.flag("has_biases")));
  if (p.hasbias()) MOKA_TRY(r.biases(p.mutable_bias(), "blob_biases", out));
  return {};
}

Status inner_product(LayerReader& r) {
  MOKA_TRY(r.arity(1, 1));
  if (MOKA_TRY(r.flag("has_prelu"))) return r.unsupported("a PReLU inside the layer");
  const uint64_t in = MOKA_TRY(r.size("nB", 0)), out = MOKA_TRY(r.size("nC", 0));
  const uint64_t count = MOKA_TRY(r.product({in, out}));
  if (count == 0) return r.malformed(cat(in, " inputs (nB), ", out, " results (nC)"));
  proto::NeuralNetworkLayer* layer = MOKA_TRY(r.add_fused("has_relu", "has_tanh"));
  auto fill = [&](auto& p) -> Status {
    p.set_outputchannels(out);
    MOKA_TRY(r.weights(p.mutable_weights(), "blob_weights", count, out));
    p.set_hasbias(MOKA_TRY(r.flag("has_biases")));
    if (p.hasbias()) MOKA_TRY(r.biases(p.mutable_bias(), "blob_biases", out));
    return {};
  };
  if (r.attribute("is_lookup")) {
    layer->mutable_embedding()->set_inputdim(in);
    return fill(*layer->mutable_embedding());
  }
  layer->mutable_innerproduct()->set_inputchannels(in);
  return fill(*layer->mutable_innerproduct());
}

Status pool(LayerReader& r) {
  MOKA_TRY(r.arity(1, 1));
  proto::PoolingLayerParams& p = *r.add().mutable_pooling();
  switch (MOKA_TRY(r.integer("avg_or_max", 0))) {
    case 0: p.set_type(proto::PoolingLayerParams::AVERAGE); break;
    case 1: p.set_type(proto::PoolingLayerParams::MAX); break;
    case 2: p.set_type(proto::PoolingLayerParams::L2); break;
    default: return r.unsupported(cat("avg_or_max ", MOKA_TRY(r.integer("avg_or_max", 0))));
  }
  p.add_kernelsize(MOKA_TRY(r.size("size_y", 1)));
  p.add_kernelsize(MOKA_TRY(r.size("size_x", 1)));
  p.add_stride(MOKA_TRY(r.size("stride_y", 1)));
  p.add_stride(MOKA_TRY(r.size("stride_x", 1)));
  p.set_avgpoolexcludepadding(MOKA_TRY(r.flag("average_count_exclude_padding")));
  p.set_globalpooling(MOKA_TRY(r.flag("is_global")));
  const int64_t style = MOKA_TRY(r.integer("top_shape_style", 0));
  if (style == 0) return set_padding(r, p);
  if (style != 2) return r.unsupported(cat("top_shape_style ", style));
  std::vector<uint64_t> amounts = MOKA_TRY(borders(r));
  if (MOKA_TRY(r.integer("pad_mode", pad_amounts)) != pad_amounts) amounts.assign(4, 0);
  auto& padding = *p.mutable_includelastpixel();
  padding.add_paddingamounts(amounts[0]);
  padding.add_paddingamounts(amounts[2]);
  return {};
}

Status general_padding(LayerReader& r) {
  MOKA_TRY(r.arity(1, 1));
  proto::PaddingLayerParams& p = *r.add().mutable_padding();
  switch (MOKA_TRY(r.integer("pad_fill_mode", 0))) {
    case 0: p.mutable_constant()->set_value(MOKA_TRY(r.number("pad_value", 0))); break;
    case 1: p.mutable_replication(); break;
    case 2: p.mutable_reflection(); break;
    default: return r.unsupported(cat("pad_fill_mode ", MOKA_TRY(r.integer("pad_fill_mode", 0))));
  }
  if (MOKA_TRY(r.integer("pad_pad_mode", 0)) != 0) return r.unsupported("pad_pad_mode other than 0");
  set_borders(*p.mutable_paddingamounts(), MOKA_TRY(borders(r)));
  return {};
}

Status upsample(LayerReader& r) {
  MOKA_TRY(r.arity(1, 1));
  proto::UpsampleLayerParams& p = *r.add().mutable_upsample();
  const int64_t mode = MOKA_TRY(r.integer("mode", 0));
  if (mode != 0 && mode != 1) return r.unsupported(cat("mode ", mode));
  p.set_mode(mode == 1 ? proto::UpsampleLayerParams::BILINEAR : proto::UpsampleLayerParams::NN);
  if (MOKA_TRY(r.flag("use_fractional_scale_factors"))) {
    p.add_fractionalscalingfactor(MOKA_TRY(r.number("fractional_scaling_factor_y", 1)));
    p.add_fractionalscalingfactor(MOKA_TRY(r.number("fractional_scaling_factor_x", 1)));
  } else {
    p.add_scalingfactor(MOKA_TRY(r.size("scaling_factor_y", 1)));
    p.add_scalingfactor(MOKA_TRY(r.size("scaling_factor_x", 1)));
  }
  if (mode == 1 && r.has("is_legacy_mode") && !MOKA_TRY(r.flag("is_legacy_mode")))
    p.set_linearupsamplemode(MOKA_TRY(r.flag("align_corners")) ? proto::UpsampleLayerParams::ALIGN_CORNERS_TRUE
                                                               : proto::UpsampleLayerParams::ALIGN_CORNERS_FALSE);
  return {};
}

Status lrn(LayerReader& r) {
  MOKA_TRY(r.arity(1, 1));
  proto::LRNLayerParams& p = *r.add().mutable_lrn();
  p.set_alpha(MOKA_TRY(r.number("alpha", 1)));
  p.set_beta(MOKA_TRY(r.number("beta", 0.75f)));
  p.set_localsize(MOKA_TRY(r.size("local_size", 5)));
  p.set_k(MOKA_TRY(r.number("k", 1)));
  return {};
}

/// Four numbers for each channel: gamma, beta, mean and variance.
Status batchnorm(LayerReader& r) {
  MOKA_TRY(r.arity(1, 1));
  const uint64_t channels = MOKA_TRY(r.size("C", 0));
  Bytes bytes = MOKA_TRY(r.blob("blob_batchnorm_params", channels * 4 * sizeof(float)));
  proto::BatchnormLayerParams& p = *r.add().mutable_batchnorm();
  p.set_channels(channels);
  p.set_epsilon(MOKA_TRY(r.number("training_eps", 1e-5f)));
  p.set_computemeanvar(MOKA_TRY(r.flag("training")));
  p.set_instancenormalization(MOKA_TRY(r.flag("training_instancenorm")));
  proto::WeightParams* parts[] = {p.mutable_gamma(), p.mutable_beta(), p.mutable_mean(), p.mutable_variance()};
  for (auto* part : parts) part->mutable_floatvalue()->Resize(static_cast<int>(channels), 0);
  for (uint64_t c = 0; c < channels; ++c)
    for (size_t i = 0; i < 4; ++i)
      std::memcpy(parts[i]->mutable_floatvalue()->mutable_data() + c, bytes.data() + (c * 4 + i) * sizeof(float),
                  sizeof(float));
  return {};
}

Status space_to_depth(LayerReader& r) {
  MOKA_TRY(r.arity(1, 1));
  proto::ReorganizeDataLayerParams& p = *r.add().mutable_reorganizedata();
  p.set_blocksize(MOKA_TRY(r.size("block_size", 0)));
  p.set_mode(MOKA_TRY(r.flag("pixel_shuffle")) ? proto::ReorganizeDataLayerParams::PIXEL_SHUFFLE
             : MOKA_TRY(r.flag("reverse"))     ? proto::ReorganizeDataLayerParams::DEPTH_TO_SPACE
                                               : proto::ReorganizeDataLayerParams::SPACE_TO_DEPTH);
  return {};
}

}  // namespace

std::span<const LayerType> image_layers() {
  static constexpr LayerType list[] = {
      {"convolution", convolution},
      {"deconvolution", convolution},
      {"inner_product", inner_product},
      {"pool", pool},
      {"general_padding", general_padding},
      {"upsample", upsample},
      {"lrn", lrn},
      {"batchnorm", batchnorm},
      {"space_to_depth", space_to_depth},
  };
  return list;
}

}  // namespace moka::format::espresso
