// SPDX-License-Identifier: Apache-2.0
#include "conformance/network_util.h"

#include <algorithm>
#include <cmath>

#include "conformance/network_moves_util.h"
#include "ir/text_printer.h"

namespace moka::conformance {

using namespace ir;

namespace {

constexpr uint32_t kMostParts = 14;

class Network : NetworkMoves {
 public:
  explicit Network(Choices& c) : NetworkMoves(c) {}

  Case make() {
    add_input();
    if (c_.one_in(4)) add_input();
    if (function_->opset >= Opset::ios18 && c_.one_in(2)) add_state();
    for (uint32_t parts = 2 + c_.below(kMostParts - 1); parts > 0; --parts) {
      add_part();
      if (state_ != nullptr && c_.one_in(3)) remember(any());
    }
    if (state_ != nullptr) keep(op("read_state", {{"input", state_}}));
    if (values_.back()->producer() == nullptr) activation(any());  // no part fitted
    std::vector<Value*> results;
    for (Value* v : values_)
      if (v->producer() != nullptr && (v->users().empty() || c_.one_in(8))) results.push_back(v);
    if (results.empty()) results.push_back(values_.back());  // only values that are too large read it
    function_->body().set_outputs(std::move(results));
    Program program;
    program.functions.push_back(std::move(function_));
    out_.op = "network";
    out_.program = print_text(program);
    if (c_.one_in(4)) {
      forget_sizes(*program.functions[0], dtype_, c_);
      Case flexible = out_;
      flexible.program = print_text(program);
      if (read_program(flexible).ok()) out_ = std::move(flexible);
    }
    return std::move(out_);
  }

 private:
  using Part = void (Network::*)(Value*);

  // ---- values

  void add_input() {
    Sizes s;
    switch (c_.below(5)) {
      case 0: s = {c_.from_to(1, 3), channels()}; break;
      case 1: s = {c_.from_to(1, 2), c_.from_to(1, 9), channels()}; break;
      case 2: s = {c_.from_to(1, 2), channels(), c_.from_to(1, 4), c_.from_to(1, 6), c_.from_to(1, 5)}; break;
      default: s = {c_.one_in(4) ? 2 : 1, channels(), c_.from_to(1, large_ ? 28 : 14), c_.from_to(1, large_ ? 28 : 14)};
    }
    const Tensor t = random(s, 1);
    Value* v = function_->body().add_input(cat("x", out_.inputs.size()), Type::tensor(dtype_, t.shape()));
    out_.inputs.push_back({v->name, t});
    values_.push_back(v);
  }

  /// Adds a state that has the type of the first input.
  void add_state() {
    const Tensor t = random(sizes(values_.front()), 1);
    state_ = function_->body().add_input("memory", Type::state(Type::tensor(dtype_, t.shape())));
    out_.inputs.push_back({state_->name, t});
  }

  void add_part() {
    static constexpr Part kParts[] = {
        &Network::conv,       &Network::conv,       &Network::conv,         &Network::conv_transpose,
        &Network::linear,     &Network::linear,     &Network::matmul,       &Network::affine,
        &Network::affine,     &Network::affine,     &Network::activation,   &Network::activation,
        &Network::activation, &Network::batch_norm, &Network::binary,       &Network::binary,
        &Network::transpose,  &Network::transpose,  &Network::reshape,      &Network::reshape,
        &Network::pad,        &Network::pool,       &Network::concat,       &Network::concat,
        &Network::split,      &Network::slice,      &Network::norm,         &Network::reduce,
        &Network::softmax,    &Network::attention,  &Network::gate,         &Network::gelu,
        &Network::resize,     &Network::excite,     &Network::written_norm, &Network::gather,
        &Network::tile,       &Network::power,      &Network::clamp,        &Network::squeeze,
        &Network::stack,      &Network::recurrent,  &Network::casts,        &Network::choose,
        &Network::shuffle,    &Network::measured,   &Network::branch,       &Network::loop,
        &Network::quantized,  &Network::quantized,  &Network::replace};
    (this->*c_.pick(std::span(kParts)))(any());
  }

