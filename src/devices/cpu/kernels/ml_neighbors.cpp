// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "devices/cpu/kernels/family.h"
#include "devices/cpu/vector/doubles.h"
#include "devices/cpu/vector/gemm.h"

/// Nearest neighbors. Products in fp32 find the samples that may be among the nearest, with a bound on their errors,
/// and only the distances of those are summed in double, in the order of the reference. Results are the reference's
/// bits.
namespace moka::devices::cpu {

namespace {

struct Neighbor {
  double distance;
  int64_t sample;
  bool operator<(const Neighbor& o) const {
    return distance < o.distance || (distance == o.distance && sample < o.sample);
  }
};

/// A sample that may be among the nearest.
struct NeighborCandidate {
  int64_t sample;
  float least;  ///< its score is not below
};

constexpr int64_t kNeighborCandidates = 256;  // of a row, before their distances are computed

/// Samples around the mean of some of them. The score of a sample s for the row x is (|s|^2 - 2 x s) / 2, which orders
/// samples as their distances from x do.
struct NeighborIndex {
  int64_t count, depth, chunk;  ///< `chunk`: samples whose scores are computed at a time, whole panels
  const vector::Gemm* gemm;

  NeighborIndex(int64_t samples, int64_t dimensions) : count(samples), depth(dimensions), gemm(&vector::gemm()) {
    constexpr int64_t kChunkFloats = 32768;  // fits into a core's second cache
    chunk = std::clamp<int64_t>(kChunkFloats / depth, 1, 512) / gemm->panel * gemm->panel;
    chunk = std::max(chunk, gemm->panel);
  }
  int64_t padded() const { return vector::packed_count(*gemm, 1, count); }
  int64_t chunks() const { return (count + chunk - 1) / chunk; }
  // The parts of the packed memory: mean, half squares, the greatest norm of each chunk, panels.
  int64_t squares_at() const { return depth; }
  int64_t norms_at() const { return squares_at() + padded(); }
  int64_t panels_at() const { return (norms_at() + chunks() + 15) / 16 * 16; }
  size_t bytes() const {
    return static_cast<size_t>(panels_at() + vector::packed_count(*gemm, depth, count)) * sizeof(float);
  }

  void fill(const float* samples, float* to) const {
    constexpr int64_t kAveraged = 512;
    const int64_t step = std::max<int64_t>(count / kAveraged, 1), some = (count + step - 1) / step;
    std::vector<double> sums(static_cast<size_t>(depth));
    for (int64_t i = 0; i < count; i += step)
      for (int64_t j = 0; j < depth; j++) sums[static_cast<size_t>(j)] += static_cast<double>(samples[i * depth + j]);
    for (int64_t j = 0; j < depth; j++) {
      const double mean = sums[static_cast<size_t>(j)] / static_cast<double>(some);
      to[j] = std::isfinite(mean) ? static_cast<float>(mean) : 0.0F;
    }
    float* squares = to + squares_at();
    std::vector<float> moved(static_cast<size_t>(gemm->panel * depth));
    for (int64_t first = 0; first < count; first += gemm->panel) {
      const int64_t n = std::min(gemm->panel, count - first);
      for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < depth; j++)
          moved[static_cast<size_t>(i * depth + j)] = samples[(first + i) * depth + j] - to[j];
      gemm->pack(moved.data(), 1, depth, depth, n, to + panels_at() + first * depth, squares + first);
    }
    for (int64_t c = 0; c < chunks(); c++) {
      const int64_t end = std::min(count, (c + 1) * chunk);
      float most = 0;
      for (int64_t i = c * chunk; i < end; i++) {
        most = squares[i] <= most || std::isnan(most) ? most : squares[i];  // NaN stays
        squares[i] /= 2;
      }
      to[norms_at() + c] = std::sqrt(most);
    }
  }

  /// A bound on the error of a chunk's scores for a row of this norm. Not finite: there is none.
  float error(float row_norm, float chunk_norm) const {
    const double norms = static_cast<double>(row_norm) + static_cast<double>(chunk_norm), terms = depth + 8;
    const double bound = terms * (0x1p-24 * norms * norms + 1e-36 * (1 + norms));
    return norms < 1e15 ? static_cast<float>(bound) : std::numeric_limits<float>::infinity();
  }
};

/// The nearest samples of one row, found in parts.
class NearestOfRow {
 public:
  /// What each row needs of a thread's scratch.
  static size_t bytes(int64_t k) {
    const auto n = static_cast<size_t>(k);
    const size_t all = n * (sizeof(Neighbor) + sizeof(float)) + kNeighborCandidates * sizeof(NeighborCandidate);
    return (all + 63) / 64 * 64;
  }

