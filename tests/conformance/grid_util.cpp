// SPDX-License-Identifier: Apache-2.0
#include "conformance/grid_util.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <map>
#include <memory>
#include <random>
#include <set>

#include "base/bytes.h"
#include "ir/text_printer.h"

namespace moka::conformance {

using namespace ir;

SeededChoices::SeededChoices(std::string_view seed) {
  uint64_t h = 14695981039346656037u;  // FNV-1a
  for (char c : seed) h = (h ^ static_cast<unsigned char>(c)) * 1099511628211u;
  random_.seed(h);
}

RandomPrograms::RandomPrograms(int usual) {
  const char *const number = std::getenv("MOKA_RANDOM_PROGRAMS"), *const start = std::getenv("MOKA_RANDOM_SEED");
  if (start != nullptr) seed = cat(start, " ");
  more = number != nullptr && std::atoi(number) > 0;
  count = more ? std::atoi(number) : usual;
}

uint32_t ByteChoices::below(uint32_t n) {
  uint32_t v = 0;
  for (uint32_t width = n - 1; width > 0 && !bytes_.empty(); width >>= 8, bytes_ = bytes_.subspan(1))
    v = v << 8 | bytes_[0];
  return v % n;
}

namespace {

constexpr int64_t kMaxElements = 20'000;  // elements per result
constexpr int64_t kMaxHint = 16;

constexpr std::string_view kSumsOfProducts[] = {"conv", "conv_transpose", "einsum", "linear", "matmul"};
constexpr std::string_view kRecurrent[] = {
    "gru", "lstm", "rnn", "moka_gru_gradient", "moka_lstm_gradient", "moka_rnn_gradient"};
constexpr std::string_view kPadded[] = {"conv", "conv_transpose", "conv_quantized"};

template <class List>
bool is_one_of(const OpVersion& version, const List& names) {
  return std::find(std::begin(names), std::end(names), version.def->name) != std::end(names);
}

/// The value of one parameter.
struct Given {
  bool present = false;
  bool constant = false;  ///< false: an input of the program
  bool const_op = false;  ///< written as a `const` operation
  bool unknown = false;   ///< an input declared without sizes
  std::vector<Constant> values;
};

class Generator {
 public:
  Generator(const OpVersion& version, Choices& c) : version_(version), c_(c) {
    for (Opset o : {Opset::ios13, Opset::ios14, Opset::ios15, Opset::ios16, Opset::ios17, Opset::ios18, Opset::ios26})
      if (version.def->at(o) == &version) opsets_.push_back(o);
  }

  Result<Case> run(int attempts) {
    restart();
    for (;;) {
      Result<Case> made = build();
      if (made.ok() || --attempts <= 0) return made;
      learn(made.error().to_string());
    }
  }

 private:
  void restart() {
    opset_ = opsets_.empty() ? version_.since : c_.pick(opsets_);
    special_ = nullptr;
    if (const auto n = static_cast<uint32_t>(version_.params.size()); n > 0 && c_.one_in(6))
      special_ = &version_.params[c_.one_in(2) ? 0 : c_.below(n)];
    // Kernels may skip products with padding, so results may differ where such a weight is NaN or infinite.
    if (special_ != nullptr && special_->name == "weight" && is_one_of(version_, kPadded)) special_ = nullptr;
    types_.clear();
    for (const auto& [name, domain] : version_.type_vars) types_[name] = dtype_of(domain);
    base_ = random_shape(c_.one_in(6) ? 0 : 1, 5);
    given_.assign(version_.params.size(), {});
    for (size_t i = 0; i < given_.size(); ++i) draw(i);
    if (!c_.one_in(4)) follow(recipe(version_, c_));
  }

  void follow(std::vector<Argument> recipe) {
    if (recipe.empty()) return;
    for (Given& g : given_) g = {};
    for (Argument& a : recipe) {
      Given& g = given_[static_cast<size_t>(version_.param_index(a.param))];
      g.present = true;
      g.constant = a.constant;
      g.values.push_back(std::move(a.value));
    }
  }

