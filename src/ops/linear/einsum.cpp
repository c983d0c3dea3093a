// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cctype>

#include "ir/gradient.h"
#include "ops/common/common.h"
#include "ops/common/product.h"
#include "ops/common/ranks.h"
#include "ops/common/runs.h"

namespace moka::ops {

namespace {

/// A letter of the equation: its size and its element stride in each tensor (0: absent or broadcast).
struct Label {
  char name = 0;
  int64_t size = kAnyDim;
  int64_t step[3] = {};  // first operand, second operand, result
  bool in[3] = {};
};

/// The steps of a type. The steps of a tensor that is too large to allocate may overflow, but are never used.
int64_t wrapped_product(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
}

struct Equation {
  static constexpr int kMaxLabels = 2 * kMaxRank;
  std::array<Label, kMaxLabels> labels;
  int count = 0;
  std::array<int, kMaxRank> out{};  // letters of the result, in order
  int out_rank = 0;

  Label* find(char c) {
    for (int i = 0; i < count; ++i) {
      if (labels[static_cast<size_t>(i)].name == c) return &labels[static_cast<size_t>(i)];
    }
    return nullptr;
  }
};

/// The three label lists of "ab,bc->ac", without spaces.
struct Terms {
  std::array<std::array<char, kMaxRank>, 3> letters{};
  std::array<int, 3> rank{};
};

Result<Terms> split(const OpCall& call) {
  const std::string_view text = MOKA_TRY(call.text("equation"));
  Terms t;
  size_t part = 0;
  auto bad = [&] {
    return call.error("equation", "two operands and a result, as 'nchw,nwhu->nchu'", cat("'", text, "'"));
  };
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == ' ') continue;
    if (c == ',' && part == 0) {
      part = 1;
    } else if (c == '-' && part == 1 && i + 1 < text.size() && text[i + 1] == '>') {
      part = 2;
      ++i;
    } else if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')) {
      auto& letters = t.letters[part];
      int& rank = t.rank[part];
      if (rank == kMaxRank) return bad();
      for (int j = 0; j < rank; ++j) {
        if (letters[static_cast<size_t>(j)] == c) {
          return call.error("equation", "each letter at most once in a term", cat("'", text, "'"));
        }
      }
      letters[static_cast<size_t>(rank++)] = c;
    } else {
      return bad();
    }
  }
  if (part != 2) return bad();
  return t;
}

Result<Equation> read_equation(const OpCall& call, const Shape& x, const Shape& y) {
  const Terms t = MOKA_TRY(split(call));
  Equation e;
  const Shape* shapes[2] = {&x, &y};
  for (size_t p = 0; p < 2; ++p) {
    const Shape& s = *shapes[p];
    if (t.rank[p] != s.rank()) {
      return call.error("values", cat("operand ", p, " of rank ", t.rank[p], ", as the equation says"), cat(s));
    }
    int64_t step = 1;
    for (int i = s.rank() - 1; i >= 0; --i) {
      const char c = t.letters[p][static_cast<size_t>(i)];
      Label* l = e.find(c);
      if (l == nullptr) {
        l = &e.labels[static_cast<size_t>(e.count++)];
        l->name = c;
        l->size = s[i];
        l->step[p] = step;
      } else {
        const bool summed = [&] {
          for (int j = 0; j < t.rank[2]; ++j) {
            if (t.letters[2][static_cast<size_t>(j)] == c) return false;
          }
          return true;
        }();
        const int64_t a = l->size, b = s[i];
        if (!may_equal(a, b) && (summed || (a != 1 && b != 1))) {
          return call.error("values", cat("equal sizes of '", std::string_view(&c, 1), "'"), cat(x, " and ", y));
        }
        // An unknown size may turn out to be 1, which broadcasts. Only a known size above 1 is certain.
        l->size = a == b ? a : a == 1 ? b : b == 1 ? a : a > 1 ? a : b > 1 ? b : kAnyDim;
        l->step[0] = a == 1 ? 0 : l->step[0];
        l->step[p] = b == 1 ? 0 : step;
      }
      l->in[p] = true;
      if (s[i] >= 0) step = wrapped_product(step, s[i]);
    }
  }
  int64_t step = 1;
  e.out_rank = t.rank[2];
  for (int i = t.rank[2] - 1; i >= 0; --i) {
    Label* l = e.find(t.letters[2][static_cast<size_t>(i)]);
    if (l == nullptr) {
      return call.error("equation", "a result made of the operands' letters", MOKA_TRY(call.text("equation")));
    }
    l->in[2] = true;
    l->step[2] = step;
    e.out[static_cast<size_t>(i)] = static_cast<int>(l - e.labels.data());
    if (l->size >= 0) step = wrapped_product(step, l->size);
  }
  return e;
}

Result<std::vector<Type>> infer_einsum(const OpCall& call) {
  const auto values = call.args("values");
  if (values.size() != 2) return call.error("values", "two tensors", cat(values.size()));
  for (const Arg& a : values) {
    if (!a.type->is_tensor() || (!is_float(a.type->dtype()) && !is_integer(a.type->dtype()))) {
      return call.error("values", "tensors of numbers", cat(*a.type));
    }
  }
  const DType dtype = values[0].type->dtype();
  if (values[1].type->dtype() != dtype) {
    return call.error("values", cat("one element type, ", dtype), to_string(values[1].type->dtype()));
  }
  if (any_unranked(call, {"values"})) return one(Type::unranked(dtype));
  const Equation e = MOKA_TRY(read_equation(call, values[0].type->shape(), values[1].type->shape()));
  Shape out;
  for (int i = 0; i < e.out_rank; ++i) out.push_back(e.labels[static_cast<size_t>(e.out[static_cast<size_t>(i)])].size);
  return one(Type::tensor(dtype, out));
}

