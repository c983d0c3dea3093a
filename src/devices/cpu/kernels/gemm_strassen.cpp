// SPDX-License-Identifier: Apache-2.0
#include "devices/cpu/common/activations.h"
#include "devices/cpu/common/gemm_work.h"
#include "devices/cpu/kernels/family.h"
#include "devices/cpu/vector/strassen.h"
#include "kernel/parallel.h"

namespace moka::devices::cpu {

namespace {

using vector::kStrassenSums;
using vector::strassen;

constexpr int64_t kSumRows = 8;     // rows of sums that a thread computes at once
constexpr int kFewThreads = 4;      // threads per block up to which each one computes all sums itself
constexpr int64_t kMostAlone = 16;  // most rows of a block that are multiplied on their own

/// How a product is cut into quarters. Rows of x form blocks with an upper and a lower half, which share the middle row
/// when the number of rows is odd. Columns of the weights form pairs of adjacent panels, left and right. The depth is
/// divided into parts of two halves.
struct StrassenBlocking {
  ConstantProduct p;
  Panels panels;
  int64_t blocks = 1, parts = 1;
  int64_t packed_floats = 0;  ///< PackedPanels::scratch_floats()

  int64_t pairs() const { return panels.pairs; }
  int64_t panel() const { return panels.gemm->panel; }
  int64_t row(int64_t block) const { return p.rows * block / blocks; }
  int64_t half(int64_t rows) const { return (rows + 1) / 2; }
  int64_t most_rows() const { return half((p.rows + blocks - 1) / blocks); }
  int64_t begin(int64_t part) const { return p.depth / 2 * part / parts; }  ///< start of part `part` in the first half
  int64_t deep(int64_t part) const { return begin(part + 1) - begin(part); }
  int64_t most_deep() const { return (p.depth / 2 + parts - 1) / parts; }
  int64_t rest() const { return pairs() * 2 * panel(); }  ///< first column outside the pairs

  int64_t units() const { return pairs() + (rest() < p.made ? 1 : 0); }

  int64_t sums() const { return kStrassenSums * most_rows() * (p.depth / 2); }
  int64_t of_rows() const { return sums() + 2 * most_rows(); }  ///< sums and squared sizes
  /// Layout per thread: sums of quarters of the weights; results of rows that are multiplied alone; one unused row; a
  /// part of a pair of panels, as floats if they are packed as float16; a pair of panels, if they may be unpacked.
  int64_t right() const { return kStrassenSums * most_deep() * panel(); }
  int64_t kept() const { return (kMostAlone + 1) * 2 * panel(); }
  int64_t widened() const { return std::max(panels.as_half ? 4 * most_deep() * panel() : 0, packed_floats); }
};

/// A block of rows of one run; each thread may have its own.
struct Block {
  const StrassenBlocking* blocking;
  int64_t number = -1;  ///< none
  const PackedPanels* packed;
  const float *x, *bias, *addend;
  float *y, *sums, *squares;
  int64_t rows;
  int64_t alone[2 * kMostAlone];
  int64_t count;  ///< entries of `alone`
  bool is_whole;  ///< not cut into quarters, because too many rows would be multiplied alone

  void begin(const StrassenBlocking& of, int64_t block, const KernelArgs& args, const PackedPanels& of_weights,
             float* scratch) {
    blocking = &of;
    number = block;
    const int64_t first = of.row(block);
    rows = of.row(block + 1) - first;
    x = data_of(args, of.p.x) + first * of.p.depth;
    packed = &of_weights;
    bias = data_of(args, of.p.bias);
    addend = of.p.addend < 0 ? nullptr : data_of(args, of.p.addend) + first * of.p.made;
    y = args.out[0].as<float>() + first * of.p.made;
    sums = scratch;
    squares = scratch + of.sums();
    count = 0;
    is_whole = false;
  }

  int64_t half() const { return blocking->half(rows); }
  int64_t lower() const { return rows - half(); }  ///< the first row of the lower half
  float* left(int64_t part) const { return sums + kStrassenSums * half() * blocking->begin(part); }

  void add_rows(int64_t first, int64_t end) const {
    const int64_t depth = blocking->p.depth;
    for (int64_t i = first; i < end; i++) {
      squares[2 * i] = squares[2 * i + 1] = 0;
      for (int64_t part = 0; part < blocking->parts; part++) {
        const int64_t deep = blocking->deep(part);
        const float* from = x + i * depth + 2 * blocking->begin(part);
        strassen().left(from, from + lower() * depth, deep, deep, left(part) + i * deep, half() * deep,
                        squares + 2 * i);
      }
    }
  }

