// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "boundary/descriptions.h"
#include "boundary/errors.h"
#include "ir/op_def.h"
#include "moka/input_sizes.h"
#include "moka/model.h"

namespace moka {

namespace {

double uniform(ir::RandomSource& source) { return static_cast<double>(source.next() >> 11) * 0x1p-53; }

int64_t below(ir::RandomSource& source, int64_t n) {
  return static_cast<int64_t>(source.next() % static_cast<uint64_t>(n));
}

/// One of the values that the model distinguishes; `otherwise` when it lists none.
std::string category(const FeatureDescription& f, ir::RandomSource& source, const std::string& otherwise) {
  if (f.categories.empty()) return otherwise;
  return f.categories[static_cast<size_t>(below(source, static_cast<int64_t>(f.categories.size())))];
}

int64_t integer_category(const FeatureDescription& f, ir::RandomSource& source, int64_t otherwise) {
  if (f.index_range) return f.index_range->lower + below(source, f.index_range->upper - f.index_range->lower + 1);
  const std::string text = category(f, source, std::to_string(otherwise));
  char* end = nullptr;
  const int64_t number = std::strtoll(text.c_str(), &end, 10);
  return end == text.c_str() + text.size() ? number : otherwise;
}

FeatureValue random_sequence(const FeatureDescription& f, ir::RandomSource& source) {
  constexpr int64_t kUsual = 3, kMost = 1 << 20;
  const SizeRange& r = f.sequence_length;
  int64_t n = f.categories.empty() && r.lower <= 0 ? 0 : std::max(r.lower, kUsual);
  if (r.upper >= 0) n = std::min(n, r.upper);
  n = std::clamp<int64_t>(n, 0, kMost);
  StringSequence texts;
  Int64Sequence numbers;
  for (int64_t i = 0; i < n; ++i)
    if (f.string_keys)
      texts.push_back(category(f, source, {}));
    else
      numbers.push_back(integer_category(f, source, 1));
  if (f.string_keys) return texts;
  return numbers;
}

FeatureValue random_dictionary(const FeatureDescription& f, ir::RandomSource& source) {
  constexpr int kEntries = 3;
  Dictionary d;
  d.string_keys = f.string_keys;
  if (f.categories.empty()) return d;
  for (int i = 0; i < kEntries; ++i) {
    const double value = static_cast<double>(1 + below(source, 3));
    if (f.string_keys)
      d.strings[category(f, source, {})] = value;
    else
      d.ints[integer_category(f, source, 1)] = value;
  }
  return d;
}

FeatureValue random_image(const FeatureDescription& f, ir::RandomSource& source) {
  const bool gray = f.image.color == ColorSpace::grayscale || f.image.color == ColorSpace::grayscale_float16;
  Image i(f.image.width, f.image.height, gray ? PixelFormat::gray8 : PixelFormat::rgba8);
  for (int64_t n = 0; n < i.row_bytes * i.height; n++) i.pixels.get()[n] = static_cast<uint8_t>(source.next() >> 56);
  return i;
}

bool is_real(DataType type) {
  return type == DataType::float16 || type == DataType::float32 || type == DataType::float64;
}

FeatureValue random_array(const FeatureDescription& f, ir::RandomSource& source) {
  const DataType type = f.array.type;
  MultiArray a(type, f.array.shape);
  ir::TensorView view{boundary::to_ir(type), {}, a.data()};
  for (int64_t n = 0; n < a.count(); n++) {
    if (f.index_range || !f.categories.empty())
      ir::store_f64(view, n, static_cast<double>(integer_category(f, source, 1)));
    else if (is_real(type))
      ir::store_f64(view, n, uniform(source));
    else
      ir::store_i64(view, n, static_cast<int64_t>(source.next() >> 63));
  }
  return a;
}

FeatureValue random_value(const FeatureDescription& f, ir::RandomSource& source) {
  switch (f.type) {
    case FeatureType::int64: return integer_category(f, source, 1);
    case FeatureType::float64: return f.index_range ? static_cast<double>(integer_category(f, source, 1)) : 1.0;
    case FeatureType::string: return category(f, source, {});
    case FeatureType::dictionary: return random_dictionary(f, source);
    case FeatureType::sequence: return random_sequence(f, source);
    case FeatureType::image: return random_image(f, source);
    case FeatureType::multi_array:
    case FeatureType::state: return random_array(f, source);
  }
  return {};
}

void draw_integers(const std::string& name, MultiArray& array, double low, double high, ir::RandomSource& source) {
  constexpr double most = 0x1p62;
  const double first = std::ceil(std::max(low, -most)), last = std::floor(std::min(high, most));
  if (first > last)
    boundary::raise(
        fail(ErrorCode::invalid_argument, "input '", name, "': no whole number lies from ", low, " to ", high));
  const uint64_t count = static_cast<uint64_t>(static_cast<int64_t>(last) - static_cast<int64_t>(first)) + 1;
  const ir::TensorView view{boundary::to_ir(array.type()), {}, array.data()};
  for (int64_t n = 0; n < array.count(); n++)
    ir::store_i64(view, n, static_cast<int64_t>(first) + static_cast<int64_t>(source.next() % count));
}

}  // namespace

Features inputs_within(Features inputs, const std::map<std::string, std::pair<double, double>>& ranges, uint64_t seed) {
  ir::RandomSource seeds{seed}, source{seeds.next()};
  for (const auto& [name, range] : ranges) {
    FeatureValue* value = inputs.find(name);
    auto* given = value == nullptr ? nullptr : std::get_if<MultiArray>(value);
    if (given == nullptr) continue;
    const auto [low, high] = range;
    MultiArray drawn(given->type(), given->shape());
    const ir::TensorView view{boundary::to_ir(drawn.type()), {}, drawn.data()};
    if (!is_real(drawn.type())) draw_integers(name, drawn, low, high, source);
    for (int64_t n = 0; is_real(drawn.type()) && n < drawn.count(); n++)
      ir::store_f64(view, n, low + uniform(source) * (high - low));
    *given = std::move(drawn);
  }
  return inputs;
}

Features random_inputs(const FunctionDescription& function, uint64_t seed) {
  ir::RandomSource source{seed};
  Features out;
  for (const FeatureDescription& f : function.inputs)
    if (!f.default_value) out[f.name] = random_value(f, source);
  return out;
}

}  // namespace moka
