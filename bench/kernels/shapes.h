#pragma once

#include <cstdint>
#include <vector>

namespace moka::bench {

/// 3 x 3 taps at every pixel, `pad` zeros around; x is [1, in, size, size].
struct Conv {
  const char* net;
  int64_t in, out, size, pad = 1;
  int64_t made() const { return size + 2 * pad - 2; }
  /// Of the definition, whatever the kernel does.
  double flops() const { return 18.0 * static_cast<double>(in * out * made() * made()); }
};

/// Of the nets in bench/nets.
inline const std::vector<Conv> kConvolutions{
    {"resnet50", 64, 64, 56},          {"resnet50", 128, 128, 28},       {"resnet50", 256, 256, 14},
    {"resnet50", 512, 512, 7},         {"squeezenet", 16, 64, 55},       {"squeezenet", 32, 128, 27},
    {"squeezenet", 48, 192, 13},       {"squeezenet", 64, 256, 13},      {"inception_v3", 32, 32, 149, 0},
    {"inception_v3", 32, 64, 147},     {"inception_v3", 80, 192, 73, 0}, {"inception_v3", 96, 96, 35},
    {"inception_v3", 448, 384, 8},     {"yolov3", 32, 64, 208},          {"yolov3", 64, 128, 104},
    {"yolov3", 128, 256, 52},          {"yolov3", 256, 512, 26},         {"yolov3", 512, 1024, 13},
    {"yolov8n", 16, 16, 160},          {"yolov8n", 32, 32, 80},          {"yolov8n", 64, 64, 40},
    {"yolov8n", 128, 128, 20},         {"yolov8n", 80, 80, 80},          {"yolov8n", 256, 64, 20},
    {"style_transfer", 128, 128, 128}, {"style_transfer", 128, 64, 256}, {"style_transfer", 64, 32, 512}};

struct Product {
  int64_t rows, columns, depth;
  double flops() const { return 2.0 * static_cast<double>(rows * columns * depth); }
};

inline const std::vector<Product> kProducts{{256, 256, 256}, {255, 251, 257}, {100, 100, 100},  {196, 64, 64},
                                            {196, 256, 512}, {13, 37, 1000},  {1000, 32, 128},  {64, 64, 64},
                                            {1, 512, 512},   {4, 512, 512},   {784, 128, 1152}, {512, 512, 512}};

}  // namespace moka::bench