  // ---- layers with weights

  void conv(Value* x) {
    const Sizes s = sizes(x);
    if (s.size() < 3 || s.size() > 5) return;
    const size_t spatial = s.size() - 2;
    Sizes divisors;
    for (int64_t g = 1; g <= s[1]; ++g)
      if (s[1] % g == 0) divisors.push_back(g);
    const int64_t groups = c_.one_in(3) ? c_.pick(divisors) : 1;
    const int64_t made = groups * c_.from_to(1, std::max<int64_t>(1, (large_ ? 96 : 24) / groups));
    Sizes w{made, s[1] / groups}, strides, dilations, pads;
    for (size_t i = 0; i < spatial; ++i) {
      w.push_back(c_.pick(Sizes{1, 1, 3, 3, 2, 5}));
      strides.push_back(c_.pick(Sizes{1, 1, 1, 2, 3}));
      dilations.push_back(c_.one_in(5) ? 2 : 1);
      pads.push_back(c_.from_to(0, 2));
      pads.push_back(c_.one_in(4) ? c_.from_to(0, 2) : pads.back());
    }
    const auto taken = product_of(w) / made;
    std::vector<NamedArg> args{{"x", x}, weights("weight", w, taken), {"groups", static_cast<int>(groups)}};
    if (c_.one_in(2)) args.push_back(given("bias", random({made}, 0.5)));
    if (!c_.one_in(3)) args.emplace_back("strides", ints(strides));
    if (c_.one_in(3)) args.emplace_back("dilations", ints(dilations));
    const char* kinds[] = {"valid", "same", "custom", "same_lower"};
    const auto kind = c_.below(function_->opset >= Opset::ios16 ? 4 : 3);
    args.emplace_back("pad_type", kinds[kind]);
    if (kind == 2) args.emplace_back("pad", ints(pads));
    keep(op("conv", std::move(args)));
  }

  void conv_transpose(Value* x) {
    const Sizes s = sizes(x);
    if (s.size() < 3 || s.size() > 4) return;
    const int64_t groups = c_.one_in(4) && s[1] % 2 == 0 ? 2 : 1, made = c_.from_to(1, 8);
    Sizes w{s[1], made}, strides;
    for (size_t i = 2; i < s.size(); ++i) {
      w.push_back(c_.from_to(1, 4));
      strides.push_back(c_.from_to(1, 2));
    }
    std::vector<NamedArg> args{{"x", x}, weights("weight", w, s[1] * 2), {"strides", ints(strides)}};
    args.emplace_back("groups", static_cast<int>(groups));
    if (c_.one_in(2)) args.push_back(given("bias", random({made * groups}, 0.5)));
    args.emplace_back("pad_type", c_.one_in(2) ? "valid" : "same");
    keep(op("conv_transpose", std::move(args)));
  }

  void linear(Value* x) {
    const Sizes s = sizes(x);
    const int64_t made = channels();
    std::vector<NamedArg> args{{"x", x}, weights("weight", {made, s.back()}, s.back())};
    if (c_.one_in(2)) args.push_back(given("bias", random({made}, 0.5)));
    keep(op("linear", std::move(args)));
  }

  void matmul(Value* x) {
    const Sizes s = sizes(x);
    if (s.size() < 2) return;
    const bool flip_x = c_.one_in(4), flip_y = c_.one_in(2);
    const int64_t depth = flip_x ? s[s.size() - 2] : s.back(), made = channels();
    Value* y = like(x);
    if (c_.one_in(4)) {  // two values
      keep(op("matmul", {{"x", x}, {"y", y}, {"transpose_x", flip_x}, {"transpose_y", !flip_x}}));
      return;
    }
    Sizes w = flip_y ? Sizes{made, depth} : Sizes{depth, made};
    if (c_.one_in(5) && s.size() == 3) w.insert(w.begin(), s[0]);
    keep(op("matmul", {{"x", x}, weights("y", w, depth), {"transpose_x", flip_x}, {"transpose_y", flip_y}}));
  }

