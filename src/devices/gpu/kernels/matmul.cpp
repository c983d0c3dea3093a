// SPDX-License-Identifier: Apache-2.0
#include "devices/gpu/common/packed_rows.h"
#include "devices/gpu/common/product.h"
#include "devices/gpu/kernels/family.h"
#include "ops/common/broadcast.h"
#include "ops/common/packed.h"

namespace moka::devices::gpu {

namespace {

/// Inputs of a product in all_args; -1: none.
struct Inputs {
  int a, b, bias = -1, addend = -1;
};

Match choose_product(KernelChoice c, const MatchCall& m, ProductKernel k, Inputs in,
                     std::shared_ptr<const Uploaded> b = nullptr) {
  k.may_divide = true;
  if (std::string why = k.refusal(); !why.empty()) return Match::no(why);
  k.after = limits_of(m.epilogue);
  c.scratch = k.scratch();
  c.epilogues = k.after.count;
  set_cost(c, m, k.multiply_adds());
  c.record = [=, scratch = static_cast<int64_t>(c.scratch / 4)](Recorder& recorder, const RecordArgs& args) -> Status {
    auto use = [&](int i) { return i < 0 ? Use{} : Use::read(view(args.in, i)); };
    return k.record(recorder, {use(in.a), b ? Use::read(b->buffer, size_of(k.weights)) : use(in.b), use(in.bias),
                               use(in.addend), Use::write(args.out[0]), scratch_of(args, scratch)});
  };
  return Match::yes(std::move(c));
}

int addend_of(const MatchCall& m) { return m.call.has_addend() ? m.call.arg_index("addend") : -1; }

Match match_linear(const MatchCall& m) {
  if (std::string why = refusal_of_floats(m, {"x", "bias", "addend"}); !why.empty()) return Match::no(why);
  const ir::Shape &x = m.call.shape("x"), &weight = m.call.shape("weight");
  if (!m.is_constant("weight")) return Match::no("weights that are not constant");
  const Element e = float_element(m);
  KernelChoice c = choice_of(m, "linear", {"x", "bias", "addend"}, e);
  ProductKernel k{&features_of(m)};
  Product& p = k.product;
  p.rows = u32(x.count(0, x.rank() - 1));
  p.columns = p.c_row = u32(weight[0]);
  p.depth = p.a_row = p.b_column = u32(weight[1]);
  p.b_k = p.bias_column = 1;
  const Inputs in{m.call.arg_index("x"), m.call.arg_index("weight"), m.call.arg_index("bias"), addend_of(m)};
  k.floats = e;
  k.weights = weights_element(m, in.b, e);
  auto held =
      uploaded_before(c, in.b, "rows", weight.count(), k.weights, [](const ir::TensorView& value, float* to) -> Status {
        ops::load_floats(value, 0, value.count(), to);
        return {};
      });
  return choose_product(std::move(c), m, k, in, std::move(held));
}

/// Chooses a product of dense rows and weights that the shader reads in their stored form.
Match choose_packed(const MatchCall& m, std::string_view kernel, std::string_view weights, bool transposed,
                    int64_t rows, std::initializer_list<std::string_view> params, Inputs in) {
  if (!m.is_constant(weights)) return Match::no("weights that are not constant");
  if (m.call.shape(weights).rank() != 2) return Match::no("weights that are not a matrix");
  std::string refusal;
  auto packed = PackedRows::of(m, in.b, transposed, refusal);
  if (!packed) return Match::no(refusal);
  if (refusal = packed->refusal(rows); !refusal.empty()) return Match::no(refusal);
  const Element e = float_element(m);
  KernelChoice c = choice_of(m, kernel, params, e);
  const After after = limits_of(m.epilogue);
  c.epilogues = after.count;
  packed->prepare_in(c, packed);
  set_cost(c, m, static_cast<double>(rows) * static_cast<double>(packed->count() * packed->depth()));
  c.record = [=](Recorder& recorder, const RecordArgs& args) -> Status {
    auto use = [&](int i) { return i < 0 ? Use{} : Use::read(view(args.in, i)); };
    return packed->record(recorder, e, after, rows, use(in.a), use(in.bias), use(in.addend), Use::write(args.out[0]));
  };
  return Match::yes(std::move(c));
}

Match match_linear_packed(const MatchCall& m) {
  if (std::string why = refusal_of_floats(m, {"x", "bias", "addend"}); !why.empty()) return Match::no(why);
  const ir::Shape& x = m.call.shape("x");
  return choose_packed(m, "linear.packed", "weight", false, x.count(0, x.rank() - 1), {"x", "bias", "addend"},
                       {m.call.arg_index("x"), m.call.arg_index("weight"), m.call.arg_index("bias"), addend_of(m)});
}

/// Dense rows on the left, a constant matrix on the right.
Match match_matmul_packed(const MatchCall& m) {
  if (std::string why = refusal_of_floats(m, {"x", "bias", "addend"}); !why.empty()) return Match::no(why);
  auto tx = m.call.flag("transpose_x"), ty = m.call.flag("transpose_y");
  if (!tx.ok() || !ty.ok()) return Match::no("a parameter that is not constant");
  const ir::Shape& x = m.call.shape("x");
  if (*tx) return Match::no("a transposed left side");
  return choose_packed(m, "matmul.packed", "y", !*ty, x.count(0, x.rank() - 1), {"x", "bias", "addend"},
                       {m.call.arg_index("x"), m.call.arg_index("y"), m.call.arg_index("bias"), addend_of(m)});
}

/// The matrices of an operand of matmul. A vector is a row on the left, a column on the right.
struct Operand {
  ir::Shape batch;
  int64_t rows = 1, columns = 1, row_step = 0, column_step = 0;

