// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <cmath>

#include "devices/cpu/kernels/family.h"
#include "devices/cpu/vector/doubles.h"

/// Products and distances of rows with constant vectors, in double: linear models and support vector machines. The
/// constant vectors are the columns of a packed matrix, so that several are summed at once and each sum keeps the order
/// of the reference.
namespace moka::devices::cpu {

namespace {

constexpr int64_t kVectorRows = 32;    // rows per tile
constexpr int64_t kRowElements = 512;  // elements per tile and lane of a single row; takes microseconds

/// Rows of x and their length.
struct VectorRows {
  int64_t count, length;
};

/// `columns`: the number of outputs per row.
std::optional<VectorRows> rows_of(const MatchCall& m, int64_t columns) {
  const int64_t y = m.outputs[0].shape().count(), x = m.call.shape("x").count();
  if (y == 0 || x == 0 || columns == 0) return std::nullopt;
  return VectorRows{y / columns, x / (y / columns)};
}

using PackedVectors = std::shared_ptr<std::shared_ptr<const std::byte>>;
const double* vectors_of(const PackedVectors& p) { return reinterpret_cast<const double*>(p->get()); }
size_t packed_bytes(int64_t depth, int64_t columns) {
  return static_cast<size_t>(vector::groups_of(columns) * vector::kColumns * depth) * sizeof(double);
}
/// The position of entry `k` of column `i`.
size_t packed_at(int64_t depth, int64_t k, int64_t i) {
  return static_cast<size_t>((i / vector::kColumns * depth + k) * vector::kColumns + i % vector::kColumns);
}

/// Makes `c` call `run(first row, rows, thread's scratch)` for tiles of rows.
template <class Run>
void tile(KernelChoice& c, int64_t rows, Run run) {
  c.tiles = (rows + kVectorRows - 1) / kVectorRows;
  c.run = [rows, run](const KernelArgs& args) -> Status {
    for (int64_t t = args.begin; t < args.end; t++)
      run(args, t * kVectorRows, std::min(kVectorRows, rows - t * kVectorRows));
    return {};
  };
}

double sums_cost(const MatchCall& m, const VectorRows& rows, int64_t columns) {
  const double sums = static_cast<double>(rows.count * columns);
  return cost_of(m, 4 * sums * static_cast<double>(rows.length), 16 * sums);
}

Match match_vectors_linear(const MatchCall& m) {
  const ir::TensorView& w = *m.call.value("weights");
  const int64_t columns = w.shape[0], depth = w.shape[1];
  const auto rows = rows_of(m, columns);
  if (!rows || rows->length != depth) return Match::no("an empty array");
  KernelChoice c;
  c.kernel = "cpu.ml.linear";
  c.cost = sums_cost(m, *rows, columns);
  const int weights = m.call.arg_index("weights"), offsets = m.call.arg_index("offset");
  const auto x_at = static_cast<size_t>(m.call.arg_index("x")), offset_at = static_cast<size_t>(offsets);
  constexpr int64_t kFew = 8;  // number of columns that would waste too much of a group
  const bool few = columns < kFew;
  auto packed = std::make_shared<std::shared_ptr<const std::byte>>();
  if (!few) {
    c.in_prepare_only.resize(m.call.all_args().size());
    c.in_prepare_only[static_cast<size_t>(weights)] = true;
    c.prepare = [packed, weights, columns, depth](kernel::PrepareContext& context) -> Status {
      *packed = MOKA_TRY(context.pack(weights, "columns", packed_bytes(depth, columns),
                                      [&](const ir::TensorView& value, std::byte* to) -> Status {
                                        auto* p = reinterpret_cast<double*>(to);
                                        std::fill_n(p, packed_bytes(depth, columns) / sizeof(double), 0.0);
                                        for (int64_t i = 0; i < columns; i++)
                                          for (int64_t k = 0; k < depth; k++)
                                            p[packed_at(depth, k, i)] = value.as<double>()[i * depth + k];
                                        return {};
                                      }));
      return {};
    };
  }
  tile(c, rows->count,
       [=, weights_at = static_cast<size_t>(weights)](const KernelArgs& args, int64_t first, int64_t n) {
         const vector::DoubleLoops& loops = vector::double_loops();
         const double* x = args.in[x_at].as<double>() + first * depth;
         const double* offset = args.in[offset_at].as<double>();
         double* y = args.out[0].as<double>() + first * columns;
         if (few)
           loops.dots(x, n, depth, args.in[weights_at].as<double>(), columns, offset, y);
         else
           loops.products(x, n, depth, vectors_of(packed), columns, offset, y);
       });
  return Match::yes(std::move(c));
}

enum class KernelKind : uint8_t { linear, rbf, poly, sigmoid };

/// The products of rows with support vectors, which are stored sparsely in the model and packed densely.
struct SupportVectors {
  KernelKind kind;
  double gamma, c, degree;
  int64_t depth, vectors;
  int values, columns, begin;  ///< of the sparse vectors, among the inputs
  size_t x;
  /// The last bit may decide votes between classes. A single row of a classifier therefore uses the arithmetic of the
  /// reference: sums without fused multiply-adds, and the C library's exponentials.
  bool exact;
  PackedVectors packed = std::make_shared<std::shared_ptr<const std::byte>>();