  void recurrent(Value* x) {
    const Sizes s = sizes(x);
    if (s.size() != 3) return;
    const int64_t hidden = c_.from_to(1, 6), batch = s[1];
    const bool lstm = c_.one_in(2);
    const int64_t gates = lstm ? 4 : 3;
    std::vector<NamedArg> args{{"x", x},
                               {"initial_h", random({batch, hidden}, 0.5)},
                               {"weight_ih", random({gates * hidden, s[2]}, 0.5)},
                               {"weight_hh", random({gates * hidden, hidden}, 0.5)}};
    if (lstm) args.emplace_back("initial_c", random({batch, hidden}, 0.5));
    if (c_.one_in(2)) args.emplace_back("bias", random({gates * hidden}, 0.5));
    args.emplace_back("output_sequence", c_.one_in(2));
    args.emplace_back("direction", c_.one_in(2) ? "forward" : "reverse");
    auto made = builder_.append({lstm ? "lstm" : "gru", std::move(args), function_->unique_name("cell"), {}, {}});
    if (!made.ok()) return;
    for (size_t i = 0; i < (*made)->output_count(); ++i) keep((*made)->output(i));
  }

  /// `x` after rounding to 8 bits.
  Value* rounded(Value* x) {
    const Sizes s = sizes(x);
    const bool channels = s.size() > 1 && c_.one_in(3), is_signed = c_.one_in(2), moved = !is_signed || c_.one_in(3);
    const Sizes of = channels ? Sizes{s[1]} : Sizes{};
    const Tensor scale =
        channels ? random(of, 1.0 / 128, 1.0 / 32) : number(1.0 / static_cast<double>(c_.from_to(16, 64)));
    Tensor zero = Tensor::zeros(is_signed ? DType::int8 : DType::uint8, Shape(of)).value();
    for (int64_t i = 0; i < zero.count(); ++i) store_i64(zero.view(), i, c_.from_to(0, 9) + (is_signed ? 0 : 120));
    std::vector<NamedArg> args{{"input", x}, {"scale", scale}};
    if (moved) args.emplace_back("zero_point", zero);
    if (channels) args.emplace_back("axis", c_.one_in(2) ? 1 : 1 - static_cast<int>(s.size()));
    std::vector<NamedArg> back = args;
    args.emplace_back("output_dtype", is_signed ? "int8" : "uint8");
    Value* codes = op("quantize", std::move(args));
    back[0] = {"input", codes};
    return codes == nullptr ? nullptr : op("dequantize", std::move(back));
  }

  /// A layer or another part between values of 8 bits.
  void quantized(Value* x) {
    if (function_->opset < Opset::ios17) return;
    Value* v = rounded(x);
    keep(v);
    if (v == nullptr || c_.one_in(4)) return;
    static constexpr Part kParts[] = {&Network::conv,   &Network::conv, &Network::linear, &Network::matmul,
                                      &Network::binary, &Network::pool, &Network::concat, &Network::transpose};
    (this->*c_.pick(std::span(kParts)))(v);
    if (c_.one_in(2)) activation(values_.back());
    if (!c_.one_in(4)) keep(rounded(values_.back()));
  }

  // ---- elementwise

  void affine(Value* x) {
    const char* names[] = {"add", "mul", "sub", "real_div", "maximum", "minimum"};
    const auto which = c_.below(6);
    const bool divides = which == 3;
    Tensor t = divides ? factors(x, 0.5, 1.5) : factors(x, 1, c_.one_in(3) ? 1 : 0);
    const bool first = c_.one_in(3) && !divides;
    keep(first ? op(names[which], {given("x", t), {"y", x}}) : op(names[which], {{"x", x}, given("y", t)}));
  }

