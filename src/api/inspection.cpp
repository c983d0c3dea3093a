// SPDX-License-Identifier: Apache-2.0
#include "moka/inspection.h"

#include <algorithm>
#include <bitset>
#include <cmath>

#include "api/internal.h"
#include "boundary/path.h"
#include "ir/text_value.h"
#include "ops/common/nn_weights.h"

namespace moka {

struct Inspection::Impl {
  explicit Impl(format::ModelFile opened) : file(std::move(opened)) {}

  format::ModelFile file;
  ModelOutline outline;
  import::Outline read;  ///< keeps the file mapped; has the places of the weights

  const import::Outline& part(std::span<const size_t> models) const {
    const import::Outline* out = &read;
    for (const size_t model : models) {
      if (model >= out->stages.size())
        throw Exception(ErrorKind::invalid_argument,
                        cat("model ", model, ": expected a number below ", out->stages.size()));
      out = &out->stages[model].outline;
    }
    return *out;
  }
};

namespace {

constexpr int64_t kPiece = 1 << 16;  ///< elements; a multiple of 8, so that pieces begin at a byte

/// The stored elements of a weight.
struct Elements {
  const std::byte* data;
  int64_t count;
  ir::DType dtype;
  int bits;         ///< of one element
  bool high_first;  ///< the first element starts at the most significant bit of a byte
};

/// Error unsupported: the elements cannot be read.
Result<Elements> elements_of(const import::Outline::Weight& weight) {
  if (weight.data.empty())
    return fail(ErrorCode::unsupported, "weight '", weight.name, "': its elements cannot be read");
  const auto count_of = [&](int bits) {
    return static_cast<int64_t>(weight.data.size() * 8 / static_cast<unsigned>(bits));
  };
  if (const int bits = weight.high_first_bits; bits > 0)
    return Elements{weight.data.data(), count_of(bits), ir::DType::uint8, bits, true};
  ir::Lexer lexer(weight.type);
  const ir::Type type = MOKA_TRY(ir::read_type(lexer));
  if (!type.is_tensor() || ir::bits(type.dtype()) == 0)
    return fail(ErrorCode::unsupported, "weight '", weight.name, "': ", weight.type, " has no numbers");
  const int bits = ir::bits(type.dtype());
  // The type tells how many of the stored elements are padding.
  const int64_t stored = count_of(bits), declared = type.is_concrete() ? type.shape().count() : -1;
  return Elements{weight.data.data(), declared >= 0 ? std::min(declared, stored) : stored, type.dtype(), bits, false};
}

/// Calls visit(value, bits) for each element. `bits` are the stored bits of an element of up to 16 bits, or 0.
template <class Visit>
void each(const Elements& elements, const Visit& visit) {
  // Payloads in a specification may be unaligned, so they are copied piece by piece.
  std::vector<std::byte> piece(static_cast<size_t>(std::min(kPiece, elements.count)) * 8);
  auto* const codes = reinterpret_cast<uint8_t*>(piece.data());
  const int width = elements.high_first ? 8 : elements.bits;
  for (int64_t from = 0; from < elements.count; from += kPiece) {
    const int64_t count = std::min(kPiece, elements.count - from);
    if (elements.high_first)
      ops::unpack_high_first(reinterpret_cast<const uint8_t*>(elements.data), elements.bits, from, count, codes);
    else
      std::copy_n(elements.data + from * width / 8, static_cast<size_t>((count * width + 7) / 8), piece.begin());
    const ir::TensorView part{elements.dtype, ir::Shape{count}, piece.data()};
    for (int64_t i = 0; i < count; ++i) {
      uint32_t word = 0;
      const int64_t bit = i * width;
      for (int64_t b = 0; width <= 16 && b < (bit % 8 + width + 7) / 8; ++b)
        word |= uint32_t{codes[bit / 8 + b]} << (8 * b);
      visit(ir::load_f64(part, i), word >> (bit % 8) & 0xffffU >> (16 - std::min(width, 16)));
    }
  }
}

}  // namespace

Inspection Inspection::open(const std::filesystem::path& path) {
  auto impl = std::make_shared<Impl>(api::unwrap(format::open_model(boundary::native(path), {.any_kind = true})));
  const format::ModelFile& file = impl->file;
  impl->outline.description = api::to_public(import::outline_description(file, impl->outline.faults));
  impl->read = import::outline(file);
  impl->outline.structure = api::to_public(impl->read);
  return Inspection(std::move(impl));
}

const ModelOutline& Inspection::outline() const { return impl_->outline; }

std::vector<LayerSizes> Inspection::layer_sizes(std::span<const size_t> models) const {
  std::vector<LayerSizes> out;
  for (auto& sizes : import::outline_sizes(impl_->file, impl_->part(models), models))
    out.push_back({std::move(sizes.inputs), std::move(sizes.outputs)});
  return out;
}

std::map<std::string, std::string> Inspection::types_at_default_sizes(const std::string& function,
                                                                      std::span<const size_t> models) const {
  impl_->part(models);
  return import::outline_types(impl_->file, models, function);
}

std::vector<TreeNode> Inspection::tree_nodes(std::span<const size_t> models) const {
  std::vector<TreeNode> out;
  for (const auto& n : impl_->part(models).tree_nodes)
    out.push_back({n.tree, n.id, n.on_true, n.on_false, n.test, n.values});
  return out;
}

WeightStatistics Inspection::statistics(size_t weight, std::span<const size_t> models, size_t intervals) const {
  const auto& weights = impl_->part(models).weights;
  if (weight >= weights.size())
    throw Exception(ErrorKind::invalid_argument, cat("weight ", weight, ": expected a number below ", weights.size()));
  const Elements elements = api::unwrap(elements_of(weights[weight]));
  WeightStatistics out;
  out.bits = static_cast<unsigned>(elements.bits);
  out.count = static_cast<uint64_t>(elements.count);
  double least = INFINITY, most = -INFINITY, sum = 0, squares = 0;
  uint64_t finite = 0;
  std::bitset<65536> codes;
  each(elements, [&](double v, uint32_t code) {
    codes.set(code);
    out.zeros += v == 0;
    if (!std::isfinite(v)) {
      ++(std::isnan(v) ? out.nan : out.infinite);
      return;
    }
    ++finite;
    least = std::min(least, v);
    most = std::max(most, v);
    sum += v;
  });
  out.histogram.assign(std::clamp<size_t>(intervals, 1, 1024), 0);
  if (out.bits <= 16) out.distinct = codes.count();
  if (finite == 0) return out;
  out.minimum = least;
  out.maximum = most;
  out.mean = sum / static_cast<double>(finite);
  const double last = static_cast<double>(out.histogram.size() - 1), width = most - least;
  each(elements, [&](double v, uint32_t) {
    if (!std::isfinite(v)) return;
    squares += (v - out.mean) * (v - out.mean);
    const double at = width > 0 && std::isfinite(width) ? (v - least) / width * (last + 1) : 0;
    ++out.histogram[static_cast<size_t>(std::clamp(at, 0.0, last))];
  });
  out.deviation = std::sqrt(squares / static_cast<double>(finite));
  return out;
}

}  // namespace moka
