// SPDX-License-Identifier: Apache-2.0
#include "import/onnx/node.h"

namespace moka::import::onnx {
namespace {

void matmul(Node& n) {
  Value *x = n.in(0), *y = n.in(1);
  n.set(0, wrapped(n, n.matmul(x, y), n.type()));
}

void gemm(Node& n) {
  Value *a = n.in(0), *b = n.in(1);
  const bool ta = n.integer_or("transA", 0) != 0, tb = n.integer_or("transB", 0) != 0;
  const double alpha = n.number_or("alpha", 1), beta = n.number_or("beta", 1);
  const Tensor* weight = n.constant(1);
  const Tensor* bias = n.has(2) ? n.constant(2) : nullptr;
  const bool plain = is_float(n.type()) && !ta && alpha == 1 && beta == 1 && weight != nullptr && n.rank(a) == 2;
  const bool fits = !n.has(2) || (bias != nullptr && bias->shape().rank() == 1 && weight != nullptr &&
                                  bias->shape()[0] == weight->shape()[tb ? 0 : 1]);
  if (plain && tb && fits) {
    std::vector<NamedArg> args{{"x", a}};
    args.emplace_back("weight", b);
    if (n.has(2)) args.emplace_back("bias", n.in(2));
    return n.set(0, n.op("linear", std::move(args)));
  }
  Value* v = n.matmul(a, b, ta, tb);
  if (alpha != 1) v = n.mul(v, alpha);
  if (n.has(2) && beta != 0) v = n.add(v, beta == 1 ? n.in(2) : n.mul(n.in(2), beta));
  n.set(0, v);
}

void matmul_integer(Node& n) {
  const auto centered = [&](size_t i, bool rows) {
    Value* x = n.in(i);
    if (!n.has(i + 2)) return x;
    Value* zero = n.in(i + 2);
    if (rows && n.rank(zero) == 1 && zero->type.shape()[0] != 1) zero = n.expand_dims(zero, {1});
    return n.sub(x, zero);
  };
  n.set(0, n.matmul(centered(0, true), centered(1, false)), DataType::int32);
}

/// Lists of indices of an equation: "bij" for each operand and for the result.
struct Equation {
  std::vector<std::string> operands;
  std::string result;
};

/// Replaces the ellipsis by capital letters from the end of the alphabet, as many as dimensions stand for it.
std::string spelled(const Node& n, const std::string& term, int rank) {
  const size_t at = term.find("...");
  if (at == std::string::npos) return term;
  const int letters = static_cast<int>(term.size()) - 3, dims = rank - letters;
  if (dims < 0) n.malformed(cat("equation '", term, "' for an input of rank ", rank));
  std::string filler;
  for (int i = dims; i > 0; --i) filler.push_back(static_cast<char>('Z' - i + 1));
  return term.substr(0, at) + filler + term.substr(at + 3);
}

Equation parse(const Node& n, const std::string& text) {
  std::string plain;
  for (const char c : text)
    if (c != ' ') plain.push_back(c);
  const size_t arrow = plain.find("->");
  std::string left = plain.substr(0, arrow);
  Equation out;
  int ellipsis = 0;
  for (size_t begin = 0, i = 0;; ++i) {
    const size_t end = left.find(',', begin);
    if (i >= n.inputs()) n.malformed(cat("equation '", text, "' for ", n.inputs(), " inputs"));
    const std::string term = left.substr(begin, end - begin);
    const int r = n.rank(n.in(i));
    out.operands.push_back(spelled(n, term, r));
    if (static_cast<int>(out.operands.back().size()) != r)
      n.malformed(cat("equation '", text, "': term '", term, "' for an input of rank ", r));
    if (term.find("...") != std::string::npos) ellipsis = std::max(ellipsis, r - static_cast<int>(term.size()) + 3);
    if (end == std::string::npos) break;
    begin = end + 1;
  }
  if (out.operands.size() != n.inputs()) n.malformed(cat("equation '", text, "' for ", n.inputs(), " inputs"));
  if (arrow != std::string::npos) {
    const std::string right = plain.substr(arrow + 2);
    const size_t letters = right.find("...") != std::string::npos ? right.size() - 3 : right.size();
    out.result = spelled(n, right, ellipsis + static_cast<int>(letters));
    return out;
  }
  std::string all;
  for (const std::string& term : out.operands) all += term;
  for (int i = ellipsis; i > 0; --i) out.result.push_back(static_cast<char>('Z' - i + 1));
  for (char c = 'A'; c <= 'z'; ++c)
    if (std::count(all.begin(), all.end(), c) == 1 && out.result.find(c) == std::string::npos) out.result.push_back(c);
  return out;
}

/// x with each letter once: repeated ones are the diagonal.
Value* without_repeats(const Node& n, Value* x, std::string& term) {
  for (size_t i = 0; i < term.size(); ++i) {
    const size_t j = term.find(term[i], i + 1);
    if (j == std::string::npos) continue;
    const Shape& s = n.known_shape(x, "a diagonal");
    const int64_t d = s[static_cast<int>(i)];
    // Zeros everything off the diagonal of axes i and j and sums along j, which leaves the diagonal along i.
    std::vector<int64_t> dims(static_cast<size_t>(s.rank()), 1);
    dims[i] = d, dims[j] = d;
    Tensor eye = need(Tensor::zeros(DType::boolean, need(Shape::make(dims))));
    for (int64_t k = 0; k < d; ++k) eye.mut<uint8_t>()[static_cast<size_t>(k * d + k)] = 1;
    Value* kept = n.select(n.constant(eye), x, n.scalar(0, x));
    x = n.reduce("reduce_sum", kept, {static_cast<int64_t>(j)}, false);
    term.erase(j, 1);
    --i;
  }
  return x;
}

/// The operand over `letters`, in that order, with size 1 where it has none.
Value* spread(const Node& n, Value* x, const std::string& term, const std::string& letters) {
  std::vector<int64_t> perm, missing;
  for (size_t i = 0; i < letters.size(); ++i) {
    const size_t at = term.find(letters[i]);
    if (at == std::string::npos)
      missing.push_back(static_cast<int64_t>(i));
    else
      perm.push_back(static_cast<int64_t>(at));
  }
  x = n.transpose(x, perm);
  return n.expand_dims(x, missing);
}

/// Products of two operands are a matrix product: letters of both and of the result are batches, letters that vanish
/// are summed.
void einsum(Node& n) {
  Equation e = parse(n, n.text_or("equation", ""));
  Value* x = n.in(0);
  std::string term = e.operands[0];
  x = without_repeats(n, x, term);
  const auto sum_out = [&](Value* v, std::string& letters, const std::string& others) {
    std::vector<int64_t> axes;
    std::string kept;
    for (size_t i = 0; i < letters.size(); ++i) {
      const bool stays = e.result.find(letters[i]) != std::string::npos || others.find(letters[i]) != std::string::npos;
      if (stays)
        kept.push_back(letters[i]);
      else
        axes.push_back(static_cast<int64_t>(i));
    }
    letters = kept;
    return axes.empty() ? v : n.reduce("reduce_sum", v, axes, false);
  };
  for (size_t k = 1; k < e.operands.size(); ++k) {
    std::string right = e.operands[k], later;
    Value* y = without_repeats(n, n.in(k), right);
    for (size_t l = k + 1; l < e.operands.size(); ++l) later += e.operands[l];
    x = sum_out(x, term, right + later);
    y = sum_out(y, right, term + later);
    std::string batch, rows, columns, inner;
    for (const char c : term) {
      const bool both = right.find(c) != std::string::npos;
      const bool stays = e.result.find(c) != std::string::npos || later.find(c) != std::string::npos;
      (both ? (stays ? batch : inner) : rows).push_back(c);
    }
    for (const char c : right)
      if (term.find(c) == std::string::npos) columns.push_back(c);
    if (rows.size() > 1 || columns.size() > 1 || inner.size() > 1 || inner.empty()) {
      // Broadcasting covers what a single matrix product does not.
      const std::string all = batch + rows + columns + inner;
      if (all.size() > ir::kMaxRank) n.unsupported(cat("an equation with ", all.size(), " letters"));
      Value* product = n.mul(spread(n, x, term, all), spread(n, y, right, all));
      std::vector<int64_t> axes;
      for (size_t i = 0; i < inner.size(); ++i) axes.push_back(static_cast<int64_t>(all.size() - inner.size() + i));
      x = axes.empty() ? product : n.reduce("reduce_sum", product, axes, false);
      term = batch + rows + columns;
      continue;
    }
    const std::string left_order = batch + (rows.empty() ? "" : rows) + inner;
    Value* left = spread(n, x, term, left_order);
    Value* second = spread(n, y, right, batch + inner + columns);
    if (rows.empty()) left = n.expand_dims(left, {static_cast<int64_t>(batch.size())});
    if (columns.empty()) second = n.expand_dims(second, {static_cast<int64_t>(batch.size() + 1)});
    x = n.matmul(left, second);
    std::vector<int64_t> gone;
    if (rows.empty()) gone.push_back(static_cast<int64_t>(batch.size()));
    if (columns.empty()) gone.push_back(static_cast<int64_t>(batch.size() + 1));
    x = n.squeeze(x, gone);
    term = batch + rows + columns;
  }
  x = sum_out(x, term, "");
  for (const char c : e.result)
    if (term.find(c) == std::string::npos) n.malformed(cat("the result has '", c, "', which no input has"));
  x = spread(n, x, term, e.result);
  n.set(0, x == n.in(0) ? n.unary("identity", x) : x);
}

void det(Node& n) {
  Value* x = n.in(0);
  const Shape& s = n.known_shape(x, "Det");
  const int r = s.rank();
  if (r < 2 || s[r - 1] != s[r - 2]) n.malformed(cat("the determinant of ", x->type));
  constexpr int64_t most = 6;
  const int64_t d = s[r - 1];
  if (d > most) n.unsupported(cat("the determinant of ", d, " x ", d, " matrices: expected at most ", most));
  const auto element = [&](int64_t i, int64_t j) {
    return n.squeeze(n.slice(n.slice(x, r - 2, i, i + 1), r - 1, j, j + 1), {r - 2, r - 1});
  };
  // By the first remaining row.
  const auto minor = [&](auto&& self, int64_t row, std::vector<int64_t> columns) -> Value* {
    if (columns.size() == 1) return element(row, columns[0]);
    Value* total = nullptr;
    for (size_t i = 0; i < columns.size(); ++i) {
      std::vector<int64_t> rest = columns;
      rest.erase(rest.begin() + static_cast<int64_t>(i));
      Value* term = n.mul(element(row, columns[i]), self(self, row + 1, rest));
      total = total == nullptr ? term : i % 2 == 0 ? n.add(total, term) : n.sub(total, term);
    }
    return total;
  };
  std::vector<int64_t> columns;
  for (int64_t i = 0; i < d; ++i) columns.push_back(i);
  n.set(0, minor(minor, 0, columns));
}

constexpr OperatorImport kLinearOperators[] = {
    {"MatMul", matmul}, {"Gemm", gemm}, {"MatMulInteger", matmul_integer}, {"Einsum", einsum}, {"Det", det},
};

}  // namespace

std::span<const OperatorImport> operators_linear() { return kLinearOperators; }

}  // namespace moka::import::onnx