  void batch_norm(Value* x) {
    const Sizes s = sizes(x);
    if (s.size() < 3) return;
    std::vector<NamedArg> args{{"x", x}, given("mean", random({s[1]}, 0.5)), given("variance", random({s[1]}, 0.5, 1))};
    if (c_.one_in(2)) {
      args.push_back(given("gamma", random({s[1]}, 1)));
      args.push_back(given("beta", random({s[1]}, 0.5)));
    }
    if (c_.one_in(2)) args.emplace_back("epsilon", number(0.001));
    keep(op("batch_norm", std::move(args)));
  }

  Value* activated(Value* x) {
    const auto set = [&](std::string_view name, double alpha, double beta) {
      return op(name, {{"x", x}, {"alpha", number(alpha)}, {"beta", number(beta)}});
    };
    switch (c_.below(20)) {
      case 0: return op("relu6", {{"x", x}});
      case 1: return op("sigmoid", {{"x", x}});
      case 2: return op("tanh", {{"x", x}});
      case 3: return op("silu", {{"x", x}});
      case 4:
        return op(
            "gelu",
            {{"x", x},
             {"mode", c_.pick(std::vector<std::string>{"EXACT", "TANH_APPROXIMATION", "SIGMOID_APPROXIMATION"})}});
      case 5: return op("leaky_relu", {{"x", x}, {"alpha", number(0.1)}});
      case 6: return op("elu", {{"x", x}, {"alpha", number(0.7)}});
      case 7: return op("softplus", {{"x", x}});
      case 8: return op("softsign", {{"x", x}});
      case 9:
        return set("linear_activation", static_cast<double>(c_.from_to(-4, 4)) / 2,
                   static_cast<double>(c_.from_to(-2, 2)) / 2);
      case 10: return set("sigmoid_hard", 0.25, 0.5);
      case 11: return set("scaled_tanh", 1.5, 0.5);
      case 12: return set("clip", -0.5, 0.75);
      case 13: return op("threshold", {{"x", x}, {"alpha", number(static_cast<double>(c_.from_to(-2, 2)) / 4)}});
      case 14: return op("abs", {{"x", x}});
      case 15: return op("square", {{"x", x}});
      case 16: {
        const Sizes s = sizes(x);
        return s.size() < 3 ? nullptr : op("prelu", {{"x", x}, {"alpha", random({s[1]}, 0.5)}});
      }
      default: return op("relu", {{"x", x}});
    }
  }

  void activation(Value* x) { keep(activated(x)); }

  /// -max(-x, b), and limits in a row.
  void clamp(Value* x) {
    if (c_.one_in(2)) {
      Value* v = op("mul", {{"x", x}, {"y", number(-1)}});
      v = op("maximum", {{"x", v}, {"y", number(-0.5)}});
      return keep(op("mul", {{"x", v}, {"y", number(-1)}}));
    }
    Value* v = op("clip", {{"x", x}, {"alpha", number(-0.75)}, {"beta", number(0.5)}});
    keep(op("clip", {{"x", v}, {"alpha", number(static_cast<double>(c_.from_to(-4, 0)) / 4)}, {"beta", number(1)}}));
  }

  void power(Value* x) {
    Value* positive = op("add", {{"x", op("abs", {{"x", x}})}, {"y", number(0.5)}});
    switch (c_.below(4)) {
      case 0: return keep(op("sqrt", {{"x", positive}}));
      case 1: return keep(op("rsqrt", {{"x", positive}}));
      case 2: return keep(op("pow", {{"x", positive}, {"y", number(static_cast<double>(c_.from_to(-2, 3)) / 2)}}));
      default: return keep(op("log", {{"x", positive}}));
    }
  }

  Value* two(Value* x, Value* y) {
    const char* names[] = {"add", "add", "mul", "sub", "maximum", "minimum"};
    return op(names[c_.below(6)], {{"x", x}, {"y", y}});
  }