  Status pack(kernel::PrepareContext& context) const;
  /// `n` rows from `first` on with `count` vectors from `from_vector` on.
  void compute(const KernelArgs& args, int64_t first, int64_t n, int64_t from_vector, int64_t count) const;
};

Status SupportVectors::pack(kernel::PrepareContext& context) const {
  const ir::TensorView at = MOKA_TRY(context.constant(columns)), from = MOKA_TRY(context.constant(begin));
  const std::string key = cat("columns", depth, " ", content_key(std::array{at, from}));
  *packed = MOKA_TRY(context.pack(values, key, packed_bytes(depth, vectors),
                                  [&](const ir::TensorView& value, std::byte* to) -> Status {
                                    auto* p = reinterpret_cast<double*>(to);
                                    std::fill_n(p, packed_bytes(depth, vectors) / sizeof(double), 0.0);
                                    for (int64_t i = 0; i < vectors; i++)
                                      for (int64_t k = from.as<int64_t>()[i]; k < from.as<int64_t>()[i + 1]; k++)
                                        p[packed_at(depth, at.as<int64_t>()[k], i)] = value.as<double>()[k];
                                    return {};
                                  }));
  return {};
}

void SupportVectors::compute(const KernelArgs& args, int64_t first, int64_t n, int64_t from_vector,
                             int64_t count) const {
  const vector::DoubleLoops& loops = exact ? vector::exact_double_loops() : vector::double_loops();
  const double* rows = args.in[x].as<double>() + first * depth;
  double* y = args.out[0].as<double>() + first * vectors + from_vector;
  const double* w = vectors_of(packed) + from_vector * depth;
  if (kind == KernelKind::rbf) {
    loops.distances(rows, n, depth, w, count, y);
    if (exact)
      for (int64_t i = 0; i < count; i++) y[i] = std::exp(-gamma * y[i]);
    else
      loops.exponentials(y, n * count, -gamma);
    return;
  }
  loops.products(rows, n, depth, w, count, nullptr, y);
  const int64_t* from = args.in[static_cast<size_t>(begin)].as<int64_t>() + from_vector;
  const int64_t* at = args.in[static_cast<size_t>(columns)].as<int64_t>();
  const double* value = args.in[static_cast<size_t>(values)].as<double>();
  for (int64_t r = 0; r < n; r++) {
    const double* row = rows + r * depth;
    const bool finite = std::all_of(row, row + depth, [](double v) { return std::isfinite(v); });
    for (int64_t i = 0; i < count; i++) {
      double& to = y[r * count + i];
      if (!finite) {  // zeros that a vector does not store must not be multiplied
        to = 0;
        for (int64_t k = from[i]; k < from[i + 1]; k++) to += row[at[k]] * value[k];
      }
      if (kind == KernelKind::poly) to = std::pow(gamma * to + c, degree);
      if (kind == KernelKind::sigmoid) to = std::tanh(gamma * to + c);
    }
  }
}

Match match_svm(const MatchCall& m) {
  const int64_t vectors = m.call.value("row_begin")->count() - 1, stored = m.call.value("values")->count();
  const auto rows = rows_of(m, vectors);
  if (!rows) return Match::no("an empty array");
  constexpr int64_t kDensest = 4;  // limit of elements per element that the sparse vectors store
  if (rows->length * vectors > kDensest * std::max<int64_t>(stored, 1)) return Match::no("sparse support vectors");
  const std::string_view name = *m.call.text("kernel");
  const SupportVectors svm{name == "rbf"      ? KernelKind::rbf
                           : name == "poly"   ? KernelKind::poly
                           : name == "linear" ? KernelKind::linear
                                              : KernelKind::sigmoid,
                           *m.call.number("gamma"),
                           *m.call.number("c"),
                           static_cast<double>(*m.call.integer("degree")),
                           rows->length,
                           vectors,
                           m.call.arg_index("values"),
                           m.call.arg_index("columns"),
                           m.call.arg_index("row_begin"),
                           static_cast<size_t>(m.call.arg_index("x")),
                           rows->count == 1 && *m.call.flag("exact")};
  KernelChoice c;
  c.kernel = "cpu.ml.svm";
  c.cost = sums_cost(m, *rows, vectors);
  c.prepare = [svm](kernel::PrepareContext& context) { return svm.pack(context); };
  if (rows->count > 1) {
    tile(c, rows->count,
         [svm](const KernelArgs& args, int64_t first, int64_t n) { svm.compute(args, first, n, 0, svm.vectors); });
    return Match::yes(std::move(c));
  }
  // Threads divide the vectors of a single row.
  const int64_t together = std::max<int64_t>(kRowElements / svm.depth, 1) * vector::kColumns;
  c.tiles = (vectors + together - 1) / together;
  c.run = [svm, together](const KernelArgs& args) -> Status {
    const int64_t first = args.begin * together;
    svm.compute(args, 0, 1, first, std::min(args.end * together, svm.vectors) - first);
    return {};
  };
  return Match::yes(std::move(c));
}

}  // namespace

KernelFamily family_ml_vectors() {
  static const KernelDef defs[] = {
      {.name = "cpu.ml.linear", .ops = {"ml_linear"}, .match = match_vectors_linear},
      {.name = "cpu.ml.svm", .ops = {"ml_svm_kernel"}, .match = match_svm},
  };
  return {200, defs};
}

}  // namespace moka::devices::cpu
