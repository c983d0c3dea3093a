// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <limits>

#include "import/onnx/node.h"

namespace moka::import::onnx {
namespace {

bool is_sizes(const Node& n, const Value* v) {
  return v->type.dtype() == DType::int32 && v->type.is_ranked() && v->type.rank() <= 1 &&
         (v->constant() != nullptr || n.scope.context.sizes.contains(v));
}

void identity(Node& n) {
  Item item = n.item(0);
  n.set(0, std::move(item));
}

/// Sizes for no elements, some of which are 0 and copied from x. -1 stands for the other sizes of x.
std::vector<int64_t> empty_shape(const Node& n, const Value* x, const std::vector<Size>& sizes) {
  std::vector<int64_t> out, left, given;
  size_t open = 0;
  for (const Size& s : sizes) {
    out.push_back(s.value), open += s.value == -1;
    if (s.value > 0) given.push_back(s.value);
  }
  if (open == 0) return out;
  const std::vector<int64_t> dims = n.known_shape(x, "a reshape of no elements").to_vector();
  for (size_t i = 0; i < dims.size(); ++i)
    if (i >= sizes.size() || sizes[i].value != 0) left.push_back(dims[i]);
  const int64_t rest = need(need(Shape::make(left)).checked_count()),
                divisor = need(need(Shape::make(given)).checked_count());
  if (open > 1 || n.integer_or("allowzero", 0) != 0 || rest % divisor != 0)
    n.malformed(cat("a reshape of ", x->type, " to sizes that -1 cannot complete"));
  std::replace(out.begin(), out.end(), int64_t{-1}, rest / divisor);
  return out;
}

void reshape(Node& n) {
  Value* x = n.in(0);
  Value* shape = n.has(1) ? n.in(1) : n.integers_constant(n.integers_or("shape"));
  std::vector<Size> sizes = n.sizes_of(shape);
  if (n.integer_or("allowzero", 0) == 0)
    for (size_t i = 0; i < sizes.size(); ++i) {
      if (!sizes[i].known || sizes[i].value != 0) continue;
      if (static_cast<int>(i) >= n.rank(x)) n.malformed("a size of 0 beyond the rank of the input");
      const int64_t d = x->type.shape()[static_cast<int>(i)];
      sizes[i] = d >= 0 ? Size{true, d} : Size{false, 0, d};
    }
  const bool allows_zero = n.integer_or("allowzero", 0) != 0;
  bool unknown = false, zero = false;
  for (const Size& s : sizes) unknown |= !s.known && s.symbol == ir::kAnyDim, zero |= s.known && s.value == 0;
  if (unknown && allows_zero) n.computed_parameter(1, "shape");
  if (zero && std::all_of(sizes.begin(), sizes.end(), [](const Size& s) { return s.known; }))
    return n.set(0, n.op("fill", {{"shape", Tensor::i32(empty_shape(n, x, sizes))},
                                  {"value", Tensor::scalar(x->type.dtype(), 0)}}));
  if (unknown || (zero && !allows_zero)) {
    // A size of 0, if it is one, copies the size of x.
    Value* own = n.shape_of(x);
    const int64_t wanted = static_cast<int64_t>(sizes.size()), have = n.rank(x);
    if (have > wanted) own = n.slice(own, 0, 0, wanted);
    if (have < wanted)
      own = n.concat({own, n.integers_constant(std::vector<int64_t>(static_cast<size_t>(wanted - have), 1))}, 0);
    shape = n.select(n.binary("equal", shape, n.scalar(0, shape)), own, shape);
  }
  if (zero) return n.set(0, n.op("fill", {{"shape", shape}, {"value", Tensor::scalar(x->type.dtype(), 0)}}));
  const std::vector<Size> known = is_sizes(n, x) ? n.sizes_of(x) : std::vector<Size>();
  Value* v = n.reshape(x, shape, sizes);
  if (!known.empty() && v->type.rank() <= 1) n.set_sizes(v, known);
  n.set(0, v);
}

void shape(Node& n) {
  Value* x = n.in(0);
  const int64_t r = n.rank(x);
  const auto clamped = [&](int64_t at) { return std::clamp<int64_t>(at < 0 ? at + r : at, 0, r); };
  const int64_t start = clamped(n.integer_or("start", 0)), end = clamped(n.integer_or("end", r));
  Value* all = n.shape_of(x);
  if (start == 0 && end == r) return n.set(0, all, DataType::int64);
  const std::vector<Size> sizes = n.sizes_of(all);
  const int64_t stop = std::max(start, end);
  Value* part = n.slice(all, 0, start, stop);
  n.set_sizes(part, {sizes.begin() + start, sizes.begin() + stop});
  n.set(0, part, DataType::int64);
}

void size(Node& n) {
  Value* x = n.in(0);
  Value* v = n.op("reduce_prod", {{"x", n.shape_of(x)}, {"axes", Tensor::i32({0})}, {"keep_dims", false}});
  n.set(0, v, DataType::int64);
}

void transpose(Node& n) {
  Value* x = n.in(0);
  std::vector<int64_t> perm = n.integers_or("perm");
  if (perm.empty())
    for (int64_t i = n.rank(x) - 1; i >= 0; --i) perm.push_back(i);
  n.set(0, n.transpose(x, perm));
}

void unsqueeze(Node& n) {
  Value* x = n.in(0);
  const auto axes = n.integers_either("axes", 1);
  if (!axes) n.malformed("axes are missing");
  Value* v = n.expand_dims(x, *axes);
  if (is_sizes(n, x) && v->type.rank() == 1) n.set_sizes(v, n.sizes_of(x));
  n.set(0, v);
}

void squeeze(Node& n) {
  Value* x = n.in(0);
  auto axes = n.integers_either("axes", 1);
  if (!axes) {
    const Shape& s = n.known_shape(x, "Squeeze without axes");
    axes.emplace();
    for (int i = 0; i < s.rank(); ++i)
      if (s[i] == 1) axes->push_back(i);
  }
  Value* v = n.squeeze(x, *axes);
  if (v != x && is_sizes(n, x) && v->type.rank() == 0) n.set_sizes(v, n.sizes_of(x));
  n.set(0, v);
}

void flatten(Node& n) {
  Value* x = n.in(0);
  const int64_t r = n.rank(x);
  int64_t axis = n.integer_or("axis", 1);
  if (axis < 0) axis += r;
  if (axis < 0 || axis > r) n.malformed(cat("axis ", axis, " of an input of rank ", r));
  if (r == 0) return n.set(0, n.reshape(x, {1, 1}));
  const Shape& s = x->type.shape();
  const auto product = [&](int64_t from, int64_t to) {
    Size out{true, 1};
    for (int64_t i = from; i < to; ++i) {
      const int64_t d = s[static_cast<int>(i)];
      if (d < 0) out = {false, 0, to - from == 1 ? d : ir::kAnyDim};
      if (!out.known) break;
      out.value *= d;
    }
    return out;
  };
  const Size rows = product(0, axis), columns = product(axis, r);
  if (!rows.known && !columns.known) return n.set(0, n.op("flatten2d", {{"x", x}, {"axis", static_cast<int>(axis)}}));
  Value* v = n.reshape(x, {rows.known ? rows.value : -1, columns.known ? columns.value : -1});
  if (v->type.shape()[0] < 0) v->type.shape()[0] = rows.symbol;
  if (v->type.shape()[1] < 0) v->type.shape()[1] = columns.symbol;
  n.set(0, v);
}

void concat(Node& n) {
  std::vector<Value*> values;
  for (size_t i = 0; i < n.inputs(); ++i) values.push_back(n.in(i));
  const int64_t axis = n.axis(n.integer_or("axis", n.opset < 4 ? 1 : 0), values[0]);
  if (values.size() == 1) return n.set(0, n.unary("identity", values[0]));
  Value* v = n.concat(values, axis);
  const bool track = std::all_of(values.begin(), values.end(), [&](const Value* x) {
    return x->type.rank() == 1 && x->type.dtype() == DType::int32 && x->type.is_concrete();
  });
  if (track && v->constant() == nullptr) {
    std::vector<Size> sizes;
    for (const Value* x : values)
      for (const Size& s : n.sizes_of(x)) sizes.push_back(s);
    n.set_sizes(v, std::move(sizes));
  }
  n.set(0, v);
}

void split(Node& n) {
  Value* x = n.in(0);
  const int64_t axis = n.axis(n.integer_or("axis", 0), x);
  auto sizes = n.integers_either("split", 1);
  if (!sizes) {
    const int64_t total = x->type.shape()[static_cast<int>(axis)];
    if (total < 0) n.known_shape(x, "Split into equal parts");
    const auto parts = static_cast<int64_t>(n.outputs());
    if (parts < 1) n.malformed("Split without outputs");
    const int64_t each = (total + parts - 1) / parts;
    sizes.emplace();
    for (int64_t i = 0; i < parts; ++i) sizes->push_back(std::max<int64_t>(0, std::min(each, total - i * each)));
  }
  if (sizes->size() != n.outputs())
    n.malformed(cat("expected ", n.outputs(), " sizes, one for each output, got ", sizes->size()));
  const std::vector<Size> known = is_sizes(n, x) ? n.sizes_of(x) : std::vector<Size>();
  int64_t at = 0;
  for (size_t i = 0; i < sizes->size(); ++i) {
    const int64_t end = at + (*sizes)[i];
    Value* part = sizes->size() == 1 ? n.unary("identity", x) : n.slice(x, axis, at, end);
    if (!known.empty() && end <= static_cast<int64_t>(known.size()))
      n.set_sizes(part, {known.begin() + at, known.begin() + end});
    n.set(i, part);
    at = end;
  }
}

void slice(Node& n) {
  Value* x = n.in(0);
  const auto r = static_cast<size_t>(n.rank(x));
  const bool older = n.opset < 10;
  const size_t count = older ? n.integers_or("starts").size() : n.sizes(1).size();
  std::vector<int64_t> axes = older ? n.integers_or("axes") : n.has(3) ? n.integers(3, "axes") : std::vector<int64_t>();
  for (size_t i = axes.size(); i < count; ++i) axes.push_back(static_cast<int64_t>(i));
  const std::vector<int64_t> steps = !older && n.has(4) ? n.integers(4, "steps") : std::vector<int64_t>(count, 1);
  if (axes.size() != count || steps.size() != count) n.malformed("starts, axes and steps differ in length");
  std::vector<int64_t> begins(r, 0), ends(r, 0), strides(r, 1);
  Tensor begin_mask = need(Tensor::zeros(DType::boolean, {static_cast<int64_t>(r)}));
  Tensor end_mask = need(Tensor::zeros(DType::boolean, {static_cast<int64_t>(r)}));
  for (size_t i = 0; i < r; ++i) begin_mask.mut<uint8_t>()[i] = end_mask.mut<uint8_t>()[i] = 1;
  constexpr int64_t most = std::numeric_limits<int32_t>::max();
  const auto constants = [&](std::string_view name, size_t i) -> std::optional<std::vector<int64_t>> {
    if (older) return n.integers_or(name);
    const Tensor* t = n.constant(i);
    if (t == nullptr) return std::nullopt;
    return integers_of(*t);
  };
  const auto starts = constants("starts", 1), stops = constants("ends", 2);
  if ((starts && starts->size() != count) || (stops && stops->size() != count))
    n.malformed("starts and ends differ in length");
  std::vector<Value*> computed_begins(r), computed_ends(r);
  bool computed = false;
  const auto element = [&](size_t input, size_t i) {
    return n.slice(n.in(input), 0, static_cast<int64_t>(i), static_cast<int64_t>(i) + 1);
  };
  for (size_t i = 0; i < count; ++i) {
    const auto a = static_cast<size_t>(n.axis(axes[i], x));
    strides[a] = std::clamp(steps[i], -most, most);
    if (steps[i] == 0) n.malformed("a step of 0");
    const int64_t d = x->type.shape()[static_cast<int>(a)];
    if (starts) {
      begins[a] = std::clamp((*starts)[i], -most, most);
      const bool whole = steps[i] > 0 ? begins[a] == 0 : begins[a] == most || (d >= 0 && begins[a] >= d - 1);
      begin_mask.mut<uint8_t>()[a] = whole;
    } else {
      computed_begins[a] = element(1, i), computed = true;
      begin_mask.mut<uint8_t>()[a] = 0;
    }
    if (stops) {
      ends[a] = std::clamp((*stops)[i], -most, most);
      const bool whole =
          steps[i] > 0 ? ends[a] == most || (d >= 0 && ends[a] >= d) : ends[a] == -most || (d >= 0 && ends[a] < -d);
      end_mask.mut<uint8_t>()[a] = whole;
    } else {
      computed_ends[a] = element(2, i), computed = true;
      end_mask.mut<uint8_t>()[a] = 0;
    }
  }
  const auto vector = [&](const std::vector<int64_t>& known, const std::vector<Value*>& values) -> NamedArg {
    if (!computed) return {"", Tensor::i32(known)};
    std::vector<Value*> parts;
    for (size_t i = 0; i < r; ++i) parts.push_back(values[i] != nullptr ? values[i] : n.integers_constant({known[i]}));
    return {"", n.concat(parts, 0)};
  };
  NamedArg begin = vector(begins, computed_begins), end = vector(ends, computed_ends);
  begin.name = "begin", end.name = "end";
  const std::vector<Size> sizes = is_sizes(n, x) ? n.sizes_of(x) : std::vector<Size>();
  Value* v = n.op(
      "slice_by_index",
      {{"x", x}, begin, end, {"stride", Tensor::i32(strides)}, {"begin_mask", begin_mask}, {"end_mask", end_mask}});
  if (!sizes.empty() && r == 1 && !computed && v->constant() == nullptr && v->type.is_concrete()) {
    const auto length = static_cast<int64_t>(sizes.size());
    int64_t at = begin_mask.mut<uint8_t>()[0] != 0 ? (strides[0] > 0 ? 0 : length - 1) : begins[0];
    if (at < 0) at += length;
    std::vector<Size> taken;
    for (int64_t i = 0; i < v->type.shape()[0] && at >= 0 && at < length; ++i, at += strides[0])
      taken.push_back(sizes[static_cast<size_t>(at)]);
    n.set_sizes(v, std::move(taken));
  }
  n.set(0, v);
}

void expand(Node& n) {
  Value* x = n.in(0);
  Value* shape = n.in(1);
  const std::vector<Size> sizes = n.sizes_of(shape);
  const bool known = std::all_of(sizes.begin(), sizes.end(), [](const Size& s) { return s.known; });
  const DType own = x->type.dtype();
  if (known && x->type.is_concrete()) {
    std::vector<int64_t> dims;
    for (const Size& s : sizes) dims.push_back(s.value);
    const Shape wanted = need(ir::broadcast(x->type.shape(), need(Shape::make(dims))));
    Value* v = n.broadcast(x, wanted.to_vector());
    return n.set(0, v == x ? n.unary("identity", x) : v);
  }
  // Sizes that are known only while running: a sum with zeros broadcasts.
  const DType number = own == DType::boolean ? DType::int32 : own;
  Value* zeros = n.op("fill", {{"shape", shape}, {"value", Tensor::scalar(number, 0)}});
  for (size_t i = 0; i < sizes.size() && zeros->type.is_ranked(); ++i)
    zeros->type.shape()[static_cast<int>(i)] = sizes[i].known ? sizes[i].value : sizes[i].symbol;
  n.set(0, n.cast(n.add(n.cast(x, number), zeros), own));
}

void tile(Node& n) {
  Value* x = n.in(0);
  n.set(0, n.op("tile", {{"x", x}, {"reps", n.in(1)}}));
}

void depth_to_space(Node& n) {
  const auto block = static_cast<int>(n.integer_or("blocksize", 1));
  if (n.text_or("mode", "DCR") == "DCR")
    return n.set(0, n.op("depth_to_space", {{"x", n.in(0)}, {"block_size", block}}));
  n.set(0, n.op("pixel_shuffle", {{"x", n.in(0)}, {"upscale_factor", block}}));
}

void space_to_depth(Node& n) {
  const auto block = static_cast<int>(n.integer_or("blocksize", 1));
  const std::string mode = n.text_or("mode", "DCR");
  n.set(0, mode == "CRD" ? n.op("pixel_unshuffle",
                                {{"x", n.in(0)}, {"downscale_factor", Tensor::scalar_i64(DType::uint32, block)}})
                         : n.op("space_to_depth", {{"x", n.in(0)}, {"block_size", block}}));
}

void reverse_sequence(Node& n) {
  n.set(0, n.op("reverse_sequence", {{"x", n.in(0)},
                                     {"lengths", n.in(1)},
                                     {"seq_axis", static_cast<int>(n.integer_or("time_axis", 0))},
                                     {"batch_axis", static_cast<int>(n.integer_or("batch_axis", 1))}}));
}

constexpr OperatorImport kShapeOperators[] = {
    {"Identity", identity},
    {"Reshape", reshape},
    {"Shape", shape},
    {"Size", size},
    {"Transpose", transpose},
    {"Unsqueeze", unsqueeze},
    {"Squeeze", squeeze},
    {"Flatten", flatten},
    {"Concat", concat},
    {"Split", split},
    {"Slice", slice},
    {"Expand", expand},
    {"Tile", tile},
    {"DepthToSpace", depth_to_space},
    {"SpaceToDepth", space_to_depth},
    {"ReverseSequence", reverse_sequence},
};

}  // namespace

std::span<const OperatorImport> operators_shape() { return kShapeOperators; }

}  // namespace moka::import::onnx