  void binary(Value* x) {
    Value* y = like(x);
    if (c_.one_in(3)) y = values_[c_.below(static_cast<uint32_t>(values_.size()))];
    if (c_.one_in(3)) y = activated(x);
    keep(c_.one_in(2) ? two(x, y) : two(y, x));
  }

  /// x * f(x), and the hard swish of several converters.
  void gate(Value* x) {
    const auto mul = [&](Value* a, Value* b) {
      return c_.one_in(2) ? op("mul", {{"x", a}, {"y", b}}) : op("mul", {{"x", b}, {"y", a}});
    };
    switch (c_.below(4)) {
      case 0: return keep(mul(x, op("sigmoid", {{"x", x}})));
      case 1: {
        Value* v = op("add", {{"x", x}, {"y", number(3)}});
        v = op("relu6", {{"x", v}});
        v = c_.one_in(2) ? op("mul", {{"x", v}, {"y", number(1.0 / 6)}}) : op("real_div", {{"x", v}, {"y", number(6)}});
        return keep(mul(x, v));
      }
      case 2: {
        Value* cut = op("thresholded_relu", {{"x", x}, {"alpha", number(-3)}});
        return keep(mul(cut, op("sigmoid_hard", {{"x", cut}, {"alpha", number(1.0 / 6)}, {"beta", number(0.5)}})));
      }
      default: return keep(mul(x, activated(x)));
    }
  }

  /// The exact and the approximate function, as converters write them out.
  void gelu(Value* x) {
    Value* half = nullptr;
    if (c_.one_in(2)) {
      Value* f = op("erf", {{"x", op("mul", {{"x", x}, {"y", number(std::sqrt(0.5))}})}});
      half = op("add", {{"x", f}, {"y", number(1)}});
    } else {
      Value* cubed = op("mul", {{"x", op("pow", {{"x", x}, {"y", number(3)}})}, {"y", number(0.044715)}});
      Value* sum = op("mul", {{"x", op("add", {{"x", x}, {"y", cubed}})}, {"y", number(std::sqrt(2 / M_PI))}});
      half = op("add", {{"x", op("tanh", {{"x", sum}})}, {"y", number(1)}});
    }
    if (c_.one_in(2)) return keep(op("mul", {{"x", op("mul", {{"x", x}, {"y", half}})}, {"y", number(0.5)}}));
    keep(op("mul", {{"x", op("mul", {{"x", x}, {"y", number(0.5)}})}, {"y", half}}));
  }

  /// A factor for each channel from the mean of the channel.
  void excite(Value* x) {
    const Sizes s = sizes(x);
    if (s.size() != 4) return;
    Value* v = op("reduce_mean", {{"x", x}, {"axes", ints({2, 3})}, {"keep_dims", true}});
    const int64_t squeezed = c_.from_to(1, 8);
    v = op("conv", {{"x", v}, weights("weight", {squeezed, s[1], 1, 1}, s[1])});
    v = op("relu", {{"x", v}});
    v = op("conv", {{"x", v}, weights("weight", {s[1], squeezed, 1, 1}, squeezed)});
    v = c_.one_in(2) ? op("sigmoid", {{"x", v}}) : op("sigmoid_hard", {{"x", v}});
    keep(op("mul", {{"x", x}, {"y", v}}));
  }

  void casts(Value* x) {
    const char* other = dtype_ == DType::fp16 ? "fp32" : "fp16";
    Value* v = op("cast", {{"x", x}, {"dtype", other}});
    if (c_.one_in(2)) v = op("relu", {{"x", v}});
    keep(op("cast", {{"x", v}, {"dtype", dtype_ == DType::fp16 ? "fp16" : "fp32"}}));
  }

  void choose(Value* x) {
    Sizes s = sizes(x);
    for (int64_t& n : s)
      if (c_.one_in(3)) n = 1;
    Tensor mask = Tensor::zeros(DType::boolean, Shape(s)).value();
    for (int64_t i = 0; i < mask.count(); ++i) store_i64(mask.view(), i, static_cast<int64_t>(random_() % 2));
    keep(op("select", {given("cond", mask), {"a", x}, {"b", like(x)}}));
  }

