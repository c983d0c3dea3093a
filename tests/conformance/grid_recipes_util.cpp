// SPDX-License-Identifier: Apache-2.0
#include <map>
#include <numeric>

#include "conformance/grid_util.h"

namespace moka::conformance {

using namespace ir;

namespace {

/// Consistent arguments for operations where independent draws of each parameter rarely match.
class Recipe {
 public:
  Recipe(const OpVersion& version, Choices& c) : version_(version), c_(c) {}

  std::vector<Argument> make() {
    using Make = void (Recipe::*)();
    static const std::map<std::string, Make> kAll = {{"affine", &Recipe::affine},
                                                     {"batch_to_space", &Recipe::batch_to_space},
                                                     {"constexpr_lut_to_sparse", &Recipe::lut_to_sparse},
                                                     {"einsum", &Recipe::einsum},
                                                     {"ml_impute_dict", &Recipe::impute_dict},
                                                     {"ml_non_maximum_suppression", &Recipe::suppression},
                                                     {"ml_recommend", &Recipe::recommend},
                                                     {"ml_tree_ensemble", &Recipe::trees},
                                                     {"moka_attention", &Recipe::attention},
                                                     {"moka_fake_quantize", &Recipe::fake_quantize},
                                                     {"moka_scale_weights", &Recipe::scale_weights},
                                                     {"nn_dequantize_weights", &Recipe::dequantize_weights},
                                                     {"range_1d", &Recipe::range},
                                                     {"reshape_like", &Recipe::reshape_like},
                                                     {"slice_update", &Recipe::slice_update},
                                                     {"space_to_batch", &Recipe::space_to_batch}};
    const auto it = kAll.find(version_.def->name);
    if (it != kAll.end()) (this->*it->second)();
    return std::move(made_);
  }

 private:
  DType one_of(std::initializer_list<DType> types) { return c_.pick(std::vector<DType>(types)); }
  /// fp16 if the version supports it.
  DType real_type(std::string_view param) {
    return (version_.domain(*version_.param(param)) & only(DType::fp16)) != 0 && c_.one_in(3) ? DType::fp16
                                                                                              : DType::fp32;
  }

  /// Multiples of 1/16 within +-2; integers from 0 to 3.
  Tensor random(DType dtype, const Shape& shape) {
    Tensor t = Tensor::zeros(dtype, shape).value();
    for (int64_t i = 0; i < t.count(); i++)
      if (is_float(dtype))
        store_f64(t.view(), i, static_cast<double>(c_.from_to(-32, 32)) / 16);
      else
        store_i64(t.view(), i, c_.from_to(0, dtype == DType::boolean || dtype == DType::uint1 ? 1 : 3));
    return t;
  }
  Tensor integers(DType dtype, const std::vector<int64_t>& v) {
    Tensor t = Tensor::zeros(dtype, Shape{static_cast<int64_t>(v.size())}).value();
    for (size_t i = 0; i < v.size(); i++) store_i64(t.view(), static_cast<int64_t>(i), v[i]);
    return t;
  }

  /// Inputs of the program where the parameter may be one.
  void give(std::string param, Constant value) {
    const bool constant = version_.param(param)->constant || c_.one_in(4);
    made_.push_back({std::move(param), std::move(value), constant});
  }
  void fix(std::string param, Constant value) { made_.push_back({std::move(param), std::move(value), true}); }
  void fix(std::string param, int64_t value) { fix(std::move(param), Tensor::scalar_i64(DType::int32, value)); }
  void fix(std::string param, const char* value) { fix(std::move(param), Constant(Tensor::text(value))); }

  void affine() {
    const DType t = real_type("x");
    const int64_t n = c_.from_to(1, 2);
    give("x", random(t, {n, c_.from_to(1, 3), c_.from_to(1, 5), c_.from_to(1, 5)}));
    give("transform_matrix", random(t, {n, 6}));
    fix("output_height", c_.from_to(1, 5));
    fix("output_width", c_.from_to(1, 5));
    fix("sampling_mode", "bilinear");
    fix("padding_mode", "constant");
    fix("padding_value", Constant(Tensor::scalar(t, 0)));
    fix("coordinates_mode", "normalized_minus_one_to_one");
    fix("align_corners", Constant(Tensor::boolean(c_.one_in(2))));
  }

