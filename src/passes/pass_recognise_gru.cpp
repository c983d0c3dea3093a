// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <cstring>
#include <functional>

#include "passes/pass.h"
#include "passes/rewrite.h"

/// Recognizes counting loops that compute a gated recurrent unit and replaces them by `gru`. Converters write such
/// loops when the product with the state has a bias of its own, which `gru` did not support before iOS18. The loop
/// carries all states, [steps + 1, batch, hidden]. Each iteration gathers a step of x and the last state, and adds a
/// new state.
namespace moka::passes {

namespace {

using namespace ir;

constexpr size_t kLargestWeights = size_t{1} << 30;

/// The value without operations that only change how its shape is written.
Value* bare(Value* v) {
  while (v->producer() != nullptr && v->producer()->epilogue.empty()) {
    const std::string& type = v->producer()->type_name();
    if (type != "squeeze" && type != "expand_dims" && type != "reshape" && type != "identity") break;
    v = v->producer()->input("x");
  }
  return v;
}

/// Whether f(x, y) or f(y, x) holds for the operands of an operation.
bool either_way(const Value* v, std::string_view type, const std::function<bool(Value*, Value*)>& f) {
  const Op* op = made_by(v, type);
  return op != nullptr && (f(op->input("x"), op->input("y")) || f(op->input("y"), op->input("x")));
}

struct Linear {
  const Value* x = nullptr;
  const Value *weight = nullptr, *bias = nullptr;
};
bool is_linear(const Value* v, Linear& to) {
  const Op* op = made_by(v, "linear");
  if (op == nullptr || op->input("addend") != nullptr) return false;
  to = {bare(op->input("x")), op->input("weight"), op->input("bias")};
  return true;
}

/// The two products of a gate.
struct Gate {
  Linear of_x, of_h;
};

struct Match {
  Op& loop;
  const Value *counter = nullptr, *states = nullptr;  // inputs of the loop's body
  const Value* step = nullptr;                        // gathered step of x
  const Value* state = nullptr;                       // the last state
  Value* x = nullptr;                                 // defined outside the loop
  std::array<Gate, 3> gates;                          // reset, new, update
  int64_t steps = 0;
};

bool is_sum_of_products(const Value* v, const Match& m, Gate& g) {
  return either_way(v, "add", [&](Value* a, Value* b) {
    return is_linear(a, g.of_x) && g.of_x.x == m.step && is_linear(b, g.of_h) && g.of_h.x == m.state;
  });
}

/// Matches a gate sigmoid(W x + U h).
bool is_gate(const Value* v, const Match& m, Gate& g) {
  const Op* op = made_by(v, "sigmoid");
  return op != nullptr && is_sum_of_products(op->input("x"), m, g);
}

/// Matches tanh(W x + reset * (U h)).
bool is_new(const Value* v, Match& m) {
  const Op* op = made_by(v, "tanh");
  return op != nullptr && either_way(op->input("x"), "add", [&](Value* a, Value* b) {
           Gate& g = m.gates[1];
           return is_linear(a, g.of_x) && g.of_x.x == m.step && either_way(b, "mul", [&](Value* r, Value* u) {
                    return is_gate(r, m, m.gates[0]) && is_linear(u, g.of_h) && g.of_h.x == m.state;
                  });
         });
}

/// Matches (1 - update) * new + update * state.
bool is_next_state(const Value* v, Match& m) {
  return either_way(v, "add", [&](Value* a, Value* b) {
    return either_way(b, "mul", [&](Value* update, Value* state) {
      if (bare(state) != m.state || !is_gate(update, m, m.gates[2])) return false;
      return either_way(a, "mul", [&](Value* rest, Value* fresh) {
        const Op* minus = made_by(rest, "sub");
        return minus != nullptr && number_of(*minus, "x") == 1 && minus->input("y") == update && is_new(fresh, m);
      });
    });
  });
}

/// Matches element `counter` of `from` along axis 0.
bool is_gather(const Value* v, const Value* counter, const Value*& from) {
  const Op* op = made_by(v, "gather");
  if (op == nullptr || bare(op->input("indices")) != counter || number_of(*op, "axis") != 0) return false;
  if (op->input("batch_dims") != nullptr && number_of(*op, "batch_dims") != 0) return false;
  from = op->input("x");
  return true;
}

bool is_inside(const Value* v, const Block& block) {
  return v->producer() != nullptr ? v->producer()->parent() == &block : v->block() == &block;
}

/// Whether all rows after the first are zeros, so that adding to them is the same as writing.
bool begins_with_zeros_behind(const Value* v) {
  auto zeros = [](const Value* part, size_t from) {
    if (const Op* fill = made_by(part, "fill")) return from == 0 && number_of(*fill, "value") == 0;
    const Tensor* t = tensor_constant(part);
    if (t == nullptr || t->dtype() != DType::fp32) return false;
    const auto all = t->as<float>();
    return std::all_of(all.begin() + static_cast<int64_t>(from), all.end(), [](float f) { return f == 0; });
  };
  if (const Tensor* t = tensor_constant(v))
    return t->shape()[0] > 0 && zeros(v, static_cast<size_t>(t->count() / t->shape()[0]));
  const Op* join = made_by(v, "concat");
  if (join == nullptr || number_of(*join, "axis") != 0 || number_of(*join, "interleave").value_or(0) != 0) return false;
  const auto parts = join->inputs("values");
  if (parts.size() < 2 || parts[0]->type.shape()[0] != 1) return false;
  return std::all_of(parts.begin() + 1, parts.end(), [&](const Value* p) { return zeros(p, 0); });
}

bool is_fp32(const Type& t, int rank) {
  return t.is_tensor() && t.is_concrete() && t.dtype() == DType::fp32 && t.rank() == rank;
}

bool match(Match& m) {
  const auto given = m.loop.inputs("loop_vars");
  if (given.size() != 2 || m.loop.block_count() != 2 || !is_fp32(given[1]->type, 3)) return false;
  const Block &test = *m.loop.block(0), &body = *m.loop.block(1);
  const Tensor* start = tensor_constant(given[0]);
  if (start == nullptr || start->count() != 1 || load_i64(start->view(), 0) != 0) return false;
  const Op* less = made_by(bare(test.outputs()[0]), "less");
  if (less == nullptr || bare(less->input("x")) != test.inputs()[0].get()) return false;
  const auto steps = number_of(*less, "y");
  m.counter = body.inputs()[0].get();
  m.states = body.inputs()[1].get();
  if (!steps || *steps < 1 || given[1]->type.shape()[0] != *steps + 1 || !begins_with_zeros_behind(given[1]))
    return false;
  m.steps = static_cast<int64_t>(*steps);

  const Value* next = body.outputs()[0];
  const Op* count = made_by(next, "add");
  if (count == nullptr || count->input("x") != m.counter || number_of(*count, "y") != 1) return false;
  const Op* put = made_by(body.outputs()[1], "scatter");
  if (put == nullptr || put->input("data") != m.states || bare(put->input("indices")) != next ||
      number_of(*put, "axis") != 0)
    return false;
  if (const auto mode = text_of(*put, "mode"); mode != "add" && mode != "update") return false;

  // The two things that the body gathers.
  for (const auto& op : body.ops()) {
    const Value* from = nullptr;
    if (op->output_count() != 1 || !is_gather(op->output(), m.counter, from)) continue;
    if (from == m.states) {
      m.state = op->output();
    } else if (!is_inside(from, body)) {
      m.step = op->output();
      m.x = op->input("x");
    }
  }
  if (m.state == nullptr || m.step == nullptr || !is_fp32(m.x->type, 3)) return false;
  const int64_t hidden = given[1]->type.shape()[2], batch = given[1]->type.shape()[1];
  if (m.x->type.shape()[0] != m.steps || m.x->type.shape()[1] != batch) return false;
  const Value* made = bare(put->input("updates"));
  if (!is_next_state(made, m) || made->type.shape() != Shape{batch, hidden}) return false;
  for (const Gate& g : m.gates)
    if (g.of_x.weight->type.shape() != Shape{hidden, m.x->type.shape()[2]} ||
        g.of_h.weight->type.shape() != Shape{hidden, hidden})
      return false;
  return true;
}

/// The constants of the gates joined along axis 0, [3 * rows, ...], with zeros for absent ones.
std::optional<Tensor> stacked(const std::array<const Value*, 3>& parts, const Shape& one) {
  Shape all = one;
  all[0] *= 3;
  auto to = Tensor::zeros(DType::fp32, all);
  if (!to.ok()) return std::nullopt;
  for (size_t i = 0; i < parts.size(); i++) {
    if (parts[i] == nullptr) continue;
    const auto t = constant_value(*parts[i], kLargestWeights);
    if (!t || t->dtype() != DType::fp32 || t->shape() != one) return std::nullopt;
    std::memcpy(static_cast<std::byte*>(to->mutable_data()) + i * t->bytes(), t->data(), t->bytes());
  }
  return std::move(*to);
}

Status recognise_step(PassContext& c, Op& op) {
  if (op.type_name() != "while_loop") return {};
  Match m{op};
  if (!match(m)) return {};
  Value* states = op.inputs("loop_vars")[1];
  const int64_t hidden = states->type.shape()[2], inputs = m.x->type.shape()[2];
  auto parts = [&](auto f) { return std::array{f(m.gates[0]), f(m.gates[1]), f(m.gates[2])}; };
  const auto of_x = stacked(parts([](const Gate&g) { return g.of_x.weight; }), {hidden, inputs}),
             of_h = stacked(parts([](const Gate&g) { return g.of_h.weight; }), {hidden, hidden}),
             input_bias = stacked(parts([](const Gate&g) { return g.of_x.bias; }), {hidden}),
             bias = stacked(parts([](const Gate&g) { return g.of_h.bias; }), {hidden});
  if (!of_x || !of_h || !input_bias || !bias) return {};

  Builder b = Builder::before(c.table, op);
  b.opset = std::max(b.opset, Opset::ios18);
  Value* first =
      MOKA_TRY(b.op("slice_by_index",
                    {{"x", states},
                     {"begin", Ints{0, 0, 0}},
                     {"end", Ints{1, 0, 0}},
                     {"end_mask", Tensor::wrap(DType::boolean, {3}, Bytes::from(std::string("\0\1\1", 3))).value()}},
                    cat(op.name, "_first")));
  Value* initial = MOKA_TRY(b.op("squeeze", {{"x", first}, {"axes", Ints{0}}}, cat(op.name, "_initial")));
  OpSpec gru{"gru",
             {{"x", m.x},
              {"initial_h", initial},
              {"weight_ih", *of_x},
              {"weight_hh", *of_h},
              {"bias", *bias},
              {"input_bias", *input_bias},
              {"reset_after", true},
              {"output_sequence", true}},
             op.name};
  gru.output_names = {cat(op.name, "_states"), cat(op.name, "_last")};
  Op* made = MOKA_TRY(b.append(std::move(gru)));
  Value* all = MOKA_TRY(b.op("concat", {{"values", std::vector<Value*>{first, made->output(0)}}, {"axis", 0}},
                             cat(op.name, "_with_first")));
  Tensor end = Tensor::zeros(op.output(0)->type.dtype(), op.output(0)->type.shape()).value();
  store_i64(end.view(), 0, m.steps);
  Value* count = MOKA_TRY(b.constant(cat(op.name, "_count"), end));
  take_name(*all, *op.output(1));
  Function::replace_all_uses(op.output(0), count);
  Function::replace_all_uses(op.output(1), all);
  c.remark(cat(op.name, " is a gru of ", m.steps, " steps"));
  op.parent()->erase(&op);
  return {};
}

Status recognise_gru(PassContext& c) {
  Status status;
  for_each_op(c.function.body(), [&](Op& op) {
    if (status.ok()) status = recognise_step(c, op);
  });
  return status;
}

}  // namespace

Pass pass_recognise_gru() { return {"recognise_gru", recognise_gru}; }

}  // namespace moka::passes