  // ---- movement

  void transpose(Value* x) {
    const size_t rank = sizes(x).size();
    if (rank < 2) return;
    const Sizes p = permutation(rank);
    Value* v = op("transpose", {{"x", x}, {"perm", ints(p)}});
    keep(v);
    if (v == nullptr || !c_.one_in(2)) return;
    // Work in the other order, and back.
    Sizes back(rank);
    for (size_t i = 0; i < rank; ++i) back[static_cast<size_t>(p[i])] = static_cast<int64_t>(i);
    v = c_.one_in(2) ? activated(v) : op("add", {{"x", v}, given("y", factors(v, 1, 0))});
    keep(op("transpose", {{"x", v}, {"perm", ints(back)}}));
  }

  void split(Value* x) {
    const Sizes s = sizes(x);
    const auto axis = c_.below(static_cast<uint32_t>(s.size()));
    const int64_t n = s[axis] % 3 == 0 ? 3 : s[axis] % 2 == 0 ? 2 : 0;
    if (n == 0) return;
    auto made = builder_.append({"split",
                                 {{"x", x}, {"num_splits", static_cast<int>(n)}, {"axis", static_cast<int>(axis)}},
                                 function_->unique_name("split"),
                                 {},
                                 {}});
    if (!made.ok()) return;
    for (size_t i = 0; i < (*made)->output_count(); ++i) keep((*made)->output(i));
    if (c_.one_in(2)) keep(two((*made)->output(0), (*made)->output(1)));
  }

  // ---- control flow and states

  /// Appends up to four parts to the block of `inner`, which may read all values so far. Returns one that has the type
  /// of `x`, or `x` itself.
  Value* nested(Builder& inner, Value* x) {
    const size_t before = values_.size();
    values_.push_back(x);
    std::swap(builder_, inner);
    ++depth_;
    affine(x);
    activation(any());
    for (int64_t parts = c_.from_to(0, 2); parts > 0; --parts) add_part();
    --depth_;
    std::swap(builder_, inner);
    Value* made = x;
    for (size_t i = before; i < values_.size(); ++i)
      if (values_[i]->type == x->type && !c_.one_in(4)) made = values_[i];
    values_.resize(before);
    return made;
  }

  /// The condition reads an input, so no pass can fold it.
  void branch(Value* x) {
    if (depth_ >= kMostDepth) return;
    if (choice_ == nullptr) {
      choice_ = function_->body().add_input("choice", Type::tensor(DType::int32, Shape{1}));
      out_.inputs.push_back({choice_->name, ints({0})});
    }
    const std::string name = function_->unique_name("branch");
    auto above = builder_.op("greater", {{"x", choice_}, {"y", ints({c_.from_to(-1, 0)})}}, cat(name, "_above"));
    if (!above.ok()) return;
    auto taken = builder_.op("squeeze", {{"x", *above}}, cat(name, "_taken"));
    if (!taken.ok()) return;
    const std::vector<std::pair<std::string, Type>> none[2];
    const auto made = builder_.append_with_blocks(
        {"cond", {{"pred", *taken}}, name, {}, {}}, none,
        [&](size_t, Builder& inner) -> Result<std::vector<Value*>> { return std::vector{nested(inner, x)}; });
    if (made.ok()) keep((*made)->output(0));
  }