  NearestOfRow(std::byte* memory, int64_t k, const double* x, const float* samples, int64_t depth)
      : k_(k),
        x_(x),
        samples_(samples),
        depth_(depth),
        nearest_(reinterpret_cast<Neighbor*>(memory)),
        candidates_(reinterpret_cast<NeighborCandidate*>(nearest_ + k)),
        most_(reinterpret_cast<float*>(candidates_ + kNeighborCandidates)) {}

  /// Takes samples from `first` on with these scores.
  void add(const float* scores, int64_t first, int64_t count, float error) {
    if (!(error < std::numeric_limits<float>::max())) {
      for (int64_t i = 0; i < count; i++) put({first + i, -std::numeric_limits<float>::infinity()});
      return;
    }
    const auto next = vector::double_loops().next_below;
    for (int64_t i = 0; i < count; i++) {
      if (bounds_ == k_ && (i = next(scores, i, count, bound(error))) == count) break;
      put({first + i, scores[i] - error});
      if (bounds_ == k_) std::pop_heap(most_, most_ + bounds_--);
      most_[bounds_++] = scores[i] + error;
      std::push_heap(most_, most_ + bounds_);
    }
  }

  /// The k nearest, in ascending order.
  const Neighbor* finish() {
    sum_distances();
    std::sort_heap(nearest_, nearest_ + found_);
    return nearest_;
  }

 private:
  /// Scores that are not below it cannot be among the k least.
  float bound(float error) const { return std::nextafter(most_[0] + error, std::numeric_limits<float>::infinity()); }

  void put(NeighborCandidate candidate) {
    if (waiting_ == kNeighborCandidates) sum_distances();
    candidates_[waiting_++] = candidate;
  }

  void sum_distances() {
    int64_t at[kNeighborCandidates];
    double distance[kNeighborCandidates];
    int64_t n = 0;
    for (int64_t i = 0; i < waiting_; i++)
      if (bounds_ < k_ || candidates_[i].least <= most_[0]) at[n++] = candidates_[i].sample;
    waiting_ = 0;
    vector::exact_double_loops().distances_to(x_, depth_, samples_, at, n, distance);
    for (int64_t i = 0; i < n; i++) {
      const double d = distance[i];
      const Neighbor neighbor{d == d ? d : std::numeric_limits<double>::infinity(), at[i]};
      if (found_ == k_) {
        if (!(neighbor < nearest_[0])) continue;
        std::pop_heap(nearest_, nearest_ + found_--);
      }
      nearest_[found_++] = neighbor;
      std::push_heap(nearest_, nearest_ + found_);
    }
  }

  int64_t k_;
  const double* x_;
  const float* samples_;
  int64_t depth_;
  Neighbor* nearest_;              ///< the nearest of those whose distances were computed: a heap
  NeighborCandidate* candidates_;  ///< whose distances were not
  float* most_;                    ///< what the k least scores do not exceed: a heap
  int64_t found_ = 0, waiting_ = 0, bounds_ = 0;
};

/// What a call does to its rows, in tiles.
struct NeighborRows {
  NeighborIndex index;
  int64_t rows, k, classes;
  bool inverse;
  size_t x, samples, labels;  ///< among the inputs
  std::shared_ptr<std::shared_ptr<const std::byte>> packed;

  // The samples are read once for all rows of a tile.
  int64_t tiles() const {
    const int64_t most = std::clamp<int64_t>(int64_t{16384} / k, 1, 8 * index.gemm->rows);
    return (rows + most - 1) / most;
  }
  int64_t together() const { return (rows + tiles() - 1) / tiles(); }
  // The parts of a thread's scratch: scores, rows around the mean with their norms, what is known of each row.
  size_t moved_at() const { return static_cast<size_t>(together() * index.chunk) * sizeof(float); }
  size_t memory_at() const {
    return (moved_at() + static_cast<size_t>(together() * (index.depth + 1)) * sizeof(float) + 63) / 64 * 64;
  }
  size_t scratch() const {
    return memory_at() + static_cast<size_t>(together()) * (NearestOfRow::bytes(k) + sizeof(NearestOfRow));
  }

  /// Writes the negative row around the mean. Returns its norm.
  float move(const double* row, const float* mean, float* to) const {
    double squares = 0;
    for (int64_t j = 0; j < index.depth; j++) {
      to[j] = static_cast<float>(static_cast<double>(mean[j]) - row[j]);
      squares += static_cast<double>(to[j]) * static_cast<double>(to[j]);
    }
    return static_cast<float>(std::sqrt(squares));
  }