  /// Finds rows that would be added to a much larger row or to one with infinities. They are multiplied alone.
  void find_alone() {
    for (int64_t i = 0; i < half() && !is_whole; i++) {
      const float above = squares[2 * i], below = squares[2 * i + 1];
      if (are_alike(above, below)) continue;
      const bool both = !(above <= kLargeSquares && below <= kLargeSquares);
      is_whole = count + 2 > kMostAlone;
      if (both || above < below) alone[count++] = i;
      if (both || below <= above) alone[count++] = lower() + i;
    }
  }

  void copy_addend(int64_t column, int64_t n) const {
    if (addend == nullptr || addend == y) return;
    for (int64_t i = column; i < rows * blocking->p.made; i += blocking->p.made) std::copy_n(addend + i, n, y + i);
  }

  void multiply_whole(int64_t column, int64_t n, float* widened) const {
    copy_addend(column, n);
    packed->multiply(x, blocking->p.depth, column, rows, n, y + column, blocking->p.made,
                     bias == nullptr ? nullptr : bias + column, addend != nullptr, widened);
  }

  /// Multiplies the columns of a pair of panels, or the columns outside the pairs.
  void multiply(int64_t unit, float* scratch, std::span<const Activation> after) const {
    const int64_t panel = blocking->panel(), made = blocking->p.made, column = unit * 2 * panel,
                  n = std::min(2 * panel, made - column);
    float* const widened = scratch + blocking->right() + blocking->kept();
    PanelPair weights;
    if (unit < blocking->pairs() && !is_whole) weights = packed->pair(unit, widened + blocking->widened());
    if (weights.are_alike)
      multiply_pair(unit, weights, scratch);
    else
      multiply_whole(column, n, widened);
    if (!after.empty())
      for (int64_t i = 0; i < rows; i++) apply_all(after, y + i * made + column, n);
  }