  /// Draws new values for the parameters that a refusal names, and tries the sizes and numbers in its text.
  void learn(const std::string& message) {
    if (c_.one_in(7)) {
      hints_.clear();
      hint_shapes_.clear();
      return restart();
    }
    // Starts after the operation's own name, which also contains digits.
    hints_.clear();
    hint_shapes_.clear();
    std::vector<int64_t> dims;
    bool in_list = false;
    for (size_t i = 0; i < message.size(); ++i) {
      const char ch = message[i];
      const bool starts = i == 0 || !std::isalnum(static_cast<unsigned char>(message[i - 1]));
      if (ch == '[') in_list = true, dims.clear();
      if (ch == '?' && in_list) dims.push_back(1 + c_.below(4));
      if (ch == ']' && in_list) {
        in_list = false;
        if (dims.size() <= 5) hint_shapes_.push_back(Shape(dims));
      }
      if (!std::isdigit(static_cast<unsigned char>(ch)) || !starts) continue;
      int64_t v = 0;
      for (; i < message.size() && std::isdigit(static_cast<unsigned char>(message[i])); ++i)
        v = std::min<int64_t>(v * 10 + (message[i] - '0'), 1000);
      --i;
      if (v > kMaxHint) continue;
      hints_.push_back(v);
      if (in_list) dims.push_back(v);
    }
    for (size_t from = message.find('\''); from != std::string::npos; from = message.find('\'', from + 1)) {
      const size_t to = message.find('\'', from + 1);
      if (to == std::string::npos) break;
      const std::string word = message.substr(from + 1, to - from - 1);
      if (version_.param(word) == nullptr && word.size() < 30) words_.push_back(word);
      from = to;
    }
    if (const size_t at = message.find("expected "); at != std::string::npos) {
      const std::string expected = message.substr(at, message.find(", got", at) - at);
      const auto says = [&](std::string_view what) { return expected.find(what) != std::string::npos; };
      if (const size_t r = expected.find("rank "); r != std::string::npos && r + 5 < expected.size())
        if (const int rank = expected[r + 5] - '0'; rank >= 0 && rank <= 5)
          hint_shapes_.assign(1, random_shape(rank, rank));
      if (says("a vector")) hint_shapes_.assign(1, Shape{related_size()});
      if (says("a matrix")) hint_shapes_.assign(1, Shape{related_size(), related_size()});
      if (says("one number") || says("one integer")) hint_shapes_.assign(1, Shape{});
      for (size_t i = 9; i < expected.size();) {
        size_t end = i;
        while (end < expected.size() &&
               (std::isalnum(static_cast<unsigned char>(expected[end])) || expected[end] == '_'))
          ++end;
        if (end > i + 3) words_.push_back(expected.substr(i, end - i));
        i = end + 1;
      }
    }
    std::vector<size_t> named;
    for (size_t i = 0; i < version_.params.size(); ++i)
      if (message.find(cat("'", version_.params[i].name, "'")) != std::string::npos) named.push_back(i);
    if (named.empty() || c_.one_in(4)) named = {c_.below(static_cast<uint32_t>(std::max<size_t>(given_.size(), 1)))};
    for (size_t i : named)
      if (i < given_.size()) draw(i);
  }

  DType dtype_of(DTypes domain) {
    std::vector<DType> usual, all;
    for (int i = static_cast<int>(DType::fp16); i <= static_cast<int>(DType::string); ++i) {
      const auto t = static_cast<DType>(i);
      if ((domain & only(t)) == 0) continue;
      all.push_back(t);
      if (any_of(DType::fp32, DType::fp16, DType::int32, DType::boolean) & only(t)) usual.push_back(t);
    }
    if (all.empty()) return DType::fp32;
    if (!usual.empty() && !c_.one_in(4)) return c_.pick(usual);
    return c_.pick(all);
  }

  int64_t size() {
    static constexpr int64_t kSizes[] = {1, 2, 2, 3, 3, 4, 5, 6};
    return c_.one_in(60) ? 0 : kSizes[c_.below(8)];
  }

  Shape random_shape(int least, int most) {
    Shape s;
    for (auto n = least + static_cast<int>(c_.below(static_cast<uint32_t>(most - least + 1))); n > 0; --n)
      s.push_back(size());
    return s;
  }

  int64_t related_size() {
    if (!hints_.empty() && c_.one_in(2)) return c_.pick(hints_);
    if (base_.rank() > 0 && !c_.one_in(4))
      return base_[static_cast<int>(c_.below(static_cast<uint32_t>(base_.rank())))];
    return size();
  }

