#include "kernel/layout.h"

#include <algorithm>
#include <cstring>

namespace moka::kernel {

std::string to_string(Layout layout) {
  switch (layout.kind) {
    case Layout::Kind::row_major: return "row_major";
    case Layout::Kind::channels_last: return "channels_last";
    case Layout::Kind::channel_blocked: return cat("blocked", static_cast<int>(layout.block));
  }
  return "?";
}

Result<size_t> storage_bytes(ir::DType dtype, const ir::Shape& shape, Layout layout) {
  if (layout.kind != Layout::Kind::channel_blocked) return ir::storage_bytes(dtype, shape);
  ir::Shape padded = shape;
  int64_t b = layout.block;
  padded[1] = (shape[1] + b - 1) / b * b;
  return ir::storage_bytes(dtype, padded);
}

int64_t convert_tiles(const ir::Shape& shape) { return shape.rank() < 3 ? 1 : shape[0]; }

namespace {

/// Element strides of (image, channel, pixel); channel_inner for the position inside a block.
struct Steps {
  int64_t image, channel, inner, pixel, block;
  int64_t at(int64_t c) const { return c / block * channel + c % block * inner; }
};

Steps steps_of(const ir::Shape& s, Layout l) {
  int64_t channels = s[1], pixels = s.count(2, s.rank());
  switch (l.kind) {
    case Layout::Kind::row_major: return {channels * pixels, pixels, 0, 1, 1};
    case Layout::Kind::channels_last: return {channels * pixels, 1, 0, channels, 1};
    case Layout::Kind::channel_blocked: {
      int64_t b = l.block, groups = (channels + b - 1) / b;
      return {groups * b * pixels, pixels * b, 1, b, b};
    }
  }
  return {};
}

template <class T>
void convert(const T* in, const Steps& from, T* out, const Steps& to, int64_t channels, int64_t pixels) {
  constexpr int64_t kTile = 16;
  for (int64_t p0 = 0; p0 < pixels; p0 += kTile) {
    int64_t p1 = std::min(pixels, p0 + kTile);
    for (int64_t c = 0; c < channels; c++) {
      const T* a = in + from.at(c);
      T* b = out + to.at(c);
      for (int64_t p = p0; p < p1; p++) b[p * to.pixel] = a[p * from.pixel];
    }
  }
  int64_t padded = (channels + to.block - 1) / to.block * to.block;
  for (int64_t c = channels; c < padded; c++)
    for (int64_t p = 0; p < pixels; p++) out[to.at(c) + p * to.pixel] = T{};
}

}  // namespace

void convert_layout(const ir::TensorView& in, Layout from, const ir::TensorView& out, Layout to, int64_t begin,
                    int64_t end) {
  int64_t each = ir::bits(in.dtype) / 8;
  if (in.shape.rank() < 3) {
    std::memcpy(out.data, in.data, static_cast<size_t>(in.count() * each));
    return;
  }
  Steps a = steps_of(in.shape, from), b = steps_of(in.shape, to);
  int64_t channels = in.shape[1], pixels = in.shape.count(2, in.shape.rank());
  for (int64_t n = begin; n < end; n++) {
    auto run = [&]<class T>(T*) {
      convert(in.as<T>() + n * a.image, a, out.as<T>() + n * b.image, b, channels, pixels);
    };
    switch (each) {
      case 1: run(static_cast<uint8_t*>(nullptr)); break;
      case 2: run(static_cast<uint16_t*>(nullptr)); break;
      case 4: run(static_cast<uint32_t*>(nullptr)); break;
      default: run(static_cast<uint64_t*>(nullptr)); break;
    }
  }
}

}  // namespace moka::kernel
