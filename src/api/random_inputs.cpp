#include "api/internal.h"

namespace moka {

namespace {

double uniform(ir::RandomSource& source) { return static_cast<double>(source.next() >> 11) * 0x1p-53; }

FeatureValue random_value(const FeatureDescription& f, ir::RandomSource& source) {
  switch (f.type) {
    case FeatureType::int64: return int64_t{1};
    case FeatureType::float64: return 1.0;
    case FeatureType::string: return std::string();
    case FeatureType::dictionary: {
      Dictionary d;
      d.string_keys = f.string_keys;
      return d;
    }
    case FeatureType::sequence:
      if (f.string_keys) return StringSequence{};
      return Int64Sequence{};
    case FeatureType::image: {
      bool gray = f.image.color == ColorSpace::grayscale || f.image.color == ColorSpace::grayscale_float16;
      Image i(f.image.width, f.image.height, gray ? PixelFormat::gray8 : PixelFormat::rgba8);
      for (int64_t n = 0; n < i.row_bytes * i.height; n++)
        i.pixels.get()[n] = static_cast<uint8_t>(source.next() >> 56);
      return i;
    }
    case FeatureType::multi_array:
    case FeatureType::state: {
      MultiArray a(f.array.type, f.array.shape);
      bool real =
          f.array.type == DataType::float16 || f.array.type == DataType::float32 || f.array.type == DataType::float64;
      ir::TensorView view{api::to_ir(f.array.type), {}, a.data()};
      for (int64_t n = 0; n < a.count(); n++) {
        if (real)
          ir::store_f64(view, n, uniform(source));
        else
          ir::store_i64(view, n, static_cast<int64_t>(source.next() >> 63));
      }
      return a;
    }
  }
  return {};
}

}  // namespace

Features random_inputs(const FunctionDescription& function, uint64_t seed) {
  ir::RandomSource source{seed};
  Features out;
  for (const FeatureDescription& f : function.inputs) out[f.name] = random_value(f, source);
  return out;
}

}  // namespace moka