  Shape tensor_shape() {
    if (!hint_shapes_.empty() && c_.one_in(2)) return c_.pick(hint_shapes_);
    Shape s = base_;
    switch (c_.below(10)) {
      case 0:  // broadcastable
        for (int i = 0; i < s.rank(); ++i)
          if (c_.one_in(2)) s[i] = 1;
        return s;
      case 1:
        while (s.rank() > 0 && c_.one_in(2)) s.erase(0);
        return s;
      case 2: return Shape{related_size()};
      case 3: return {};
      case 4:  // one other size
        if (s.rank() > 0) s[static_cast<int>(c_.below(static_cast<uint32_t>(s.rank())))] = related_size();
        return s;
      case 5:  // matrices that multiply
        if (s.rank() > 1) std::swap(s[s.rank() - 1], s[s.rank() - 2]);
        return s;
      case 6: {
        Shape r;
        for (auto n = c_.below(6); n > 0; --n) r.push_back(related_size());
        return r;
      }
      default: return s;
    }
  }

  Shape list_shape() {
    const int rank = base_.rank(), spatial = std::max(rank - 2, 1);
    const std::vector<int64_t> lengths = {1, 2, 3, 4, rank, rank, spatial, spatial, 2 * spatial, 2 * rank};
    if (!hints_.empty() && c_.one_in(2)) return Shape{c_.pick(hints_)};
    return Shape{c_.pick(lengths)};
  }

  Shape shape_of(const ParamDef& p, DTypes domain, bool constant) {
    if (!hint_shapes_.empty() && c_.one_in(2)) return c_.pick(hint_shapes_);
    if (p.has_default() && p.default_value.type.is_tensor() && !c_.one_in(6)) return p.default_value.tensor.shape();
    const bool whole = (domain & ~(kInts | kBool | kSubByte)) == 0;
    if (constant && (domain & ~kString) == 0) return c_.one_in(20) ? Shape{1} : Shape{};
    if (constant || whole) {
      if (c_.one_in(constant ? 3 : 5)) return {};
      if (whole && !c_.one_in(3)) return list_shape();
    }
    return tensor_shape();
  }

  int64_t integer() {
    switch (c_.below(8)) {
      case 0: return -1;
      case 1: return 1;
      case 2:
        return base_.rank() > 0 ? static_cast<int64_t>(c_.below(static_cast<uint32_t>(2 * base_.rank()))) - base_.rank()
                                : 0;
      case 3: return related_size();
      case 4: return c_.one_in(12) ? static_cast<int64_t>(c_.below(100)) - 50 : 2;
      default: return c_.below(4);
    }
  }

  double real(bool special) {
    if (special && c_.one_in(6)) {
      static constexpr double kInf = std::numeric_limits<double>::infinity();
      static constexpr double kSpecial[] = {kInf, -kInf, -0.0, 0.0, std::numeric_limits<double>::quiet_NaN(),
                                            6e-8, 1e3,   -1e3};
      return kSpecial[c_.below(8)];
    }
    return (static_cast<double>(c_.below(4096)) - 2048) / 1024;
  }

  Tensor tensor(const ParamDef* p, DType dtype, const Shape& shape, bool constant) {
    if (dtype == DType::string) {
      std::vector<std::string> texts;
      static const std::vector<std::string> kWords = {"a", "b", "", "fp32"};
      for (int64_t i = 0; i < shape.count(); ++i)
        texts.push_back(p != nullptr && !p->allowed.empty() ? c_.pick(p->allowed)
                        : !words_.empty() && !c_.one_in(4)  ? c_.pick(words_)
                                                            : c_.pick(kWords));
      return Tensor::strings(shape, std::move(texts));
    }
    Result<Tensor> made = Tensor::zeros(dtype, shape);
    if (!made.ok()) return Tensor::scalar(DType::fp32, 0);
    Tensor t = std::move(made).value();
    const TensorView v = t.view();
    const auto pattern = c_.below(4);
    const int64_t same = integer();
    // A variance and the value added to it must not cancel.
    const bool square = p != nullptr && (p->name == "epsilon" || p->name == "variance");
    const bool positive = constant && (c_.one_in(2) || square);
    // Larger weights let the states of relu gates grow from step to step until rounding errors are as large as the
    // state.
    const bool recurrent = p != nullptr && p->name.starts_with("weight") && is_one_of(version_, kRecurrent);
    const double scale = recurrent ? 0.125 : 1;
    for (int64_t i = 0; i < t.count(); ++i) {
      if (dtype == DType::boolean)
        store_i64(v, i, c_.below(2));
      else if (is_float(dtype))
        store_f64(v, i, scale * (positive ? 0.25 + c_.below(8) * 0.25 : real(p != nullptr && p == special_)));
      else
        store_i64(v, i,
                  pattern == 0 && constant   ? same
                  : pattern == 1             ? i
                  : pattern == 2 && constant ? t.count() - 1 - i
                                             : integer());
    }
    return t;
  }