  void batch_to_space() {
    const int64_t down = c_.from_to(1, 3), across = c_.from_to(1, 3), h = c_.from_to(1, 4), w = c_.from_to(1, 4);
    give("x", random(real_type("x"), {down * across * c_.from_to(1, 2), c_.from_to(1, 3), h, w}));
    fix("block_shape", Constant(Tensor::i32({down, across})));
    const int64_t top = c_.from_to(0, down * h - 1), left = c_.from_to(0, across * w - 1);
    fix("crops", Constant(integers(DType::int32,
                                   {top, c_.from_to(0, down * h - 1 - top), left, c_.from_to(0, across * w - 1 - left)})
                              .reshaped({2, 2})));
  }

  void space_to_batch() {
    const int64_t down = c_.from_to(1, 3), across = c_.from_to(1, 3), h = c_.from_to(1, 5), w = c_.from_to(1, 5);
    give("x", random(real_type("x"), {c_.from_to(1, 2), c_.from_to(1, 3), h, w}));
    fix("block_shape", Constant(Tensor::i32({down, across})));
    const int64_t top = c_.from_to(0, 2), left = c_.from_to(0, 2);
    fix("paddings", Constant(integers(DType::int32, {top, (down - (h + top) % down) % down, left,
                                                     (across - (w + left) % across) % across})
                                 .reshaped({2, 2})));
  }

  void lut_to_sparse() {
    const int64_t groups = c_.from_to(1, 2), rows = groups * c_.from_to(1, 3), columns = c_.from_to(1, 6);
    const DType codes = one_of({DType::uint1, DType::uint2, DType::uint3, DType::uint4, DType::uint6, DType::uint8});
    const Tensor mask = random(DType::uint1, {rows, columns});
    std::vector<int64_t> set;
    for (int64_t i = 0; i < mask.count(); i++)
      if (load_i64(mask.view(), i) != 0) set.push_back(c_.from_to(0, (1 << std::min(bits(codes), 4)) - 1));
    fix("indices_mask", mask);
    fix("indices_nonzero_data", integers(codes, set));
    fix("lut", random(real_type("lut"), {groups, 1, int64_t{1} << bits(codes), 1}));
  }

  void einsum() {
    const std::string equation =
        c_.pick(std::vector<std::string>{"ij,jk->ik", "nchw,nwhu->nchu", "chw,whu->chu", "abc,cd->abd", "bij,bkj->bik",
                                         "a,b->ab", "ab,ab->b", "bchw,bkhw->bck", "i,i->"});
    std::map<char, int64_t> sizes;
    const DType t = real_type("values");
    const size_t comma = equation.find(','), arrow = equation.find("->");
    for (const std::string& term : {equation.substr(0, comma), equation.substr(comma + 1, arrow - comma - 1)}) {
      Shape shape;
      for (char letter : term) {
        if (!sizes.contains(letter)) sizes[letter] = c_.from_to(1, 4);
        shape.push_back(sizes[letter]);
      }
      made_.push_back({"values", random(t, shape), false});
    }
    fix("equation", equation.c_str());
  }

  void impute_dict() {
    std::vector<Constant> parts;
    for (int64_t key = 0; key < 5; key++) {
      if (c_.one_in(3)) continue;
      parts.emplace_back(Tensor::scalar_i64(DType::int64, key));
      parts.emplace_back(Tensor::scalar(DType::fp64, static_cast<double>(c_.from_to(0, 3))));
    }
    fix("x", Constant(Type::dict(Type::scalar(DType::int64), Type::scalar(DType::fp64)), std::move(parts)));
    std::vector<int64_t> keys;
    for (int64_t key = 0; key < 6; key++)
      if (!c_.one_in(3)) keys.push_back(key);
    fix("keys", integers(DType::int64, keys));
    fix("imputed", random(DType::fp64, {static_cast<int64_t>(keys.size())}));
    fix("replaced", Constant(Tensor::scalar(DType::fp64, static_cast<double>(c_.from_to(0, 3)))));
  }

  void suppression() {
    const int64_t n = c_.from_to(1, 6);
    give("coordinates", random(DType::fp32, {n, 4}));
    give("confidence", random(DType::fp32, {n, c_.from_to(1, 3)}));
    fix("default_iou_threshold", Constant(Tensor::scalar(DType::fp64, static_cast<double>(c_.from_to(0, 4)) / 4)));
    fix("default_confidence_threshold", Constant(Tensor::scalar(DType::fp64, static_cast<double>(c_.from_to(-1, 1)))));
    fix("per_class", Constant(Tensor::boolean(c_.one_in(2))));
    fix("min_boxes", Constant(Tensor::scalar_i64(DType::int64, c_.from_to(0, 3))));
    fix("max_boxes", Constant(Tensor::scalar_i64(DType::int64, c_.one_in(3) ? -1 : c_.from_to(3, 6))));
  }