  void loop(Value* x) {
    if (depth_ >= kMostDepth) return;
    const std::string name = function_->unique_name("loop");
    auto first = builder_.constant(cat(name, "_first"), Tensor::scalar_i64(DType::int32, 0));
    if (!first.ok()) return;
    const std::vector<std::pair<std::string, Type>> inputs[2] = {
        {{cat(name, "_at"), (*first)->type}, {cat(name, "_value"), x->type}},
        {{cat(name, "_step"), (*first)->type}, {cat(name, "_carried"), x->type}}};
    const int steps = static_cast<int>(c_.from_to(0, 3));
    const auto fill = [&](size_t block, Builder& inner) -> Result<std::vector<Value*>> {
      Value* i = inner.block().inputs()[0].get();
      if (block == 0) return std::vector{MOKA_TRY(inner.op("less", {{"x", i}, {"y", steps}}, cat(name, "_goes_on")))};
      Value* next = MOKA_TRY(inner.op("add", {{"x", i}, {"y", 1}}, cat(name, "_next")));
      return std::vector{next, nested(inner, inner.block().inputs()[1].get())};
    };
    const auto made = builder_.append_with_blocks(
        {"while_loop", {{"loop_vars", std::vector<Value*>{*first, x}}}, name, {}, {}}, inputs, fill);
    if (made.ok()) keep((*made)->output(1));
  }

  /// Reads the state, or stores a value or the state with a slice replaced, as a cache of keys does.
  void remember(Value* x) {
    Value* same = x->type == values_.front()->type ? x : like(values_.front());
    if (c_.one_in(2)) same = replaced(op("read_state", {{"input", state_}}), same);
    keep(c_.one_in(2) ? op("read_state", {{"input", state_}})
                      : op("coreml_update_state", {{"state", state_}, {"value", same}}));
  }

  // ---- reductions and norms

  Sizes some_axes(size_t rank) {
    Sizes axes;
    for (size_t i = 0; i < rank; ++i)
      if (c_.one_in(2)) axes.push_back(static_cast<int64_t>(i) - (c_.one_in(4) ? static_cast<int64_t>(rank) : 0));
    if (axes.empty()) axes.push_back(-1);
    return axes;
  }

  void reduce(Value* x) {
    const char* names[] = {"reduce_mean", "reduce_sum",        "reduce_max",
                           "reduce_min",  "reduce_sum_square", "reduce_l2_norm"};
    keep(op(names[c_.below(6)], {{"x", x}, {"axes", ints(some_axes(sizes(x).size()))}, {"keep_dims", !c_.one_in(3)}}));
  }

  void softmax(Value* x) {
    const auto rank = static_cast<int64_t>(sizes(x).size());
    keep(op("softmax", {{"x", x}, {"axis", static_cast<int>(c_.from_to(-rank, rank - 1))}}));
  }

  void norm(Value* x) {
    const Sizes s = sizes(x);
    switch (c_.below(4)) {
      case 0: {
        std::vector<NamedArg> args{{"x", x}, {"axes", ints({-1})}, {"epsilon", number(0.001)}};
        if (c_.one_in(2)) args.push_back(given("gamma", random({s.back()}, 1)));
        if (c_.one_in(2)) args.push_back(given("beta", random({s.back()}, 1)));
        return keep(op("layer_norm", std::move(args)));
      }
      case 1: {
        if (s.size() < 3) return;
        std::vector<NamedArg> args{{"x", x}, {"epsilon", number(0.01)}};
        if (c_.one_in(2)) {
          args.push_back(given("gamma", random({s[1]}, 1)));
          args.push_back(given("beta", random({s[1]}, 1)));
        }
        return keep(op("instance_norm", std::move(args)));
      }
      case 2: return s.size() < 3 ? void() : keep(op("l2_norm", {{"x", x}, {"epsilon", number(0.01)}}));
      default:
        if (s.size() < 3) return;
        return keep(op("local_response_norm", {{"x", x}, {"size", 3}, {"alpha", number(0.1)}, {"k", number(1)}}));
    }
  }