  void multiply_pair(int64_t pair, const PanelPair& weights, float* scratch) const {
    const int64_t depth = blocking->p.depth, made = blocking->p.made;
    const int64_t panel = blocking->panel(), column = pair * 2 * panel;
    const float* added = bias == nullptr ? nullptr : bias + column;
    float* to = y + column;
    float *kept = scratch + blocking->right(), *widened = kept + blocking->kept();
    copy_addend(column, 2 * panel);
    for (int64_t i = 0; i < count; i++) {
      float* row = kept + i * 2 * panel;
      if (addend != nullptr) std::copy_n(to + alone[i] * made, 2 * panel, row);
      if (weights.halves != nullptr)
        packed->multiply(x + alone[i] * depth, depth, column, 1, 2 * panel, row, 2 * panel, added, addend != nullptr,
                         widened);
      else
        blocking->panels.gemm->multiply(x + alone[i] * depth, depth, weights.floats, 1, 2 * panel, depth, row,
                                        2 * panel, added, addend != nullptr);
    }
    vector::StrassenPart p{};
    p.rows = half();
    p.a_step = depth;
    p.a_lower = lower() * depth;
    const bool as_half = weights.halves != nullptr;
    const auto at = [&](int64_t from) {
      return as_half ? reinterpret_cast<const float*>(weights.halves + from) : weights.floats + from;
    };
    const int64_t floats_per_line = 16, per_line = as_half ? 2 * floats_per_line : floats_per_line;
    p.ahead_right = at(panel * depth) - at(0);
    p.t = scratch;
    p.c = to;
    p.c_step = made;
    p.c_lower = lower() * made;
    // The upper half writes the shared middle row. Rows that are alone are overwritten below.
    p.instead = half() == lower() ? nullptr : kept + kMostAlone * 2 * panel;
    for (int64_t part = 0; part < blocking->parts; part++) {
      const bool is_last = part + 1 == blocking->parts;
      p.depth = blocking->deep(part);
      p.a = x + 2 * blocking->begin(part);
      p.s = left(part);
      const int64_t from = 2 * blocking->begin(part) * panel, count = 2 * p.depth * panel;
      p.b = as_half ? widened : at(from);
      p.b_right = as_half ? count : panel * depth;
      p.halves = as_half ? weights.halves + from : nullptr;
      p.halves_right = as_half ? p.halves + panel * depth : nullptr;
      p.widened = widened;
      p.ahead = is_last ? at(2 * panel * depth) : at(from + count);
      p.lines =
          is_last && pair + 1 == blocking->pairs() ? 0 : 2 * blocking->deep(is_last ? 0 : part + 1) * panel / per_line;
      p.add = addend != nullptr || part > 0;
      p.bias = part == 0 ? added : nullptr;
      strassen().multiply(p);
    }
    for (int64_t i = 0; i < count; i++) std::copy_n(kept + i * 2 * panel, 2 * panel, to + alone[i] * made);
  }
};

Match match_strassen(const MatchCall& given, std::string_view name) {
  std::string refusal;
  const auto product = constant_product(given, refusal);
  if (!product) return Match::no(std::move(refusal));
  StrassenBlocking blocking;
  blocking.p = *product;
  if (blocking.p.depth % 2 != 0 || blocking.p.depth < 4) return Match::no("an odd depth");
  if (blocking.p.rows < 2 * vector::kStrassenRows) return Match::no("few rows");
  blocking.panels = given.asked ? halved_panels(given, blocking.p) : panels_of(given, blocking.p);
  if (blocking.pairs() == 0 || (!given.asked && !spares_products(blocking.p, blocking.p.rows, blocking.pairs())))
    return Match::no("sums that take longer than the products they save");
  blocking.blocks = (blocking.p.rows + kHalvedRows - 1) / kHalvedRows;
  blocking.parts = (blocking.p.depth / 2 + kHalvedDepth - 1) / kHalvedDepth;
  const double flops = blocking.p.flops() * 7 / 8;
  const MatchCall m = with_threads_for(given, flops);
  // With few threads each one computes the sums it reads, even if other threads compute the same ones. Where cores
  // share no cache, reading what another core wrote takes longer than computing it.
  const bool own = m.threads <= kFewThreads * blocking.blocks;
  KernelChoice c;
  c.kernel = name;
  c.note = blocking.panels.note();
  c.in_place = blocking.p.addend;
  c.internally_parallel = true;
  c.epilogues = m.epilogue.size();
  const auto packed = packed_panels(c, m, blocking.p, blocking.panels);
  blocking.packed_floats = packed->scratch_floats();
  const int64_t of_pair = blocking.right() + blocking.kept() + blocking.widened(),
                of_thread = of_pair + packed->pair_floats();
  c.scratch = own ? 0 : static_cast<size_t>(blocking.of_rows()) * sizeof(float);
  c.thread_scratch = static_cast<size_t>(of_thread + (own ? blocking.of_rows() : 0)) * sizeof(float);
  c.cost = cost_of(m, flops, traffic(m));
  c.facts = [blocking](kernel::Facts& facts) {
    facts.add("products", "7 of 8 quarters")
        .add("blocks of rows", blocking.blocks, " of up to ", kHalvedRows)
        .add("parts of the depth", blocking.parts, " of up to ", kHalvedDepth)
        .add("pairs of panels", blocking.pairs());
  };
  c.run = [=, threads = m.threads, after = activations_of(m.epilogue)](const KernelArgs& args) -> Status {
    const auto scratch_of = [&](int thread) { return reinterpret_cast<float*>(args.own(thread)); };
    Block blocks[kernel::kMostThreads];
    if (own) {
      kernel::parallel_for(threads, blocking.blocks * blocking.units(), [&](int64_t part, int thread) {
        Block& block = blocks[thread];
        float* const scratch = scratch_of(thread);
        if (const int64_t number = part / blocking.units(); block.number != number) {
          block.begin(blocking, number, args, *packed, scratch + of_thread);
          block.add_rows(0, block.half());
          block.find_alone();
        }
        block.multiply(part % blocking.units(), scratch, after);
      });
      return {};
    }
    for (int64_t number = 0; number < blocking.blocks; number++) {
      Block& block = blocks[0];
      block.begin(blocking, number, args, *packed, reinterpret_cast<float*>(args.scratch));
      const int64_t half = block.half();
      kernel::parallel_for(threads, (half + kSumRows - 1) / kSumRows, [&](int64_t part, int) {
        block.add_rows(part * kSumRows, std::min(half, (part + 1) * kSumRows));
      });
      block.find_alone();
      kernel::parallel_for(threads, blocking.units(),
                           [&](int64_t unit, int thread) { block.multiply(unit, scratch_of(thread), after); });
    }
    return {};
  };
  return Match::yes(std::move(c));
}

Match match_strassen_linear(const MatchCall& m) { return match_strassen(m, "cpu.linear.strassen"); }
Match match_strassen_matmul(const MatchCall& m) { return match_strassen(m, "cpu.matmul.strassen"); }

}  // namespace

KernelFamily family_gemm_strassen() {
  static const KernelDef defs[] = {{.name = "cpu.linear.strassen",
                                    .ops = {"linear"},
                                    .match = match_strassen_linear,
                                    .addend = true,
                                    .measured = true},
                                   {.name = "cpu.matmul.strassen",
                                    .ops = {"matmul"},
                                    .match = match_strassen_matmul,
                                    .addend = true,
                                    .measured = true}};
  return {130, defs};
}

}  // namespace moka::devices::cpu