  void recommend() {
    const int64_t n = c_.from_to(1, 5);
    std::vector<int64_t> ids, order, begin{0}, similar;
    for (int64_t i = 0; i < n; i++) {
      ids.push_back(10 * i);
      order.push_back((i + 2) % n);
      for (int64_t k = c_.from_to(0, 3); k > 0; k--) similar.push_back(c_.from_to(0, n - 1));
      begin.push_back(static_cast<int64_t>(similar.size()));
    }
    std::vector<int64_t> items;
    for (int64_t k = c_.from_to(1, 3); k > 0; k--) items.push_back(10 * c_.from_to(0, n));
    give("items", integers(DType::int64, items));
    fix("ids", integers(DType::int64, ids));
    fix("order", integers(DType::int64, order));
    fix("row_begin", integers(DType::int64, begin));
    fix("similar", integers(DType::int64, similar));
    fix("similarity", random(DType::fp64, {static_cast<int64_t>(similar.size())}));
    fix("shift", random(DType::fp64, {n}));
  }

  /// Up to three trees of three questions and four leaves.
  void trees() {
    const int64_t features = c_.from_to(1, 4), dims = c_.from_to(1, 3), trees = c_.from_to(1, 3), n = 7 * trees;
    std::vector<int64_t> mode, feature, yes, no, roots, leaves;
    for (int64_t t = 0; t < trees; t++) {
      roots.push_back(7 * t);
      for (int64_t i = 0; i < 7; i++) {
        const bool leaf = i >= 3;
        const auto values = static_cast<int64_t>(leaves.size());
        mode.push_back(leaf ? 6 : c_.from_to(0, 5));
        feature.push_back(leaf ? 0 : c_.from_to(0, features - 1));
        if (leaf)
          for (int64_t k = c_.from_to(0, 2); k > 0; k--) leaves.push_back(c_.from_to(0, dims - 1));
        yes.push_back(leaf ? values : 7 * t + 2 * i + 1);
        no.push_back(leaf ? static_cast<int64_t>(leaves.size()) : 7 * t + 2 * i + 2);
      }
    }
    give("x", random(DType::fp64, {features}));
    fix("mode", integers(DType::uint8, mode));
    fix("feature", integers(DType::int32, feature));
    fix("threshold", random(DType::fp64, {n}));
    fix("on_true", integers(DType::int32, yes));
    fix("on_false", integers(DType::int32, no));
    fix("missing_true", random(DType::boolean, {n}));
    fix("roots", integers(DType::int32, roots));
    fix("leaf_index", integers(DType::int32, leaves));
    fix("leaf_value", random(DType::fp64, {static_cast<int64_t>(leaves.size())}));
    fix("base", random(DType::fp64, {dims}));
    fix("single", random(DType::boolean, {n}));
  }

  void attention() {
    const DType t = real_type("query");
    const int64_t batch = c_.from_to(1, 2), heads = c_.from_to(1, 3), rows = c_.from_to(1, 4), keys = c_.from_to(1, 4),
                  width = c_.from_to(1, 4), made = c_.from_to(1, 4);
    auto operand = [&](const std::string& name, int64_t count, int64_t columns) {
      const bool heads_inside = c_.one_in(2);  // [batch, rows, heads, columns]
      give(name, random(t, heads_inside ? Shape{batch, count, heads, columns} : Shape{batch, heads, count, columns}));
      fix(name + "_steps", Constant(Tensor::i32({0, heads * count * columns, heads_inside ? columns : count * columns,
                                                 heads_inside ? heads * columns : columns, 1})));
    };
    operand("query", rows, width);
    operand("key", keys, width);
    operand("value", keys, made);
    if (c_.one_in(2)) give("attn_mask", random(t, c_.one_in(2) ? Shape{rows, keys} : Shape{batch, 1, rows, keys}));
    fix("sizes", Constant(Tensor::i32({batch, heads, rows, keys, width, made})));
    fix("scale", Constant(Tensor::scalar(DType::fp32, static_cast<double>(c_.from_to(1, 4)) / 4)));
    fix("rows_first", Constant(Tensor::boolean(c_.one_in(2))));
  }