  /// Layer, RMS and group norms, written out.
  void written_norm(Value* x) {
    Sizes s = sizes(x);
    const bool groups = s.size() == 4 && s[1] % 2 == 0 && c_.one_in(2);
    Value* v = x;
    if (groups) v = op("reshape", {{"x", x}, {"shape", ints({s[0], 2, s[1] / 2, s[2], s[3]})}});
    const Sizes axes = groups ? Sizes{2, 3, 4} : s.size() == 4 && c_.one_in(2) ? Sizes{1} : Sizes{-1};
    const auto mean = [&](Value* of) {
      return op("reduce_mean", {{"x", of}, {"axes", ints(axes)}, {"keep_dims", true}});
    };
    Value* centred = c_.one_in(4) ? v : op("sub", {{"x", v}, {"y", mean(v)}});
    Value* variance = mean(c_.one_in(2) ? op("square", {{"x", centred}}) : op("mul", {{"x", centred}, {"y", centred}}));
    Value* shifted = op("add", {{"x", variance}, {"y", number(0.01)}});
    if (c_.one_in(2))
      v = op("mul", {{"x", centred}, {"y", op("rsqrt", {{"x", shifted}})}});
    else
      v = op("real_div", {{"x", centred}, {"y", op("sqrt", {{"x", shifted}})}});
    if (groups) v = op("reshape", {{"x", v}, {"shape", ints(s)}});
    if (v != nullptr && c_.one_in(2)) v = op("mul", {{"x", v}, given("y", factors(v, 1, 0))});
    if (v != nullptr && c_.one_in(2)) v = op("add", {{"x", v}, given("y", factors(v, 1, 0))});
    keep(v);
  }

  /// Heads of query, key and value from one value or from two.
  void attention(Value* x) {
    const Sizes s = sizes(x);
    if (s.size() != 3) return;
    const int64_t heads = c_.from_to(1, 3), size = c_.from_to(1, 4), width = heads * size;
    Value* memory = c_.one_in(3) ? like(x) : x;
    const auto projected = [&](Value* from, bool transposed) -> Value* {
      Value* v = op("linear", {{"x", from}, weights("weight", {width, s[2]}, s[2]), {"bias", random({width}, 0.3)}});
      v = op("reshape", {{"x", v}, {"shape", ints({s[0], s[1], heads, size})}});
      return op("transpose", {{"x", v}, {"perm", ints(transposed ? Sizes{0, 2, 3, 1} : Sizes{0, 2, 1, 3})}});
    };
    const bool transposed = c_.one_in(2);
    Value *query = projected(x, false), *key = projected(memory, transposed), *value = projected(memory, false);
    const double scale = 1 / std::sqrt(static_cast<double>(size));
    if (c_.one_in(2)) query = op("mul", {{"x", query}, {"y", number(scale)}});
    Value* v = nullptr;
    if (function_->opset >= Opset::ios18 && !transposed && c_.one_in(2)) {
      std::vector<NamedArg> args{{"query", query}, {"key", key}, {"value", value}};
      if (c_.one_in(2)) args.emplace_back("attn_mask", random({s[1], s[1]}, 2));
      v = op("scaled_dot_product_attention", std::move(args));
    } else {
      v = op("matmul", {{"x", query}, {"y", key}, {"transpose_y", !transposed}});
      if (c_.one_in(2)) v = op("mul", {{"x", v}, {"y", number(0.7)}});
      if (c_.one_in(2)) v = op("add", {{"x", v}, given("y", random({s[1], s[1]}, 2))});
      v = op("softmax", {{"x", v}, {"axis", -1}});
      v = op("matmul", {{"x", v}, {"y", value}});
    }
    if (c_.one_in(4)) keep(v);
    v = op("transpose", {{"x", v}, {"perm", ints({0, 2, 1, 3})}});
    keep(op("reshape", {{"x", v}, {"shape", ints({s[0], s[1], width})}}));
  }

  static constexpr int kMostDepth = 2;
  Value *state_ = nullptr, *choice_ = nullptr;  ///< nullptr: the network has none
  int depth_ = 0;                               ///< of blocks
  Case out_;
};

}  // namespace

Case random_network(Choices& choices) { return Network(choices).make(); }

}  // namespace moka::conformance