  Constant value(const ParamDef& p, bool constant) {
    const Type text = Type::scalar(DType::string);
    if (p.kind == ParamKind::list) {
      const DType dtype = c_.one_in(2) ? DType::string : c_.one_in(2) ? DType::int64 : DType::fp32;
      const Shape shape = dtype == DType::fp32 ? base_ : Shape{};
      std::vector<Constant> parts;
      for (auto n = related_size(); n > 0; --n) parts.emplace_back(tensor(nullptr, dtype, shape, false));
      const auto length = static_cast<int64_t>(parts.size());
      return {Type::list(Type::tensor(dtype, shape), length), std::move(parts)};
    }
    if (p.kind == ParamKind::dict) {
      std::vector<Constant> parts;
      const bool texts = c_.one_in(2);
      for (int64_t n = 0; n < 3; ++n) {
        parts.emplace_back(texts ? Tensor::text(std::string(1, static_cast<char>('a' + n)))
                                 : Tensor::scalar_i64(DType::int64, n));
        parts.emplace_back(Tensor::scalar(DType::fp64, real(false)));
      }
      return {Type::dict(texts ? text : Type::scalar(DType::int64), Type::scalar(DType::fp64)), std::move(parts)};
    }
    const DTypes domain = p.kind == ParamKind::tensor ? version_.domain(p) : kEverything;
    const auto bound = types_.find(p.type_var);
    DType dtype = bound != types_.end() ? bound->second : dtype_of(domain);
    if (p.kind == ParamKind::state) dtype = c_.one_in(2) ? DType::fp16 : DType::fp32;
    for (const auto& [name, t] : types_)  // a state has no type variable of its own
      if (p.kind == ParamKind::state && is_float(t)) dtype = t;
    return tensor(&p, dtype, shape_of(p, bound != types_.end() ? only(dtype) : domain, constant), constant);
  }

  void draw(size_t i) {
    const ParamDef& p = version_.params[i];
    Given& g = given_[i];
    g.present = !p.optional || c_.one_in(2);
    g.values.clear();
    if (!g.present) return;
    const bool object = p.kind == ParamKind::list || p.kind == ParamKind::dict;
    g.constant = p.constant || object || (p.kind != ParamKind::state && c_.one_in(p.has_default() ? 2 : 5));
    g.const_op = !p.attribute && c_.one_in(2);
    g.unknown = !g.constant && c_.one_in(6);
    for (uint32_t n = p.variadic ? 1 + c_.below(3) : 1; n > 0; --n) g.values.push_back(value(p, g.constant));
    if (p.variadic && c_.one_in(2))
      for (Constant& v : g.values)
        if (v.type.is_tensor() && g.values[0].type.is_tensor())
          v = tensor(&p, v.type.dtype(), g.values[0].type.shape(), g.constant);
  }

