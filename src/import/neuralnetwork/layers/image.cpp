// SPDX-License-Identifier: Apache-2.0
#include "import/neuralnetwork/spatial.h"

namespace moka::import::nn {

namespace {

Status crop(Layer& l) {
  MOKA_TRY(l.arity(1, 2));
  const auto& p = l.p.crop();
  Value* x = MOKA_TRY(l.nchw(0));
  if (l.inputs() == 1) {
    Ints b = MOKA_TRY(borders(l, p.cropamounts(), "crop amounts"));
    // An end of 0 would mean an empty range, so the mask stands for "to the end".
    Tensor keep = MOKA_TRY(Tensor::zeros(DType::boolean, Shape{4}));
    auto mask = keep.mut<uint8_t>();
    for (int i = 0; i < 4; i++) mask[static_cast<size_t>(i)] = i < 2 || b[2 * (i - 2) + 1] == 0;
    return l.set(
        0,
        MOKA_TRY(
            l.op("slice_by_index",
                 {{"x", x}, {"begin", Ints{0, 0, b[0], b[2]}}, {"end", Ints{0, 0, -b[1], -b[3]}}, {"end_mask", keep}})),
        Form::nchw);
  }
  Value* like = MOKA_TRY(l.nchw(1));
  Ints offset{0, 0};
  if (p.offset_size() != 0 && p.offset_size() != 2)
    return l.malformed(cat("expected 2 offsets, got ", p.offset_size()));
  for (int i = 0; i < p.offset_size(); i++) {
    if (p.offset(i) > (uint64_t{1} << 31) - 1) return l.malformed(cat("an offset of ", p.offset(i)));
    offset[i] = static_cast<int64_t>(p.offset(i));
  }
  std::vector<Dim> dims = dims_of(x), other = dims_of(like);
  dims[2] = other[2];
  dims[3] = other[3];
  Value* size = MOKA_TRY(l.net.shape_value(dims, l.p.name()));
  return l.set(0,
               MOKA_TRY(l.op("slice_by_size", {{"x", x}, {"begin", Ints{0, 0, offset[0], offset[1]}}, {"size", size}})),
               Form::nchw);
}

Status padding(Layer& l) {
  MOKA_TRY(l.arity(1, 1));
  const auto& p = l.p.padding();
  Ints b = MOKA_TRY(borders(l, p.paddingamounts(), "padding amounts"));
  const Form form = MOKA_TRY(l.blob(0))->rank() == 2 ? Form::exact : Form::nchw;
  std::vector<NamedArg> args{{"x", MOKA_TRY(l.in(0, form))}, {"pad", b}};
  switch (p.PaddingType_case()) {
    case proto::PaddingLayerParams::kReflection: args.emplace_back("mode", "reflect"); break;
    case proto::PaddingLayerParams::kReplication: args.emplace_back("mode", "replicate"); break;
    default: args.emplace_back("mode", "constant"); args.emplace_back("constant_val", p.constant().value());
  }
  return l.set(0, MOKA_TRY(l.op("pad", std::move(args))), form);
}

/// With two inputs, the second one is a tensor of the amounts.
Status constant_pad(Layer& l) {
  MOKA_TRY(l.arity(1, 2));
  const auto& p = l.p.constantpad();
  if (p.padamounts_size() > 2 * ir::kMaxRank) return l.malformed(cat(p.padamounts_size(), " amounts"));
  Value* x = MOKA_TRY(l.inputs() == 2 ? l.any(0) : l.with_rank(0, p.padamounts_size() / 2));
  std::vector<NamedArg> args{{"x", x}, {"mode", "constant"}, {"constant_val", p.value()}};
  int rank = x->type.rank();
  if (l.inputs() == 2) {
    if (p.padtogivenoutputsizemode()) return l.unsupported("output sizes that are an input");
    args.emplace_back("pad", MOKA_TRY(l.int32_vector(1)));
    return l.set(0, MOKA_TRY(l.op("pad", std::move(args))));
  }
  if (p.padamounts_size() != 2 * rank)
    return l.malformed(cat("expected ", 2 * rank, " amounts, got ", p.padamounts_size()));
  Ints pad;
  for (int i = 0; i < rank; i++) {
    uint64_t before = p.padamounts(2 * i), after = p.padamounts(2 * i + 1);
    if (before > (uint64_t{1} << 31) - 1 || after > (uint64_t{1} << 31) - 1) return l.malformed("an amount above 2^31");
    if (p.padtogivenoutputsizemode()) {
      // The pair is [goes to the left or right, output size]: one of the two positions holds the wanted size.
      int64_t size = x->type.shape()[i];
      if (size < 0) return l.unsupported("an output size for an input of unknown size");
      const int64_t added = std::max<int64_t>(static_cast<int64_t>(std::max(before, after)) - size, 0);
      pad.push_back(before != 0 ? added : 0);
      pad.push_back(before != 0 ? 0 : added);
    } else {
      pad.push_back(static_cast<int64_t>(before));
      pad.push_back(static_cast<int64_t>(after));
    }
  }
  args.emplace_back("pad", pad);
  return l.set(0, MOKA_TRY(l.op("pad", std::move(args))));
}

Status upsample(Layer& l) {
  MOKA_TRY(l.arity(1, 1));
  const auto& p = l.p.upsample();
  Value* x = MOKA_TRY(l.nchw(0));
  std::vector<NamedArg> args{{"x", x}};
  if (p.fractionalscalingfactor_size() != 0) {
    if (p.fractionalscalingfactor_size() != 2)
      return l.malformed(cat("expected 2 factors, got ", p.fractionalscalingfactor_size()));
    for (float f : p.fractionalscalingfactor())
      if (!(f > 0) || f > 65536) return l.malformed(cat("a factor of ", f));
    args.emplace_back("scale_factor_height", p.fractionalscalingfactor(0));
    args.emplace_back("scale_factor_width", p.fractionalscalingfactor(1));
  } else {
    Ints factor = MOKA_TRY(pair(l, p.scalingfactor(), "scaling factor", 1));
    args.emplace_back("scale_factor_height", static_cast<int>(factor[0]));
    args.emplace_back("scale_factor_width", static_cast<int>(factor[1]));
  }
  if (p.mode() == proto::UpsampleLayerParams::NN)
    return l.set(0, MOKA_TRY(l.op("upsample_nearest_neighbor", std::move(args))), Form::nchw);
  args.emplace_back("align_corners", p.linearupsamplemode() == proto::UpsampleLayerParams::ALIGN_CORNERS_TRUE);
  args.emplace_back("half_pixel_centers", p.linearupsamplemode() == proto::UpsampleLayerParams::ALIGN_CORNERS_FALSE);
  return l.set(0, MOKA_TRY(l.op("upsample_bilinear", std::move(args))), Form::nchw);
}

Result<std::string> sampling(Layer& l, const proto::SamplingMode& mode) {
  switch (mode.samplingmethod()) {
    case proto::SamplingMode::STRICT_ALIGN_ENDPOINTS_MODE: return std::string("STRICT_ALIGN_CORNERS");
    case proto::SamplingMode::ALIGN_ENDPOINTS_MODE: return std::string("ALIGN_CORNERS");
    case proto::SamplingMode::UPSAMPLE_MODE: return std::string("DEFAULT");
    case proto::SamplingMode::ROI_ALIGN_MODE: return std::string("OFFSET_CORNERS");
    default: return l.malformed(cat("unknown sampling method ", static_cast<int>(mode.samplingmethod())));
  }
}

Status resize_bilinear(Layer& l) {
  MOKA_TRY(l.arity(1, 1));
  const auto& p = l.p.resizebilinear();
  Ints size = MOKA_TRY(pair(l, p.targetsize(), "target size", 1));
  Value* x = MOKA_TRY(l.nchw(0));
  std::string mode = MOKA_TRY(sampling(l, p.mode()));
  return l.set(0,
               MOKA_TRY(l.op("resize_bilinear", {{"x", x},
                                                 {"target_size_height", static_cast<int>(size[0])},
                                                 {"target_size_width", static_cast<int>(size[1])},
                                                 {"sampling_mode", mode}})),
               Form::nchw);
}

/// The image is [1, batch, C, H, W]. Boxes are [N, 1, 4, 1, 1] and apply to every image, or [N, 1, 5, 1, 1] with the
/// index of the image first.
Status crop_resize(Layer& l) {
  MOKA_TRY(l.arity(2, 2));
  const auto& p = l.p.cropresize();
  static constexpr const char* kModes[] = {"CORNERS_HEIGHT_FIRST", "CORNERS_WIDTH_FIRST", "CENTER_SIZE_HEIGHT_FIRST",
                                           "CENTER_SIZE_WIDTH_FIRST"};
  int mode = static_cast<int>(p.boxindicesmode().boxmode());
  if (mode < 0 || mode > 3) return l.malformed(cat("unknown box mode ", mode));
  Ints size = MOKA_TRY(pair(l, p.targetsize(), "target size", 1));
  std::string method = MOKA_TRY(sampling(l, p.mode()));
  Value* x = MOKA_TRY(l.nchw(0));
  Value* boxes = MOKA_TRY(l.in(1));
  if (boxes->type.rank() != 5) return l.malformed(cat("expected boxes of rank 5, got ", boxes->type));
  return l.set(0, MOKA_TRY(l.op("crop_resize", {{"x", x},
                                                {"roi", boxes},
                                                {"target_height", static_cast<int>(size[0])},
                                                {"target_width", static_cast<int>(size[1])},
                                                {"normalized_coordinates", p.normalizedcoordinates()},
                                                {"spatial_scale", p.spatialscale() == 0 ? 1.0f : p.spatialscale()},
                                                {"box_coordinate_mode", kModes[mode]},
                                                {"sampling_mode", method}})));
}

Status reorganize_data(Layer& l) {
  MOKA_TRY(l.arity(1, 1));
  const auto& p = l.p.reorganizedata();
  if (p.blocksize() == 0 || p.blocksize() > 65536) return l.malformed(cat("a block size of ", p.blocksize()));
  int block = static_cast<int>(p.blocksize());
  Value* x = MOKA_TRY(l.nchw(0));
  Value* y;
  switch (p.mode()) {
    case proto::ReorganizeDataLayerParams::SPACE_TO_DEPTH:
      y = MOKA_TRY(l.op("space_to_depth", {{"x", x}, {"block_size", block}}));
      break;
    case proto::ReorganizeDataLayerParams::DEPTH_TO_SPACE:
      y = MOKA_TRY(l.op("depth_to_space", {{"x", x}, {"block_size", block}}));
      break;
    case proto::ReorganizeDataLayerParams::PIXEL_SHUFFLE:
      y = MOKA_TRY(l.op("pixel_shuffle", {{"x", x}, {"upscale_factor", block}}));
      break;
    default: return l.malformed(cat("unknown mode ", static_cast<int>(p.mode())));
  }
  return l.set(0, y, Form::nchw);
}

}  // namespace

std::span<const LayerImport> layers_image() {
  static const LayerImport list[] = {
      {proto::NeuralNetworkLayer::kCrop, "crop", crop},
      {proto::NeuralNetworkLayer::kPadding, "padding", padding},
      {proto::NeuralNetworkLayer::kConstantPad, "constantPad", constant_pad},
      {proto::NeuralNetworkLayer::kUpsample, "upsample", upsample},
      {proto::NeuralNetworkLayer::kResizeBilinear, "resizeBilinear", resize_bilinear},
      {proto::NeuralNetworkLayer::kCropResize, "cropResize", crop_resize},
      {proto::NeuralNetworkLayer::kReorganizeData, "reorganizeData", reorganize_data},
  };
  return list;
}

}  // namespace moka::import::nn