/// Several letters combined to one index, with element offsets in the three tensors.
struct Group {
  std::array<const Label*, Equation::kMaxLabels> labels{};
  int count = 0;
  int64_t size = 1;

  void add(const Label& l) {
    labels[static_cast<size_t>(count++)] = &l;
    size *= l.size;
  }
  int64_t offset(int64_t index, int tensor) const {
    int64_t at = 0;
    for (int i = count - 1; i >= 0; --i) {
      const Label& l = *labels[static_cast<size_t>(i)];
      at += index % l.size * l.step[tensor];
      index /= l.size;
    }
    return at;
  }
  /// Reads elements that are `step` apart in the tensor, from `index` on.
  int64_t run(int64_t index, int64_t n) const {
    if (count == 0) return n;
    const int64_t inner = labels[static_cast<size_t>(count - 1)]->size;
    return std::min(n, inner - index % inner);
  }
  int64_t step(int tensor) const { return count == 0 ? 0 : labels[static_cast<size_t>(count - 1)]->step[tensor]; }

  template <class Fn>
  void runs(int64_t index, int64_t n, int tensor, Fn&& fn) const {
    for (int64_t done = 0; done < n;) {
      const int64_t count_now = run(index + done, n - done);
      fn(done, count_now, offset(index + done, tensor));
      done += count_now;
    }
  }
};

template <class Acc>
void run_einsum(const Equation& e, const TensorView& x, const TensorView& y, const TensorView& out) {
  Group batch, rows, cols, depth;
  // Adds the innermost letter last, because the letters of each term were read from the right.
  for (int i = e.count - 1; i >= 0; --i) {
    const Label& l = e.labels[static_cast<size_t>(i)];
    (!l.in[2] ? depth : l.in[0] && l.in[1] ? batch : l.in[0] ? rows : cols).add(l);
  }
  for (int64_t b = 0; b < batch.size; ++b) {
    const int64_t x0 = batch.offset(b, 0), y0 = batch.offset(b, 1), o0 = batch.offset(b, 2);
    blocked_product<Acc>(
        rows.size, cols.size, depth.size,
        [&](int64_t i, int64_t k, int64_t n, Acc* to) {
          const int64_t base = x0 + rows.offset(i, 0);
          depth.runs(k, n, 0,
                     [&](int64_t at, int64_t m, int64_t off) { load_run(x, base + off, depth.step(0), m, to + at); });
        },
        [&](int64_t k, int64_t j, int64_t n, Acc* to) {
          const int64_t base = y0 + depth.offset(k, 1);
          cols.runs(j, n, 1,
                    [&](int64_t at, int64_t m, int64_t off) { load_run(y, base + off, cols.step(1), m, to + at); });
        },
        [&](int64_t i, int64_t j, int64_t n, Acc* c) {
          const int64_t base = o0 + rows.offset(i, 2);
          cols.runs(j, n, 2,
                    [&](int64_t at, int64_t m, int64_t off) { store_run(out, base + off, cols.step(2), m, c + at); });
        });
  }
}

Status einsum_reference(const OpCall& call, std::span<const TensorView> out) {
  if (out[0].count() == 0) return {};
  const auto values = call.args("values");
  const TensorView& x = *values[0].value;
  const TensorView& y = *values[1].value;
  const Equation e = MOKA_TRY(read_equation(call, x.shape, y.shape));
  if (is_integer(x.dtype)) {
    run_einsum<int64_t>(e, x, y, out[0]);
  } else {
    run_einsum<double>(e, x, y, out[0]);
  }
  return {};
}

void einsum_gradient(Gradient& g) {
  const std::string_view equation = g.text("equation");
  std::vector<std::string> terms{""};
  for (const char c : equation)
    if (c == ',' || c == '>')
      terms.emplace_back();
    else if (std::isalpha(static_cast<unsigned char>(c)) != 0)
      terms.back() += c;
  if (terms.size() != 3) return g.fail(fail(ErrorCode::unsupported, "no gradient of ", equation));
  for (size_t i = 0; i < 2; i++) {
    if (!g.wants("values", i)) continue;
    const std::string &to = terms[i], &other = terms[1 - i];
    // Letters of this operand alone are summed. All their elements get the same gradient.
    std::string shared;
    for (const char c : to)
      if (terms[2].find(c) != std::string::npos || other.find(c) != std::string::npos) shared += c;
    const Term d = g.call("einsum", {{"values", std::vector<Value*>{g.dy().value(), g.in("values", 1 - i).value()}},
                                     {"equation", terms[2] + "," + other + "->" + shared}});
    if (g.has_failed()) return;
    Shape repeated = d.shape();
    for (size_t k = 0; k < to.size(); k++)
      if (shared.find(to[k]) == std::string::npos) repeated.insert(static_cast<int>(k), 1);
    g.set("values", g.reshape(d, repeated), i);
  }
}

}  // namespace

OpDef define_einsum() {
  return OpBuilder("einsum",
                   "Sum of products of two tensors in Einstein notation. Letters of the result that have size 1 in one "
                   "operand broadcast.")
      .variadic_any("values")
      .constant("equation", kString)
      .infer(infer_einsum)
      .reference(einsum_reference)
      .traits(Trait::costly)
      .note(
          "Two operands, no letter twice in a term, no ellipsis. Every such equation runs; letters "
          "absent from the result are summed.",
          "numpy.einsum; coremltools' definition names only two equations")
      .note(
          "A dimension of 1 broadcasts if its letter is in the result. It is refused if it is summed against "
          "another size.",
          "coremltools' definition")
      .gradient(einsum_gradient)
      .build();
}

}  // namespace moka::ops