  Result<Case> build() {
    Program program;
    program.functions.push_back(std::make_unique<Function>("main", opset_));
    Function& f = *program.functions[0];
    Builder b(ops::table(), f.body());
    Case out;
    out.op = version_.def->name;
    std::vector<NamedArg> args;
    for (size_t i = 0; i < given_.size(); ++i) {
      const ParamDef& p = version_.params[i];
      const Given& g = given_[i];
      if (!g.present) continue;
      if (g.constant && !g.const_op && !p.variadic) {
        args.emplace_back(p.name, g.values[0]);
        continue;
      }
      std::vector<Value*> values;
      for (size_t n = 0; n < g.values.size(); ++n) {
        const std::string name = f.unique_name(cat("in_", p.name, n));
        if (g.constant) {
          values.push_back(MOKA_TRY(b.constant(name, g.values[n])));
          continue;
        }
        Type type = g.values[n].type;
        if (g.unknown && p.kind != ParamKind::state)
          for (int d = 0; d < type.rank(); ++d)
            if (c_.one_in(2)) type.shape()[d] = kAnyDim;
        values.push_back(f.body().add_input(name, p.kind == ParamKind::state ? Type::state(type) : type));
        out.inputs.push_back({values.back()->name, g.values[n].tensor});
      }
      if (p.variadic)
        args.emplace_back(p.name, std::move(values));
      else
        args.emplace_back(p.name, values[0]);
    }
    Op* op = MOKA_TRY(b.append({version_.def->name, std::move(args), "y", {}, {}}));
    std::vector<Value*> results;
    for (size_t i = 0; i < op->output_count(); ++i) {
      Value* v = op->output(i);
      if (v->type.is_dict()) {
        const bool texts = v->type.element(0).dtype() == DType::string;
        Tensor keys = texts ? Tensor::strings({3}, {"a", "b", "c"}) : Tensor::zeros(DType::int64, {3}).value();
        Tensor positions = Tensor::zeros(DType::int64, {3}).value();
        for (int64_t k = 0; k < 3; ++k) {
          store_i64(positions.view(), k, k);
          if (!texts) store_i64(keys.view(), k, k);
        }
        v = MOKA_TRY(b.op("ml_dict_vectorize", {{"x", v}, {"keys", keys}, {"positions", positions}, {"dense", true}}));
      }
      if (!v->type.is_tensor()) continue;
      if (v->type.is_ranked() && v->type.is_concrete() && v->type.shape().count() > kMaxElements)
        return fail(ErrorCode::unsupported, "a result of type ", v->type);
      results.push_back(v);
    }
    if (results.empty()) return fail(ErrorCode::unsupported, "no result is a tensor");
    f.body().set_outputs(std::move(results));
    out.program = print_text(program);
    return out;
  }

