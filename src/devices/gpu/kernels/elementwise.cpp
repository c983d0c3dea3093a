// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "devices/gpu/common/conversions.h"
#include "devices/gpu/kernels/family.h"
#include "ops/common/broadcast.h"

namespace moka::devices::gpu {

namespace {

constexpr int kWalkRank = 5;

/// ops::BroadcastWalk as shaders take it, the innermost dimension first.
struct Walk {
  uint32_t rank = 1;
  std::array<uint32_t, kWalkRank> size{1, 1, 1, 1, 1};
  std::array<std::array<uint32_t, kWalkRank>, 3> step{};

  static std::optional<Walk> of(const ir::Shape& out, std::initializer_list<const ir::Shape*> in) {
    const ops::BroadcastWalk merged(out, in);
    if (merged.rank > kWalkRank) return std::nullopt;
    Walk w;
    w.rank = static_cast<uint32_t>(std::max(1, merged.rank));
    for (int d = 0; d < merged.rank; d++) {
      const auto to = static_cast<size_t>(d), from = static_cast<size_t>(merged.rank - 1 - d);
      w.size[to] = u32(merged.size[from]);
      for (size_t i = 0; i < 3; i++) w.step[i][to] = u32(merged.stride[i][from]);
    }
    return w;
  }
};

/// A chain with the result `y`, to which inputs and instructions are still to be added.
Chain chain_of(const BufferView& y, Element from, Element to) {
  Chain c;
  c.size[0] = u32(y.shape.count());
  c.from = from;
  c.to = to;
  c.out = Use::write(y);
  c.rounds = y.dtype == ir::DType::fp16;
  return c;
}

void add_functions(Chain& c, std::span<const Function> functions) {
  for (const Function& f : functions)
    if (f.number != F_NONE) c.add(f.number, c.last(), f.a, f.b);
}

struct UnaryParams {
  uint32_t count;
  float a0, b0, a1, b1, a2, b2;
};

Status record_unary(Recorder& recorder, Element e, const std::array<Function, 3>& f, const BufferView& x,
                    const BufferView& y) {
  const auto n = static_cast<uint64_t>(y.shape.count());
  Chain chain = chain_of(y, e, e);
  chain.inputs = {{Use::read(x), {1}}};
  add_functions(chain, f);
  return recorder_of(recorder).dispatch(
      shader_name("unary", e), {f[0].number, f[1].number, f[2].number}, {Use::read(x), Use::write(y)},
      UnaryParams{static_cast<uint32_t>(n), f[0].a, f[0].b, f[1].a, f[1].b, f[2].a, f[2].b}, CommandRecorder::lines(n),
      std::move(chain));
}

/// Functions of integers, which wrap.
Match match_unary_whole(const MatchCall& m) {
  if (std::string why = refusal_of(m, {"x"}); !why.empty()) return Match::no(why);
  const auto f = function_of(m.call);
  if (!f) return Match::no("a parameter that is NaN or not constant");
  if (f->number != F_ABS && f->number != F_SIGN && f->number != F_SQUARE && f->number != F_THRESHOLD)
    return Match::no("a function of integers");
  int64_t limit = 0;
  if (f->number == F_THRESHOLD) {
    const auto alpha = m.call.integer("alpha");
    if (!alpha.ok()) return Match::no("a threshold that is not an integer");
    limit = *alpha;
  }
  struct Params {
    uint32_t count;
    int32_t a;
  };
  const Params params{u32(m.outputs[0].shape().count()), static_cast<int32_t>(limit)};
  const int x = m.call.arg_index("x");
  KernelChoice c = choice_of(m, "unary", {"x"});
  c.in_place = x;
  set_cost(c, m);
  c.record = [=, number = f->number](Recorder& recorder, const RecordArgs& args) {
    return recorder_of(recorder).dispatch("unary_whole_i32", {number},
                                          {Use::read(view(args.in, x)), Use::write(args.out[0])}, params,
                                          CommandRecorder::lines(params.count));
  };
  return Match::yes(std::move(c));
}

Match match_unary(const MatchCall& m) {
  if (m.call.dtype("x") == ir::DType::int32) return match_unary_whole(m);
  if (std::string why = refusal_of_floats(m, {"x"}); !why.empty()) return Match::no(why);
  const auto f = function_of(m.call);
  if (!f) return Match::no("a parameter that is NaN or not constant");
  const Element e = float_element(m);
  const int x = m.call.arg_index("x");
  const After after = after_of(m.epilogue);
  KernelChoice c = choice_of(m, "unary", {"x"}, e);
  c.in_place = x;
  c.epilogues = after.count;
  set_cost(c, m);
  c.record = [=, f = *f](Recorder& recorder, const RecordArgs& args) -> Status {
    return record_unary(recorder, e, {f, after.functions[0], after.functions[1]}, view(args.in, x), args.out[0]);
  };
  return Match::yes(std::move(c));
}

struct BinaryEntry {
  std::string_view op;
  uint32_t number;
};

constexpr BinaryEntry kBinary[] = {{"add", B_ADD},
                                   {"sub", B_SUB},
                                   {"mul", B_MUL},
                                   {"real_div", B_DIV},
                                   {"maximum", B_MAX},
                                   {"minimum", B_MIN},
                                   {"pow", B_POW},
                                   {"floor_div", B_FLOOR_DIV},
                                   {"mod", B_MOD},
                                   {"equal", B_EQUAL},
                                   {"not_equal", B_NOT_EQUAL},
                                   {"less", B_LESS},
                                   {"less_equal", B_LESS_EQUAL},
                                   {"greater", B_GREATER},
                                   {"greater_equal", B_GREATER_EQUAL},
                                   {"logical_and", B_AND},
                                   {"logical_or", B_OR},
                                   {"logical_xor", B_XOR}};

/// A binary function as a chain; nullopt: more dimensions than a chain has. A known number stands for the second
/// operand.
std::optional<Chain> binary_chain(Element e, uint32_t number, const Walk& w, const After& after,
                                  std::optional<float> known, const BufferView& x, const BufferView& y,
                                  const BufferView& out) {
  if (w.rank > Chain::kRank) return std::nullopt;
  Chain c = chain_of(out, e, e);
  for (size_t d = 0; d < Chain::kRank; d++) c.size[d] = w.size[d];
  const auto add = [&](const BufferView& v, const std::array<uint32_t, kWalkRank>& step) {
    c.inputs.push_back({Use::read(v), {step[0], step[1], step[2]}});
  };
  add(x, w.step[0]);
  if (!known) add(y, w.step[1]);
  c.add_binary(number, Chain::input(0), known ? Chain::kNumber : Chain::input(1), known.value_or(0));
  add_functions(c, after.functions);
  return c;
}

struct BinaryParams {
  uint32_t count;
  AfterParams after;
  std::array<uint32_t, kWalkRank> size, a_step, b_step;
};

Match binary_choice(const MatchCall& m, std::string_view kernel, std::string_view a, std::string_view b,
                    const ir::Shape& b_shape, uint32_t number) {
  const ir::Shape &out = m.outputs[0].shape(), &a_shape = m.call.shape(a);
  const bool compares = number >= B_EQUAL;
  const bool floats = ir::is_float(m.call.dtype(a));
  const auto walk = Walk::of(out, {&a_shape, &b_shape});
  if (!walk) return Match::no("broadcasting along more than 5 dimensions");
  // A comparison reads its inputs as they are held, without a conversion.
  auto arrives_half = [&](std::string_view p) { return m.layouts[static_cast<size_t>(m.call.arg_index(p))].half; };
  Element e = *element_of(features_of(m), m.call.dtype(a));
  if (floats && e == Element::f32)
    e = compares ? (arrives_half(a) && arrives_half(b) ? Element::f16 : Element::f32) : float_element(m);
  const int x = m.call.arg_index(a), y = m.call.arg_index(b);
  KernelChoice c = choice_of(m, kernel, {a, b}, e);
  const After after = floats && !compares ? after_of(m.epilogue) : After{};
  c.epilogues = after.count;
  if (!compares) c.in_place = a_shape == out ? x : m.call.shape(b) == out ? y : -1;
  set_cost(c, m);
  const std::string shader = compares ? cat("binary_", name_of(e), "_u8") : shader_name("binary", e);
  std::optional<float> known;
  if (const auto one = m.call.number(b); floats && one.ok()) known = static_cast<float>(*one);
  c.record = [=, w = *walk](Recorder& recorder, const RecordArgs& args) -> Status {
    const auto n = static_cast<uint64_t>(args.out[0].shape.count());
    auto chain = floats && !compares
                     ? binary_chain(e, number, w, after, known, view(args.in, x), view(args.in, y), args.out[0])
                     : std::nullopt;
    auto constants = after.constants({number});
    constants.push_back(w.rank);
    return recorder_of(recorder).dispatch(
        shader, std::move(constants),
        {Use::read(view(args.in, x)), Use::read(view(args.in, y)), Use::write(args.out[0])},
        BinaryParams{static_cast<uint32_t>(n), AfterParams(after), w.size, w.step[0], w.step[1]},
        CommandRecorder::lines(n), std::move(chain));
  };
  return Match::yes(std::move(c));
}

Match match_binary(const MatchCall& m) {
  if (std::string why = refusal_of(m, {"x", "y"}); !why.empty()) return Match::no(why);
  const std::string_view op = m.call.version().def->name;
  const auto* entry = std::find_if(std::begin(kBinary), std::end(kBinary), [&](auto& e) { return e.op == op; });
  const ir::DType x = m.call.dtype("x");
  if (x != m.call.dtype("y")) return Match::no("element types that differ");
  if (x == ir::DType::boolean && entry->number < B_EQUAL) return Match::no("arithmetic of booleans");
  const bool floats = ir::is_float(x);
  if (floats && (entry->number == B_FLOOR_DIV || entry->number == B_MOD)) return Match::no("an inexact quotient");
  if (!floats && entry->number == B_POW) return Match::no("powers of integers");
  return binary_choice(m, "binary", "x", "y", m.call.shape("y"), entry->number);
}

Match match_prelu(const MatchCall& m) {
  if (std::string why = refusal_of_floats(m, {"x", "alpha"}); !why.empty()) return Match::no(why);
  const ir::Shape& x = m.call.shape("x");
  ir::Shape alpha{m.call.shape("alpha").count()};
  for (int i = 2; i < x.rank(); i++) alpha.push_back(1);
  return binary_choice(m, "prelu", "x", "alpha", alpha, B_PRELU);
}

Match match_not(const MatchCall& m) {
  if (std::string why = refusal_of(m, {"x"}); !why.empty()) return Match::no(why);
  const int x = m.call.arg_index("x");
  KernelChoice c = choice_of(m, "logical_not", {"x"});
  set_cost(c, m);
  c.record = [=](Recorder& recorder, const RecordArgs& args) -> Status {
    const auto n = static_cast<uint64_t>(args.out[0].shape.count());
    return recorder_of(recorder).dispatch("logical_not_u8", {}, {Use::read(view(args.in, x)), Use::write(args.out[0])},
                                          static_cast<uint32_t>(n), CommandRecorder::lines(n));
  };
  return Match::yes(std::move(c));
}

struct SelectParams {
  uint32_t count, rank;
  std::array<uint32_t, kWalkRank> size, c_step, a_step, b_step;
};

Match match_select(const MatchCall& m) {
  if (std::string why = refusal_of(m, {"cond", "a", "b"}); !why.empty()) return Match::no(why);
  const ir::DType type = m.outputs[0].dtype();
  if (m.call.dtype("cond") != ir::DType::boolean) return Match::no("a condition that is not bool");
  const auto walk = Walk::of(m.outputs[0].shape(), {&m.call.shape("cond"), &m.call.shape("a"), &m.call.shape("b")});
  if (!walk) return Match::no("broadcasting along more than 5 dimensions");
  const Element e = ir::is_float(type) ? float_element(m) : *element_of(features_of(m), type);
  const int k = m.call.arg_index("cond"), a = m.call.arg_index("a"), b = m.call.arg_index("b");
  KernelChoice c = choice_of(m, "select", {"cond", "a", "b"}, e);
  set_cost(c, m);
  c.record = [=, w = *walk](Recorder& recorder, const RecordArgs& args) -> Status {
    const auto n = static_cast<uint64_t>(args.out[0].shape.count());
    return recorder_of(recorder).dispatch(
        shader_name("select", e), {},
        {Use::read(view(args.in, k)), Use::read(view(args.in, a)), Use::read(view(args.in, b)),
         Use::write(args.out[0])},
        SelectParams{static_cast<uint32_t>(n), w.rank, w.size, w.step[0], w.step[1], w.step[2]},
        CommandRecorder::lines(n));
  };
  return Match::yes(std::move(c));
}

Status record_cast(Recorder& recorder, Element from, Element to, const BufferView& x, const BufferView& y) {
  CommandRecorder& r = recorder_of(recorder);
  if (from == to) {
    if (x.buffer != y.buffer || x.offset != y.offset) r.copy(Use::read(x), Use::write(y));
    return {};
  }
  const auto n = static_cast<uint64_t>(y.shape.count());
  std::optional<Chain> chain;
  if ((from == Element::f32 && to == Element::f16) || (from == Element::f16 && to == Element::f32)) {
    chain = chain_of(y, from, to);
    chain->inputs = {{Use::read(x), {1}}};
  }
  return r.dispatch(cat("cast_", name_of(from), "_", name_of(to)), {}, {Use::read(x), Use::write(y)},
                    static_cast<uint32_t>(n), CommandRecorder::lines(n), std::move(chain));
}

/// Between integers one of which has 16 bits.
Match match_narrow_cast(const MatchCall& m) {
  const Features& f = features_of(m);
  const std::string_view from = name_of_index(f, m.call.dtype("x")), to = name_of_index(f, m.outputs[0].dtype());
  const uint64_t n = static_cast<uint64_t>(m.outputs[0].shape().count());
  if (n == 0) return Match::no("an empty tensor");
  const int x = m.call.arg_index("x");
  KernelChoice c = choice_of(m, "cast", {"x"});
  set_cost(c, m);
  c.record = [=](Recorder& recorder, const RecordArgs& args) {
    return recorder_of(recorder).dispatch(cat("cast_", from, "_", to), {},
                                          {Use::read(view(args.in, x)), Use::write(args.out[0])},
                                          static_cast<uint32_t>(n), CommandRecorder::lines(n));
  };
  return Match::yes(std::move(c));
}

Match match_cast(const MatchCall& m) {
  const ir::DType wide = ir::DType::int32, in_type = m.call.dtype("x"), out_type = m.outputs[0].dtype();
  if (in_type != out_type && (in_type == wide || out_type == wide) && !name_of_index(features_of(m), in_type).empty() &&
      !name_of_index(features_of(m), out_type).empty())
    return match_narrow_cast(m);
  if (std::string why = refusal_of(m, {"x"}); !why.empty()) return Match::no(why);
  const int x = m.call.arg_index("x");
  const Layout arrives = m.layouts[static_cast<size_t>(x)];
  KernelChoice c = choice_of(m, "cast", {"x"});
  if (arrives.half && arrives.kind == Layout::Kind::row_major) c.in[static_cast<size_t>(x)] = arrives;
  const Element from = *element_of(features_of(m), m.call.dtype("x"), c.in[static_cast<size_t>(x)]);
  Element to = *element_of(features_of(m), m.outputs[0].dtype());
  if (to == Element::f32 && float_element(m) == Element::f16) {
    to = Element::f16;
    c.out[0] = Layout{}.as_half();
  }
  if (from == to) c.in_place = x;
  set_cost(c, m);
  c.record = [=](Recorder& recorder, const RecordArgs& args) -> Status {
    return record_cast(recorder, from, to, view(args.in, x), args.out[0]);
  };
  return Match::yes(std::move(c));
}

}  // namespace

Status record_epilogues(Recorder& recorder, std::span<const ir::Epilogue> epilogues, const BufferView& y) {
  const auto e = element_of(recorder_of(recorder).device().features(), y.dtype, y.layout);
  if (!e || (*e != Element::f32 && *e != Element::f16)) return fail(ErrorCode::internal, "an epilogue of ", y.dtype);
  for (size_t i = 0; i < epilogues.size(); i += 3) {
    std::array<Function, 3> f{};
    for (size_t k = 0; k < std::min<size_t>(3, epilogues.size() - i); k++) {
      const auto found = function_of(epilogues[i + k]);
      if (!found) return fail(ErrorCode::internal, "no epilogue ", epilogues[i + k].op);
      f[k] = *found;
    }
    MOKA_TRY(record_unary(recorder, *e, f, y, y));
  }
  return {};
}

Match match_conversion(const GpuDevice& device, ir::DType dtype, const ir::Shape& shape, Layout from, Layout to) {
  if (from == to && dtype != ir::DType::string && ir::bits(dtype) >= 8) {
    KernelChoice c;
    c.kernel = device.kernel_name("copy");
    c.record = [](Recorder& recorder, const RecordArgs& args) -> Status {
      recorder_of(recorder).copy(Use::read(args.in[0]), Use::write(args.out[0]));
      return {};
    };
    return Match::yes(std::move(c));
  }
  if (dtype != ir::DType::fp32) return Match::no(cat("element type ", dtype));
  if (from.kind != Layout::Kind::row_major || to.kind != Layout::Kind::row_major)
    return Match::no("a layout other than row-major");
  if (shape.count() == 0) return Match::no("an empty tensor");
  const Features& f = device.features();
  const auto a = element_of(f, dtype, from), b = element_of(f, dtype, to);
  if (!a || !b) return Match::no("float16 that the driver cannot store");
  KernelChoice c;
  c.kernel = device.kernel_name("convert");
  c.in = {from};
  c.out = {to};
  c.cost = 4e-6 + static_cast<double>(shape.count()) * 6 / 4e10;
  c.record = [a = *a, b = *b](Recorder& recorder, const RecordArgs& args) -> Status {
    return record_cast(recorder, a, b, args.in[0], args.out[0]);
  };
  return Match::yes(std::move(c));
}

KernelFamily family_elementwise() {
  static const auto* binary_ops = [] {
    auto* v = new std::vector<std::string_view>;
    for (const BinaryEntry& e : kBinary) v->push_back(e.op);
    return v;
  }();
  static const KernelDef defs[] = {{"unary", function_operations(), match_unary},
                                   {"binary", *binary_ops, match_binary},
                                   {"prelu", {"prelu"}, match_prelu},
                                   {"logical_not", {"logical_not"}, match_not},
                                   {"select", {"select"}, match_select},
                                   {"cast", {"cast"}, match_cast}};
  return {defs};
}

}  // namespace moka::devices::gpu