  void vote(const Neighbor* near, const int64_t* classes_of, double* y) const {
    std::fill_n(y, classes, 0.0);
    const bool hit = near[0].distance == 0;
    double sum = 0;
    for (int64_t i = 0; i < k; i++) {
      const double weight = !inverse ? 1 : hit ? (near[i].distance == 0 ? 1 : 0) : 1 / std::sqrt(near[i].distance);
      y[classes_of[near[i].sample]] += weight;
      sum += weight;
    }
    for (int64_t i = 0; i < classes; i++) y[i] = sum > 0 ? y[i] / sum : 1.0 / static_cast<double>(classes);
  }

  void run(const KernelArgs& args, int64_t first, int64_t n) const {
    const int64_t depth = index.depth;
    const auto* from = reinterpret_cast<const float*>(packed->get());
    const double* asked = args.in[x].as<double>() + first * depth;
    std::byte* own = args.own(args.thread);
    auto* scores = reinterpret_cast<float*>(own);
    auto* moved = reinterpret_cast<float*>(own + moved_at());
    float* norms = moved + together() * depth;
    std::byte* memory = own + memory_at();
    const auto row_bytes = static_cast<int64_t>(NearestOfRow::bytes(k));
    auto* nearest = reinterpret_cast<NearestOfRow*>(memory + together() * row_bytes);
    for (int64_t r = 0; r < n; r++) {
      norms[r] = move(asked + r * depth, from, moved + r * depth);
      new (nearest + r) NearestOfRow(memory + r * row_bytes, k, asked + r * depth, args.in[samples].as<float>(), depth);
    }
    for (int64_t part = 0; part < index.chunks(); part++) {
      const int64_t begin = part * index.chunk, some = std::min(index.chunk, index.count - begin);
      index.gemm->multiply(moved, depth, from + index.panels_at() + begin * depth, n, some, depth, scores, index.chunk,
                           from + index.squares_at() + begin, false);
      for (int64_t r = 0; r < n; r++)
        nearest[r].add(scores + r * index.chunk, begin, some, index.error(norms[r], from[index.norms_at() + part]));
    }
    for (int64_t r = 0; r < n; r++)
      vote(nearest[r].finish(), args.in[labels].as<int64_t>(), args.out[0].as<double>() + (first + r) * classes);
  }
};

Match match_neighbors(const MatchCall& m) {
  const ir::TensorView& samples = *m.call.value("samples");
  const int64_t count = samples.shape[0], depth = samples.shape[1], classes = *m.call.integer("classes");
  const int64_t results = m.outputs[0].shape().count(), numbers = m.call.shape("x").count();
  if (results == 0 || numbers == 0 || classes == 0 || count == 0) return Match::no("an empty array");
  const int64_t rows = results / classes;
  if (numbers / rows != depth) return Match::no("an empty array");
  const int at = m.call.arg_index("samples");
  const NeighborRows calls{NeighborIndex(count, depth),
                           rows,
                           std::min(*m.call.integer("k"), count),
                           classes,
                           *m.call.text("weighting") == "inverse_distance",
                           static_cast<size_t>(m.call.arg_index("x")),
                           static_cast<size_t>(at),
                           static_cast<size_t>(m.call.arg_index("labels")),
                           std::make_shared<std::shared_ptr<const std::byte>>()};
  KernelChoice c;
  c.kernel = "cpu.ml.neighbors";
  const double distances = static_cast<double>(rows * count);
  c.cost = cost_of(m, 2 * distances * static_cast<double>(depth), 8 * distances);
  c.prepare = [calls, at](kernel::PrepareContext& context) -> Status {
    const NeighborIndex& index = calls.index;
    *calls.packed = MOKA_TRY(context.pack(at, cat("neighbors", index.gemm->panel), index.bytes(),
                                          [&](const ir::TensorView& value, std::byte* to) -> Status {
                                            index.fill(value.as<float>(), reinterpret_cast<float*>(to));
                                            return {};
                                          }));
    return {};
  };
  c.thread_scratch = calls.scratch();
  c.tiles = calls.tiles();
  c.run = [calls](const KernelArgs& args) -> Status {
    const int64_t together = calls.together();
    for (int64_t t = args.begin; t < args.end; t++)
      calls.run(args, t * together, std::min(together, calls.rows - t * together));
    return {};
  };
  return Match::yes(std::move(c));
}

}  // namespace

KernelFamily family_ml_neighbors() {
  static const KernelDef defs[] = {
      {.name = "cpu.ml.neighbors", .ops = {"ml_nearest_neighbors"}, .match = match_neighbors},
  };
  return {200, defs};
}

}  // namespace moka::devices::cpu