  void fake_quantize() {
    const bool is_signed = c_.one_in(2);
    give("x", random(DType::fp32, {c_.from_to(1, 4), c_.from_to(1, 40)}));
    fix("scale", Constant(Tensor::scalar(DType::fp32, static_cast<double>(c_.from_to(1, 40)) / 1000)));
    fix("zero_point", c_.from_to(is_signed ? -128 : 0, is_signed ? 127 : 255));
    fix("dtype", is_signed ? "int8" : "uint8");
  }

  void scale_weights() {
    const int64_t groups = c_.from_to(1, 3), rows = groups * c_.from_to(1, 4), columns = c_.from_to(1, 4);
    const bool transposed = c_.one_in(2);
    const DType t = one_of({DType::fp32, DType::fp64});
    const int64_t across = columns * groups;
    auto scale = [&](int64_t channels) { return Constant(random(DType::fp64, {c_.one_in(3) ? 1 : channels})); };
    give("weight",
         c_.one_in(2) ? random(t, {rows, columns}) : random(t, {rows, columns, c_.from_to(1, 3), c_.from_to(1, 3)}));
    fix("input_scale", scale(transposed ? rows : across));
    fix("output_scale", scale(transposed ? across : rows));
    fix("groups", groups);
    fix("transposed", Constant(Tensor::boolean(transposed)));
  }

  void dequantize_weights() {
    const int64_t bits = c_.from_to(1, 8), out = c_.from_to(1, 4), in = c_.from_to(1, 5), axis = c_.from_to(0, 1);
    fix("data", random(DType::uint8, {(out * in * bits + 7) / 8}));
    fix("shape", Constant(Tensor::i32({out, in})));
    fix("bits", bits);
    fix("axis", axis);
    if (c_.one_in(2)) {
      fix("lut", random(DType::fp32, {int64_t{1} << bits}));
      return;
    }
    fix("scale", random(DType::fp32, {c_.one_in(2) ? 1 : axis == 0 ? out : in}));
    if (c_.one_in(2)) fix("bias", random(DType::fp32, {1}));
  }

  void range() {
    const DType t = one_of({DType::fp32, DType::fp16, DType::int32});
    const int64_t start = c_.from_to(-5, 5), step = c_.one_in(2) ? c_.from_to(1, 3) : c_.from_to(-3, -1);
    auto number = [&](int64_t v) {
      Tensor n = Tensor::zeros(t, {}).value();
      store_f64(n.view(), 0, static_cast<double>(v));
      return Constant(n);
    };
    give("end", number(start + step * c_.from_to(0, 6)));
    give("start", number(start));
    give("step", number(step));
  }

  /// [a, b, c] becomes [a b, c], the first from one tensor, the second from another.
  void reshape_like() {
    const int64_t a = c_.from_to(1, 3), b = c_.from_to(1, 3), c = c_.from_to(1, 4);
    give("x", random(one_of({DType::fp32, DType::int32, DType::boolean}), {a, b, c}));
    made_.push_back({"ref_tensors", random(DType::fp32, {a * b, c_.from_to(1, 3)}), false});
    made_.push_back({"ref_tensors", random(DType::fp32, {c_.from_to(1, 3), c}), false});
    for (auto [begin, end] : {std::pair<int64_t, int64_t>{0, 1}, {1, 2}}) {
      fix("begins", begin);
      fix("ends", end);
    }
    fix("end_masks", Constant(Tensor::boolean(false)));
    fix("end_masks", Constant(Tensor::boolean(c_.one_in(2))));
  }

  void slice_update() {
    Shape x, update;
    std::vector<int64_t> begin, end, stride;
    for (int64_t rank = c_.from_to(1, 3); rank > 0; rank--) {
      const int64_t n = c_.from_to(1, 6), first = c_.from_to(0, n - 1), last = c_.from_to(first + 1, n),
                    step = c_.from_to(1, 2);
      x.push_back(n);
      update.push_back((last - first + step - 1) / step);
      begin.push_back(first);
      end.push_back(last);
      stride.push_back(step);
    }
    const DType t = one_of({DType::fp32, DType::fp16, DType::int32});
    give("x", random(t, x));
    give("update", random(t, update));
    give("begin", integers(DType::int32, begin));
    give("end", integers(DType::int32, end));
    fix("stride", integers(DType::int32, stride));
  }

  const OpVersion& version_;
  Choices& c_;
  std::vector<Argument> made_;
};

}  // namespace

std::vector<Argument> recipe(const OpVersion& version, Choices& choices) { return Recipe(version, choices).make(); }

}  // namespace moka::conformance