  const OpVersion& version_;
  Choices& c_;
  std::vector<Opset> opsets_;
  Opset opset_ = Opset::ios15;
  const ParamDef* special_ = nullptr;  ///< has infinities and NaN
  std::map<std::string, DType> types_;
  Shape base_;
  std::vector<int64_t> hints_;
  std::vector<Shape> hint_shapes_;
  std::vector<std::string> words_;  ///< of all refusals
  std::vector<Given> given_;
};

/// Copies `got` and replaces each element i for which accept(i, got, expected) holds with the expected one.
template <class Accept>
Tensor with_accepted(const Tensor& got, const Tensor& expected, const Accept& accept) {
  auto made = Tensor::zeros(got.dtype(), got.shape());
  if (!made.ok()) return got;
  for (int64_t i = 0; i < got.count(); ++i) {
    const double x = load_f64(got.view(), i), y = load_f64(expected.view(), i);
    store_f64(made->view(), i, accept(static_cast<size_t>(i), x, y) ? y : x);
  }
  return *made;
}

/// Accepts the differences that another order of addition makes where terms cancel.
Tensor settled(const Case& c, size_t result, const Tensor& got, const std::vector<Tensor>& all) {
  constexpr double kOrders = 4;  // the errors of this number of terms add up
  const auto moves = movements(c, all);
  if (!moves.ok()) return got;
  return with_accepted(got, all[result],
                       [&](size_t i, double x, double y) { return std::fabs(x - y) <= kOrders * (*moves)[result][i]; });
}

/// Accepts NaN in the state of a recurrent network wherever the reference has an infinite element. The reference
/// computes in double. In float32 the next step gives NaN if it subtracts infinities, or if it multiplies one by a gate
/// that underflows to zero.
Tensor overflowed(const Tensor& got, size_t result, const std::vector<Tensor>& all) {
  const auto state = static_cast<size_t>(all.back().count());  // [batch, hidden], which ends the shape of each result
  std::set<size_t> infinite;
  for (const Tensor& t : all)
    for (size_t i = 0; i < static_cast<size_t>(t.count()); ++i)
      if (std::isinf(load_f64(t.view(), static_cast<int64_t>(i)))) infinite.insert(i % state);
  return with_accepted(got, all[result],
                       [&](size_t i, double x, double) { return std::isnan(x) && infinite.contains(i % state); });
}

}  // namespace

Result<Case> random_case(const OpVersion& version, Choices& choices, int attempts) {
  return Generator(version, choices).run(attempts);
}

Result<std::vector<std::vector<double>>> movements(const Case& c, const std::vector<Tensor>& expected) {
  constexpr int kDraws = 8;
  std::vector<std::vector<double>> out;
  for (const Tensor& e : expected) out.emplace_back(static_cast<size_t>(e.count()), 0.0);
  std::mt19937 random(1);
  for (int draw = 0; draw < kDraws; ++draw) {
    Case moved = c;
    for (Named& input : moved.inputs) {
      if (input.tensor.dtype() != DType::fp32) continue;
      Tensor t = MOKA_TRY(Tensor::zeros(DType::fp32, input.tensor.shape()));
      for (int64_t i = 0; i < t.count(); ++i)
        store_f64(t.view(), i,
                  load_f64(input.tensor.view(), i) * (1 + (random() % 2 == 0 ? 1 : -1) * std::ldexp(1.0, -23)));
      input.tensor = std::move(t);
    }
    const std::vector<Tensor> got = MOKA_TRY(columns()[0].run(moved));
    for (size_t k = 0; k < out.size(); ++k) {
      if (!is_float(expected[k].dtype())) continue;
      for (size_t i = 0; i < out[k].size(); ++i) {
        const auto at = static_cast<int64_t>(i);
        out[k][i] = std::max(out[k][i], std::fabs(load_f64(got[k].view(), at) - load_f64(expected[k].view(), at)));
      }
    }
  }
  return out;
}

std::string disagreement(const OpVersion& version, const Case& c, bool& failed) {
  const std::vector<Column> all = columns();
  const auto expected = all[0].run(c);
  failed = !expected.ok();
  // Programs that need more memory than the first column may use are not tried in the others.
  if (failed && expected.error().code() == ErrorCode::out_of_budget) return {};
  if (failed && expected.error().code() == ErrorCode::internal) return cat("reference: ", expected.error().to_string());
  for (size_t k = 1; k < all.size(); ++k) {
    const auto got = all[k].run(c);
    if (got.ok() != expected.ok())
      return cat(all[k].name, got.ok() ? cat(": a result, but reference fails: ", expected.error().to_string())
                                       : cat(": ", got.error().to_string()));
    if (!got.ok()) {
      if (got.error().code() == ErrorCode::internal) return cat(all[k].name, ": ", got.error().to_string());
      continue;
    }
    if (got->size() != expected->size())
      return cat(all[k].name, ": ", got->size(), " results, expected ", expected->size());
    for (size_t i = 0; i < got->size(); ++i) {
      const Tensor &g = (*got)[i], &e = (*expected)[i];
      const bool low = e.dtype() == DType::fp16 || e.dtype() == DType::bf16;
      const double tolerance = std::max(all[k].least_tolerance, low ? version.tolerance.fp16 : version.tolerance.fp32);
      std::string differs = difference(g, e, tolerance);
      if (!differs.empty() && all[k].widened)
        if (const auto widened = widened_reference(c); widened.ok()) differs = difference(g, (*widened)[i], tolerance);
      if (!differs.empty() && is_float(e.dtype()) && g.dtype() == e.dtype() && g.shape() == e.shape()) {
        const bool recurrent = is_one_of(version, kRecurrent);
        Tensor near = g;
        if (e.dtype() == DType::fp32 && (recurrent || is_one_of(version, kSumsOfProducts)))
          near = settled(c, i, near, *expected);
        if (recurrent) near = overflowed(near, i, *expected);
        differs = difference(near, e, tolerance);
      }
      if (!differs.empty()) return cat(all[k].name, ", result ", i, ": ", differs);
      if (all[k].exact && !(g == e)) return cat(all[k].name, ", result ", i, ": other bits");
    }
  }
  return {};
}

}  // namespace moka::conformance
