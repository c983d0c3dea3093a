#include "moka/inspection.h"

#include <algorithm>
#include <bitset>
#include <cmath>

#include "api/internal.h"
#include "ir/text_value.h"

namespace moka {

struct Inspection::Impl {
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

/// The stored elements of `weight`. Errors: unsupported.
Result<ir::TensorView> elements_of(const import::Outline::Weight& weight) {
  if (weight.data.empty())
    return fail(ErrorCode::unsupported, "weight '", weight.name, "': its elements cannot be read");
  ir::Lexer lexer(weight.type);
  const ir::Type type = MOKA_TRY(ir::read_type(lexer));
  if (!type.is_tensor() || ir::bits(type.dtype()) == 0)
    return fail(ErrorCode::unsupported, "weight '", weight.name, "': ", weight.type, " has no numbers");
  const uint64_t count = weight.data.size() * 8 / static_cast<unsigned>(ir::bits(type.dtype()));
  // The type tells how many of the stored elements are padding.
  const int64_t declared = type.is_concrete() ? type.shape().count() : -1;
  ir::TensorView view;
  view.dtype = type.dtype();
  view.shape =
      ir::Shape{declared >= 0 ? std::min<int64_t>(declared, static_cast<int64_t>(count)) : static_cast<int64_t>(count)};
  view.data = const_cast<std::byte*>(weight.data.data());
  return view;
}

/// Calls `visit` with each element as a double.
template <class Visit>
void each(const ir::TensorView& view, const Visit& visit) {
  const int bits = ir::bits(view.dtype);
  const auto* bytes = static_cast<const std::byte*>(view.data);
  // Payloads in a specification may be unaligned, so they are copied piece by piece.
  std::vector<std::byte> piece(static_cast<size_t>(std::min(kPiece, view.count())) * 8);
  for (int64_t from = 0; from < view.count(); from += kPiece) {
    const int64_t count = std::min(kPiece, view.count() - from);
    const size_t size = static_cast<size_t>((count * bits + 7) / 8);
    std::copy_n(bytes + from * bits / 8, size, piece.begin());
    const ir::TensorView part{view.dtype, ir::Shape{count}, piece.data()};
    for (int64_t i = 0; i < count; ++i) visit(ir::load_f64(part, i));
  }
}

}  // namespace

Inspection Inspection::open(const std::string& path) {
  const format::ModelFile file = api::unwrap(format::open_model(path, {.any_kind = true}));
  auto impl = std::make_shared<Impl>();
  impl->outline.description = api::to_public(import::outline_description(file, impl->outline.faults));
  impl->read = import::outline(file);
  impl->outline.structure = api::to_public(impl->read);
  return Inspection(std::move(impl));
}

const ModelOutline& Inspection::outline() const { return impl_->outline; }

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
  const ir::TensorView view = api::unwrap(elements_of(weights[weight]));
  WeightStatistics out;
  out.bits = static_cast<unsigned>(ir::bits(view.dtype));
  out.count = static_cast<uint64_t>(view.count());
  double least = INFINITY, most = -INFINITY, sum = 0, squares = 0;
  uint64_t finite = 0;
  each(view, [&](double v) {
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
  if (finite == 0) return out;
  out.minimum = least;
  out.maximum = most;
  out.mean = sum / static_cast<double>(finite);
  const double last = static_cast<double>(out.histogram.size() - 1), width = most - least;
  each(view, [&](double v) {
    if (!std::isfinite(v)) return;
    squares += (v - out.mean) * (v - out.mean);
    const double at = width > 0 && std::isfinite(width) ? (v - least) / width * (last + 1) : 0;
    ++out.histogram[static_cast<size_t>(std::clamp(at, 0.0, last))];
  });
  out.deviation = std::sqrt(squares / static_cast<double>(finite));
  if (out.bits <= 16) {
    std::bitset<65536> codes;
    const auto* bytes = reinterpret_cast<const uint8_t*>(view.data);
    for (uint64_t i = 0; i < out.count; ++i) {
      const uint64_t bit = i * out.bits;
      uint32_t word = 0;
      for (uint64_t b = 0; b < (bit % 8 + out.bits + 7) / 8; ++b) word |= uint32_t{bytes[bit / 8 + b]} << (8 * b);
      codes.set((word >> (bit % 8)) & ((1U << out.bits) - 1));
    }
    out.distinct = codes.count();
  }
  return out;
}

}  // namespace moka