  Operand(const ir::Shape& s, bool transposed, bool left) {
    if (s.rank() == 1) {
      (left ? columns : rows) = s[0];
      (left ? column_step : row_step) = 1;
      return;
    }
    for (int i = 0; i + 2 < s.rank(); i++) batch.push_back(s[i]);
    rows = s[s.rank() - 2];
    columns = row_step = s[s.rank() - 1];
    column_step = 1;
    if (!transposed) return;
    std::swap(rows, columns);
    std::swap(row_step, column_step);
  }
};

Match match_matmul(const MatchCall& m) {
  if (std::string why = refusal_of_floats(m, {"x", "y", "bias", "addend"}); !why.empty()) return Match::no(why);
  auto tx = m.call.flag("transpose_x"), ty = m.call.flag("transpose_y");
  if (!tx.ok() || !ty.ok()) return Match::no("a parameter that is not constant");
  const Operand a(m.call.shape("x"), *tx, true), b(m.call.shape("y"), *ty && m.call.rank("y") > 1, false);
  const ir::Shape& out = m.outputs[0].shape();
  ir::Shape batch;
  const int matrix = (m.call.rank("x") > 1 ? 1 : 0) + (m.call.rank("y") > 1 ? 1 : 0);
  for (int i = 0; i + matrix < out.rank(); i++) batch.push_back(out[i]);
  const ops::BroadcastWalk walk(batch, {&a.batch, &b.batch});
  if (walk.rank > 3) return Match::no("broadcasting along more than 3 dimensions");
  ProductKernel k{&features_of(m)};
  Product& p = k.product;
  p.rows = u32(a.rows);
  p.columns = p.c_row = u32(b.columns);
  p.depth = u32(a.columns);
  p.a_row = u32(a.row_step);
  p.a_k = u32(a.column_step);
  p.b_k = u32(b.row_step);
  p.b_column = u32(b.column_step);
  p.bias_column = 1;
  k.entries = batch.count();
  int64_t step = a.rows * b.columns;
  for (int d = 0; d < walk.rank; d++) {
    const auto to = static_cast<size_t>(d), from = static_cast<size_t>(walk.rank - 1 - d);
    if (d < 2) p.size[to] = u32(walk.size[from]);
    p.a_batch[to] = u32(walk.stride[0][from] * a.rows * a.columns);
    p.b_batch[to] = u32(walk.stride[1][from] * b.rows * b.columns);
    p.c_batch[to] = u32(step);
    step *= walk.size[from];
  }
  // If all batch entries share the right side, the batch becomes one product with more rows.
  if (k.entries > 1 && walk.rank == 1 && p.b_batch[0] == 0 && !*tx && a.row_step == a.columns) {
    p.rows = u32(k.entries * a.rows);
    k.entries = 1;
    p.a_batch = p.c_batch = {};
    p.size = {1, 1};
  }
  k.floats = k.weights = float_element(m);
  KernelChoice c = choice_of(m, "matmul", {"x", "y", "bias", "addend"}, k.floats);
  return choose_product(std::move(c), m, k,
                        {m.call.arg_index("x"), m.call.arg_index("y"), m.call.arg_index("bias"), addend_of(m)});
}

/// Several letters of an equation as one index: the product of their sizes, and the step of the index in each tensor.
struct Letters {
  int64_t size = 1;
  std::array<int64_t, 3> step{};
};

struct Letter {
  char name;
  int64_t size;
  std::array<int64_t, 3> step;  // first operand, second operand, result; 0: absent or broadcast
  std::array<bool, 3> in;
};

/// The letters of "ab,bc->ac", those of the first operand first. The operation has checked the equation.
std::vector<Letter> letters_of(std::string_view equation, std::array<const ir::Shape*, 3> shapes) {
  std::vector<Letter> all;
  std::array<std::string, 3> terms;
  size_t part = 0;
  for (char c : equation) {
    if (c == ',' || c == '>')
      part++;
    else if (c != ' ' && c != '-')
      terms[part] += c;
  }
  for (size_t t = 0; t < 3; t++) {
    const auto strides = shapes[t]->strides();
    for (size_t i = 0; i < terms[t].size(); i++) {
      auto at = std::find_if(all.begin(), all.end(), [&](const Letter& l) { return l.name == terms[t][i]; });
      if (at == all.end()) at = all.insert(all.end(), Letter{terms[t][i], 1, {}, {}});
      const int64_t size = (*shapes[t])[static_cast<int>(i)];
      at->size = std::max(at->size, size);
      at->step[t] = size == 1 ? 0 : strides[i];
      at->in[t] = true;
    }
  }
  return all;
}

/// Merges neighboring letters that are contiguous in all tensors.
std::vector<Letters> merged(const std::vector<const Letter*>& letters) {
  std::vector<Letters> out;
  for (const Letter* l : letters) {
    if (l->size == 1) continue;
    const bool follows = !out.empty() && [&] {
      for (size_t t = 0; t < 3; t++)
        if (out.back().step[t] != l->step[t] * l->size) return false;
      return true;
    }();
    if (follows) {
      out.back().size *= l->size;
      out.back().step = l->step;
    } else {
      out.push_back({l->size, l->step});
    }
  }
  return out;
}

Match match_einsum(const MatchCall& m) {
  if (std::string why = refusal_of_floats(m, {"values"}); !why.empty()) return Match::no(why);
  auto equation = m.call.text("equation");
  if (!equation.ok()) return Match::no("a parameter that is not constant");
  const auto values = m.call.args("values");
  const auto letters =
      letters_of(*equation, {&values[0].type->shape(), &values[1].type->shape(), &m.outputs[0].shape()});
  std::array<std::vector<const Letter*>, 4> kinds;  // batch, rows, columns, depth
  for (const Letter& l : letters) kinds[!l.in[2] ? 3 : l.in[0] && l.in[1] ? 0 : l.in[0] ? 1 : 2].push_back(&l);
  std::array<std::vector<Letters>, 4> groups;
  for (size_t i = 0; i < 4; i++) groups[i] = merged(kinds[i]);
  // Rows and columns other than the innermost index count as batch dimensions.
  for (size_t i : {1, 2})
    while (groups[i].size() > 1) {
      groups[0].push_back(groups[i].front());
      groups[i].erase(groups[i].begin());
    }
  if (groups[3].size() > 1) return Match::no("sums over letters that do not lie side by side");
  if (groups[0].size() > 3) return Match::no("a batch of more than 3 dimensions");
  ProductKernel k{&features_of(m)};
  Product& p = k.product;
  auto one = [&](size_t i) { return groups[i].empty() ? Letters{} : groups[i][0]; };
  const Letters rows = one(1), columns = one(2), depth = one(3);
  p.rows = u32(rows.size);
  p.columns = u32(columns.size);
  p.depth = u32(depth.size);
  p.a_row = u32(rows.step[0]);
  p.a_k = u32(depth.step[0]);
  p.b_k = u32(depth.step[1]);
  p.b_column = u32(columns.step[1]);
  p.c_row = u32(rows.step[2]);
  p.c_column = u32(columns.step[2]);
  for (size_t d = 0; d < groups[0].size(); d++) {
    const Letters& l = groups[0][groups[0].size() - 1 - d];
    k.entries *= l.size;
    if (d < 2) p.size[d] = u32(l.size);
    p.a_batch[d] = u32(l.step[0]);
    p.b_batch[d] = u32(l.step[1]);
    p.c_batch[d] = u32(l.step[2]);
  }
  k.floats = k.weights = float_element(m);
  const int first = m.call.arg_index("values");
  KernelChoice c = choice_of(m, "einsum", {"values"}, k.floats);
  return choose_product(std::move(c), m, k, {first, first + 1});
}

}  // namespace

KernelFamily family_matmul() {
  static const KernelDef defs[] = {{"linear.packed", {"linear"}, match_linear_packed, true},
                                   {"linear", {"linear"}, match_linear, true},
                                   {"matmul.packed", {"matmul"}, match_matmul_packed, true},
                                   {"matmul", {"matmul"}, match_matmul, true},
                                   {"einsum", {"einsum"}, match_einsum}};
  return {defs};
}

}  // namespace moka::devices::gpu
