// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"

namespace moka::bench {

/// The kinds of input that a window moves over.
enum class Over : uint8_t { image, line, transposed };

/// A convolution. x is [1, in, size, size], or [1, in, size] for a line.
struct Conv {
  const char* net;
  int64_t in, out, size;
  int64_t taps[2] = {3, 3};
  int64_t stride = 1;
  int64_t pad[2] = {taps[0] / 2, taps[1] / 2};  ///< before and after
  int64_t groups = 1;
  const char* after = "relu";  ///< "": none
  Over over = Over::image;
  int64_t dilation = 1;
  bool transposed() const { return over == Over::transposed; }
  int axes() const { return over == Over::line ? 1 : 2; }
  int64_t made(int axis) const {
    if (axis >= axes()) return 1;
    if (transposed()) return (size - 1) * stride + taps[axis] - 2 * pad[axis];
    return (size + 2 * pad[axis] - (taps[axis] - 1) * dilation - 1) / stride + 1;
  }
  /// The kernel that is compared with oneDNN's `rivals`.
  const char* own() const {
    if (over == Over::line) return in < 16 ? "cpu.conv.line" : "cpu.conv.rows";
    if (transposed()) return taps[0] == stride ? "cpu.conv_transpose.pixels" : "cpu.conv_transpose.phases";
    if (taps[0] * taps[1] == 1) return stride * groups == 1 ? "cpu.conv.pointwise" : "cpu.conv.gathered";
    if (in >= 16 && taps[0] % 2 == 0) return "cpu.conv.dense";
    if (groups > 1 && in / groups % 16 == 0) return "cpu.conv.dense";
    if (groups > 1) return in / groups > 16 ? "cpu.conv.groups" : "cpu.conv.depthwise";
    return out <= 4 ? "cpu.conv.narrow" : in < 4 ? "cpu.conv.small_channels" : "cpu.conv.winograd";
  }
  std::vector<const char*> rivals() const {
    if (transposed())
      return {"cpu.conv_transpose.onednn", "cpu.conv_transpose.onednn_rows", "cpu.conv_transpose.onednn_last"};
    if (over == Over::line) return {"cpu.conv.onednn", "cpu.conv.onednn_rows", "cpu.conv.onednn_last"};
    if (taps[0] * taps[1] == 1 && stride * groups > 1) return {"cpu.conv.dense", "cpu.conv.onednn"};
    return {"cpu.conv.onednn"};
  }
  std::string name() const {
    return cat(net, "/", transposed() ? "transposed_" : "", in, "_", out, "_", size,
               taps[0] == 3 && taps[1] == 3 ? "" : cat("_taps", taps[0], "x", taps[1]),
               stride == 1 ? "" : cat("_every", stride), dilation == 1 ? "" : cat("_dilation", dilation),
               groups == 1 ? "" : cat("_groups", groups), *after == 0 ? "" : "_", after);
  }
  int64_t weights() const { return in / groups * out * taps[0] * taps[1]; }
  int64_t results() const { return out * made(0) * made(1); }
  /// What must be read and written once.
  double bytes() const {
    const int64_t read = in * (axes() == 1 ? size : size * size);
    return static_cast<double>(sizeof(float)) * static_cast<double>(weights() + results() + read);
  }
  /// Floating-point operations of the definition, independent of the kernel's algorithm.
  double flops() const {
    return 2.0 * static_cast<double>(weights() * (transposed() ? size * size : made(0) * made(1)));
  }
};

/// Shapes from the nets in bench/nets.
inline const std::vector<Conv> kConvolutions{
    {"resnet50", 64, 64, 56},
    {"resnet50", 128, 128, 28},
    {"resnet50", 256, 256, 14},
    {"resnet50", 512, 512, 7},
    {"resnet50", 3, 64, 224, {7, 7}, 2},
    {"resnet50", 128, 128, 56, {3, 3}, 2},
    {"resnet50", 256, 256, 28, {3, 3}, 2},
    {"resnet50", 512, 512, 14, {3, 3}, 2},
    {"squeezenet", 3, 64, 224, {3, 3}, 2},
    {"squeezenet", 16, 64, 55},
    {"squeezenet", 32, 128, 27},
    {"squeezenet", 48, 192, 13},
    {"squeezenet", 64, 256, 13},
    {"mobilenet_v2", 3, 32, 224, {3, 3}, 2},
    {"mobilenet_v3", 3, 16, 224, {3, 3}, 2},
    {"inception_v3", 3, 32, 299, {3, 3}, 2, {0, 0}},
    {"inception_v3", 32, 32, 149, {3, 3}, 1, {0, 0}},
    {"inception_v3", 32, 64, 147},
    {"inception_v3", 80, 192, 73, {3, 3}, 1, {0, 0}},
    {"inception_v3", 48, 64, 35, {5, 5}},
    {"inception_v3", 96, 96, 35},
    {"inception_v3", 96, 96, 35, {3, 3}, 2, {0, 0}},
    {"inception_v3", 288, 384, 35, {3, 3}, 2, {0, 0}},
    {"inception_v3", 128, 128, 17, {1, 7}},
    {"inception_v3", 128, 192, 17, {7, 1}},
    {"inception_v3", 160, 160, 17, {7, 1}},
    {"inception_v3", 160, 192, 17, {1, 7}},
    {"inception_v3", 192, 192, 17, {1, 7}},
    {"inception_v3", 192, 192, 17, {7, 1}},
    {"inception_v3", 192, 320, 17, {3, 3}, 2, {0, 0}},
    {"inception_v3", 192, 192, 17, {3, 3}, 2, {0, 0}},
    {"inception_v3", 384, 384, 8, {1, 3}},
    {"inception_v3", 384, 384, 8, {3, 1}},
    {"inception_v3", 448, 384, 8},
    {"yolov3", 3, 32, 416},
    {"yolov3", 32, 64, 416, {3, 3}, 2},
    {"yolov3", 64, 128, 208, {3, 3}, 2},
    {"yolov3", 128, 256, 104, {3, 3}, 2},
    {"yolov3", 256, 512, 52, {3, 3}, 2},
    {"yolov3", 512, 1024, 26, {3, 3}, 2},
    {"yolov3", 32, 64, 208},
    {"yolov3", 64, 128, 104},
    {"yolov3", 128, 256, 52},
    {"yolov3", 256, 512, 26},
    {"yolov3", 512, 1024, 13},
    {"yolov8n", 3, 16, 640, {3, 3}, 2},
    {"yolov8n", 16, 32, 320, {3, 3}, 2},
    {"yolov8n", 32, 64, 160, {3, 3}, 2},
    {"yolov8n", 64, 128, 80, {3, 3}, 2},
    {"yolov8n", 128, 256, 40, {3, 3}, 2},
    {"yolov8n", 64, 64, 80, {3, 3}, 2},
    {"yolov8n", 128, 128, 40, {3, 3}, 2},
    {"yolov8n", 16, 16, 160},
    {"yolov8n", 32, 32, 80},
    {"yolov8n", 64, 64, 40},
    {"yolov8n", 128, 128, 20},
    {"yolov8n", 80, 80, 80},
    {"yolov8n", 256, 64, 20},
    {"style_transfer", 128, 128, 128},
    {"style_transfer", 128, 64, 256},
    {"style_transfer", 64, 32, 512},
    {"style_transfer", 32, 3, 512, {9, 9}},
    {"espcn", 32, 4, 480},
    {"efficientnet", 32, 16, 112, {1, 1}, 1, {0, 0}, 1, ""},
    {"efficientnet", 16, 96, 112, {1, 1}, 1, {0, 0}, 1, "silu"},
    {"efficientnet", 96, 24, 56, {1, 1}, 1, {0, 0}, 1, ""},
    {"efficientnet", 24, 144, 56, {1, 1}, 1, {0, 0}, 1, "silu"},
    {"efficientnet", 240, 40, 28, {1, 1}, 1, {0, 0}, 1, ""},
    {"efficientnet", 40, 240, 28, {1, 1}, 1, {0, 0}, 1, "silu"},
    {"efficientnet", 480, 112, 14, {1, 1}, 1, {0, 0}, 1, ""},
    {"efficientnet", 112, 672, 14, {1, 1}, 1, {0, 0}, 1, "silu"},
    {"efficientnet", 192, 1152, 7, {1, 1}, 1, {0, 0}, 1, "silu"},
    {"efficientnet", 1152, 320, 7, {1, 1}, 1, {0, 0}, 1, ""},
    {"efficientnet", 48, 1152, 1, {1, 1}, 1, {0, 0}, 1, "sigmoid"},
    {"mobilenet_v2", 16, 96, 112, {1, 1}, 1, {0, 0}, 1, "relu6"},
    {"mobilenet_v2", 192, 32, 28, {1, 1}, 1, {0, 0}, 1, ""},
    {"mobilenet_v2", 96, 576, 14, {1, 1}, 1, {0, 0}, 1, "relu6"},
    {"mobilenet_v2", 960, 160, 7, {1, 1}, 1, {0, 0}, 1, ""},
    {"mobilenet_v3", 16, 64, 112, {1, 1}, 1, {0, 0}, 1, "relu"},
    {"mobilenet_v3", 24, 72, 56, {1, 1}, 1, {0, 0}, 1, "relu"},
    {"mobilenet_v3", 80, 200, 14, {1, 1}, 1, {0, 0}, 1, "moka_hard_swish"},
    {"resnet50", 256, 64, 56, {1, 1}, 1, {0, 0}, 1, "relu"},
    {"resnet50", 512, 128, 28, {1, 1}, 1, {0, 0}, 1, "relu"},
    {"resnet50", 1024, 256, 14, {1, 1}, 1, {0, 0}, 1, "relu"},
    {"resnet50", 512, 2048, 7, {1, 1}, 1, {0, 0}, 1, "relu"},
    {"resnet50", 64, 256, 56, {1, 1}, 1, {0, 0}, 1, ""},
    {"mobilenet_v2", 320, 1280, 14, {1, 1}, 1, {0, 0}, 1, "relu6"},
    {"convnext", 1280, 320, 14, {1, 1}, 1, {0, 0}, 1, ""},
    {"mobileone", 448, 1792, 7, {1, 1}, 1, {0, 0}, 1, "relu"},
    {"resnet50", 256, 512, 56, {1, 1}, 2, {0, 0}, 1, ""},
    {"shufflenet", 480, 480, 28, {1, 1}, 1, {0, 0}, 3, ""},
    {"ecapa_tdnn", 1536, 1536, 200, {1, 1}, 1, {0, 0}, 1, "relu", Over::line},
    {"ecapa_tdnn", 128, 128, 200, {3, 1}, 1, {4, 0}, 1, "relu", Over::line, 4},
    {"hifigan", 64, 64, 4096, {11, 1}, 1, {25, 0}, 1, "", Over::line, 5},
    {"hifigan", 32, 32, 8192, {7, 1}, 1, {9, 0}, 1, "", Over::line, 3},
    {"wav2vec2", 512, 512, 3200, {3, 1}, 2, {0, 0}, 1, "", Over::line},
    {"wav2vec2", 768, 768, 199, {127, 1}, 1, {63, 0}, 16, "", Over::line},
    {"efficientnet", 32, 32, 112, {3, 3}, 1, {1, 1}, 32, "silu"},
    {"efficientnet", 96, 96, 112, {3, 3}, 2, {1, 1}, 96, "silu"},
    {"efficientnet", 144, 144, 56, {5, 5}, 2, {2, 2}, 144, "silu"},
    {"efficientnet", 240, 240, 28, {5, 5}, 1, {2, 2}, 240, "silu"},
    {"efficientnet", 480, 480, 14, {5, 5}, 1, {2, 2}, 480, "silu"},
    {"efficientnet", 1152, 1152, 7, {5, 5}, 1, {2, 2}, 1152, "silu"},
    {"mobilenet_v2", 144, 144, 56, {3, 3}, 1, {1, 1}, 144, "relu6"},
    {"mobilenet_v2", 384, 384, 14, {3, 3}, 1, {1, 1}, 384, "relu6"},
    {"mobilenet_v2", 960, 960, 7, {3, 3}, 1, {1, 1}, 960, "relu6"},
    {"mobilenet_v3", 72, 72, 56, {5, 5}, 2, {2, 2}, 72, "relu"},
    {"convnext", 96, 96, 56, {7, 7}, 1, {3, 3}, 96, ""},
    {"efficientnet", 3, 32, 224, {3, 3}, 2, {1, 1}, 1, "silu"},
    {"vit", 3, 384, 224, {16, 16}, 16, {0, 0}, 1, ""},
    {"espcn", 1, 64, 224, {5, 5}, 1, {2, 2}, 1, "tanh"},
    {"style_transfer", 3, 32, 256, {9, 9}},
    {"regnet", 104, 104, 28, {3, 3}, 1, {1, 1}, 13},
    {"regnet", 208, 208, 14, {3, 3}, 1, {1, 1}, 26},
    {"regnet", 336, 336, 14, {3, 3}, 1, {1, 1}, 14},
    {"regnet", 336, 336, 28, {3, 3}, 2, {1, 1}, 14},
    {"regnet", 440, 440, 14, {3, 3}, 2, {1, 1}, 55},
    {"resnext", 128, 128, 56, {3, 3}, 1, {1, 1}, 32},
    {"resnext", 256, 256, 28, {3, 3}, 1, {1, 1}, 32},
    {"resnet50", 512, 1024, 28, {1, 1}, 2, {0, 0}, 1, ""},
    {"resnet50", 1024, 2048, 14, {1, 1}, 2, {0, 0}, 1, ""},
    {"convnext", 96, 192, 56, {2, 2}, 2, {0, 0}, 1, ""},
    {"convnext", 384, 768, 14, {2, 2}, 2, {0, 0}, 1, ""},
    {"segformer", 64, 64, 64, {4, 4}, 4, {0, 0}, 1, ""},
    {"nfnet", 384, 384, 14, {3, 3}, 1, {1, 1}, 6, ""},
    {"nfnet", 128, 128, 28, {3, 3}, 1, {1, 1}, 2, ""},
    {"resnext", 1024, 1024, 7, {3, 3}, 1, {1, 1}, 32},
    {"wav2vec2", 512, 512, 799, {3, 1}, 2, {0, 0}, 1, "gelu", Over::line},
    {"wav2vec2", 768, 768, 49, {128, 1}, 1, {64, 0}, 16, "gelu", Over::line},
    {"denoiser", 4, 1, 720, {5, 5}},
    {"denoiser", 16, 3, 480},
    {"sound", 1, 1, 16000, {257, 1}, 1, {128, 0}, 1, "", Over::line},
    {"sound", 1, 4, 48000, {33, 1}, 1, {16, 0}, 1, "", Over::line},
    {"sound", 2, 2, 44100, {65, 1}, 2, {32, 0}, 2, "", Over::line},
    {"sound", 8, 8, 16000, {9, 1}, 1, {4, 0}, 1, "relu", Over::line},
    {"unet", 256, 128, 32, {2, 2}, 2, {0, 0}, 1, "", Over::transposed},
    {"unet", 128, 64, 64, {2, 2}, 2, {0, 0}, 1, "", Over::transposed},
    {"unet", 64, 32, 128, {2, 2}, 2, {0, 0}, 1, "", Over::transposed},
    {"segmenter", 64, 64, 64, {4, 4}, 2, {1, 1}, 1, "", Over::transposed},
    {"segmenter", 21, 21, 32, {16, 16}, 8, {4, 4}, 1, "", Over::transposed},
    {"dcgan", 512, 256, 4, {4, 4}, 2, {1, 1}, 1, "relu", Over::transposed},
    {"dcgan", 256, 128, 8, {4, 4}, 2, {1, 1}, 1, "relu", Over::transposed},
    {"dcgan", 128, 64, 16, {4, 4}, 2, {1, 1}, 1, "relu", Over::transposed},
    {"dcgan", 64, 3, 32, {4, 4}, 2, {1, 1}, 1, "tanh", Over::transposed},
    {"style_transfer", 128, 64, 64, {3, 3}, 2, {1, 1}, 1, "", Over::transposed},
    {"style_transfer", 64, 32, 128, {3, 3}, 2, {1, 1}, 1, "", Over::transposed},
    {"decoder", 32, 32, 64, {3, 3}, 1, {1, 1}, 1, "", Over::transposed},
    {"decoder", 16, 16, 64, {5, 5}, 2, {2, 2}, 1, "", Over::transposed},
    {"decoder", 8, 1, 64, {4, 4}, 2, {1, 1}, 1, "", Over::transposed},
    {"decoder", 1, 16, 64, {4, 4}, 2, {1, 1}, 1, "", Over::transposed},
    {"decoder", 3, 3, 64, {4, 4}, 2, {1, 1}, 1, "", Over::transposed},
    {"decoder", 8, 32, 64, {4, 4}, 2, {1, 1}, 1, "", Over::transposed},
    {"decoder", 32, 8, 64, {4, 4}, 2, {1, 1}, 1, "", Over::transposed},
};

struct Product {
  int64_t rows, columns, depth;
  double flops() const { return 2.0 * static_cast<double>(rows * columns * depth); }
  double bytes() const {
    return static_cast<double>(sizeof(float)) * static_cast<double>(rows * depth + depth * columns + rows * columns);
  }
};

inline const std::vector<Product> kProducts{{256, 256, 256},  {255, 251, 257},  {100, 100, 100},  {196, 64, 64},
                                            {196, 256, 512},  {13, 37, 1000},   {1000, 32, 128},  {64, 64, 64},
                                            {1, 512, 512},    {4, 512, 512},    {784, 128, 1152}, {512, 512, 512},
                                            {1, 2048, 512},   {3, 1000, 512},   {198, 384, 384},  {1500, 384, 1536},
                                            {128, 3072, 768}, {128, 768, 3072}, {197, 1536, 384}};

}  // namespace moka::bench
