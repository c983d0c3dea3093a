#include "devices/cpu/kernels/activations.h"
#include "devices/cpu/kernels/families.h"
#include "devices/cpu/kernels/gemm_work.h"
#include "devices/cpu/vector/strassen.h"
#include "kernel/team.h"

namespace moka::devices::cpu {

namespace {

using vector::kStrassenSums;
using vector::strassen;

constexpr int64_t kShare = 8;       // rows of a quarter that a thread adds at once
constexpr int kFewThreads = 4;      // for each block
constexpr int64_t kMostAlone = 16;  // rows of x that are multiplied by themselves

/// Rows of x in blocks, each of an upper half and a lower one; where rows are odd, both have the one between them.
/// Columns of the weights in pairs of neighbouring panels, of which one is to the right of the other. Depth in parts,
/// each of two halves that follow one another.
struct Plan {
  ConstantProduct p;
  Panels panels;
  int64_t blocks = 1, parts = 1;

  int64_t pairs() const { return panels.pairs; }
  int64_t panel() const { return panels.gemm->panel; }
  int64_t row(int64_t block) const { return p.rows * block / blocks; }
  int64_t half(int64_t rows) const { return (rows + 1) / 2; }
  int64_t most_rows() const { return half((p.rows + blocks - 1) / blocks); }
  int64_t begin(int64_t part) const { return p.depth / 2 * part / parts; }  ///< of halves
  int64_t deep(int64_t part) const { return begin(part + 1) - begin(part); }
  int64_t most_deep() const { return (p.depth / 2 + parts - 1) / parts; }
  int64_t rest() const { return pairs() * 2 * panel(); }  ///< the first column that is in no pair

  int64_t units() const { return pairs() + (rest() < p.made ? 1 : 0); }

  int64_t sums() const { return kStrassenSums * most_rows() * (p.depth / 2); }
  int64_t of_rows() const { return sums() + 2 * most_rows(); }  ///< of sums and sizes
  /// Of a thread: sums of quarters of the weights, rows that are alone and one that nobody reads.
  int64_t right() const { return kStrassenSums * most_deep() * panel(); }
  int64_t kept() const { return (kMostAlone + 1) * 2 * panel(); }
};

/// A block of rows of one prediction, or of a thread's share of it.
struct Block {
  const Plan* plan;
  int64_t number = -1;  ///< none
  const float *x, *panels, *bias, *addend;
  float *y, *sums, *squares;
  int64_t rows;
  int64_t alone[2 * kMostAlone];
  int64_t count;  ///< of them
  bool is_whole;  ///< no halves: too many rows are alone

  void begin(const Plan& of, int64_t block, const KernelArgs& args, const PackedFloats& packed, float* scratch) {
    plan = &of;
    number = block;
    const int64_t first = of.row(block);
    rows = of.row(block + 1) - first;
    x = data_of(args, of.p.x) + first * of.p.depth;
    panels = packed.data();
    bias = data_of(args, of.p.bias);
    addend = of.p.addend < 0 ? nullptr : data_of(args, of.p.addend) + first * of.p.made;
    y = args.out[0].as<float>() + first * of.p.made;
    sums = scratch;
    squares = scratch + of.sums();
    count = 0;
    is_whole = false;
  }

  int64_t half() const { return plan->half(rows); }
  int64_t lower() const { return rows - half(); }  ///< the first row of the lower half
  float* left(int64_t part) const { return sums + kStrassenSums * half() * plan->begin(part); }

  void add_rows(int64_t first, int64_t end) const {
    const int64_t depth = plan->p.depth;
    for (int64_t i = first; i < end; i++) {
      squares[2 * i] = squares[2 * i + 1] = 0;
      for (int64_t part = 0; part < plan->parts; part++) {
        const int64_t deep = plan->deep(part);
        const float* from = x + i * depth + 2 * plan->begin(part);
        strassen().left(from, from + lower() * depth, deep, deep, left(part) + i * deep, half() * deep,
                        squares + 2 * i);
      }
    }
  }

  /// The rows that a much larger one, or one with infinities, is added to.
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
    for (int64_t i = column; i < rows * plan->p.made; i += plan->p.made) std::copy_n(addend + i, n, y + i);
  }

  void multiply_whole(int64_t column, int64_t n) const {
    const int64_t depth = plan->p.depth, made = plan->p.made;
    float* to = y + column;
    copy_addend(column, n);
    plan->panels.gemm->multiply(x, depth, panels + column * depth, rows, n, depth, to, made,
                                bias == nullptr ? nullptr : bias + column, addend != nullptr);
  }

  /// Columns of a pair, or those in none.
  void multiply(int64_t unit, float* scratch, std::span<const Activation> after) const {
    const int64_t panel = plan->panel(), made = plan->p.made, column = unit * 2 * panel,
                  n = std::min(2 * panel, made - column);
    const float* alike = panels + plan->panels.floats(plan->p);
    if (unit == plan->pairs() || is_whole || alike[unit] == 0)
      multiply_whole(column, n);
    else
      multiply_pair(unit, scratch);
    if (!after.empty())
      for (int64_t i = 0; i < rows; i++) apply_all(after, y + i * made + column, n);
  }

  void multiply_pair(int64_t pair, float* scratch) const {
    const int64_t depth = plan->p.depth, made = plan->p.made;
    const int64_t panel = plan->panel(), column = pair * 2 * panel;
    const float *first = panels + column * depth, *added = bias == nullptr ? nullptr : bias + column;
    float* to = y + column;
    float* kept = scratch + plan->right();
    copy_addend(column, 2 * panel);
    for (int64_t i = 0; i < count; i++) {
      float* row = kept + i * 2 * panel;
      if (addend != nullptr) std::copy_n(to + alone[i] * made, 2 * panel, row);
      plan->panels.gemm->multiply(x + alone[i] * depth, depth, first, 1, 2 * panel, depth, row, 2 * panel, added,
                                  addend != nullptr);
    }
    vector::StrassenPart p{};
    p.rows = half();
    p.a_step = depth;
    p.a_lower = lower() * depth;
    p.b_right = p.ahead_right = panel * depth;
    p.t = scratch;
    p.c = to;
    p.c_step = made;
    p.c_lower = lower() * made;
    // The row between the halves is the upper one's. Those that are alone are written again.
    p.instead = half() == lower() ? nullptr : kept + kMostAlone * 2 * panel;
    for (int64_t part = 0; part < plan->parts; part++) {
      const bool is_last = part + 1 == plan->parts;
      p.depth = plan->deep(part);
      p.a = x + 2 * plan->begin(part);
      p.s = left(part);
      p.b = first + 2 * plan->begin(part) * panel;
      p.ahead = is_last ? first + 2 * panel * depth : p.b + 2 * p.depth * panel;
      p.lines = is_last && pair + 1 == plan->pairs() ? 0 : 2 * plan->deep(is_last ? 0 : part + 1) * panel / 16;
      p.add = addend != nullptr || part > 0;
      p.bias = part == 0 ? added : nullptr;
      strassen().multiply(p);
    }
    for (int64_t i = 0; i < count; i++) std::copy_n(kept + i * 2 * panel, 2 * panel, to + alone[i] * made);
  }
};

Match match(const MatchCall& given, std::string_view name) {
  std::string refusal;
  const auto product = constant_product(given, refusal);
  if (!product) return Match::no(std::move(refusal));
  Plan plan;
  plan.p = *product;
  if (plan.p.depth % 2 != 0 || plan.p.depth < 4) return Match::no("an odd depth");
  if (plan.p.rows < 2 * vector::kStrassenRows) return Match::no("few rows");
  plan.panels = given.asked ? halved_panels(plan.p) : panels_of(plan.p);
  if (plan.pairs() == 0 || (!given.asked && !spares_products(plan.p, plan.p.rows, plan.pairs())))
    return Match::no("sums take longer than the products they spare");
  plan.blocks = (plan.p.rows + kHalvedRows - 1) / kHalvedRows;
  plan.parts = (plan.p.depth / 2 + kHalvedDepth - 1) / kHalvedDepth;
  const double flops = plan.p.flops() * 7 / 8;
  const MatchCall m = with_threads_for(given, flops);
  // Each thread adds up the rows that it multiplies, even if others do so too: where cores share no cache, what another
  // one has written comes later than the sums are made.
  const bool own = m.threads <= kFewThreads * plan.blocks;
  KernelChoice c;
  c.kernel = name;
  c.in_place = plan.p.addend;
  c.shares = true;
  c.epilogues = m.epilogue.size();
  const int64_t of_pair = plan.right() + plan.kept();
  c.scratch = own ? 0 : static_cast<size_t>(plan.of_rows()) * sizeof(float);
  c.thread_scratch = static_cast<size_t>(of_pair + (own ? plan.of_rows() : 0)) * sizeof(float);
  c.cost = cost_of(m, flops, traffic(m));
  const auto packed = packed_panels(c, m, plan.p, plan.panels);
  c.run = [=, threads = m.threads, after = activations_of(m.epilogue)](const KernelArgs& args) -> Status {
    const auto scratch_of = [&](int thread) { return reinterpret_cast<float*>(args.own(thread)); };
    Block blocks[kernel::kMostThreads];
    if (own) {
      kernel::share(threads, plan.blocks * plan.units(), [&](int64_t part, int thread) {
        Block& block = blocks[thread];
        float* const scratch = scratch_of(thread);
        if (const int64_t number = part / plan.units(); block.number != number) {
          block.begin(plan, number, args, *packed, scratch + of_pair);
          block.add_rows(0, block.half());
          block.find_alone();
        }
        block.multiply(part % plan.units(), scratch, after);
      });
      return {};
    }
    for (int64_t number = 0; number < plan.blocks; number++) {
      Block& block = blocks[0];
      block.begin(plan, number, args, *packed, reinterpret_cast<float*>(args.scratch));
      const int64_t half = block.half();
      kernel::share(threads, (half + kShare - 1) / kShare,
                    [&](int64_t part, int) { block.add_rows(part * kShare, std::min(half, (part + 1) * kShare)); });
      block.find_alone();
      kernel::share(threads, plan.units(),
                    [&](int64_t unit, int thread) { block.multiply(unit, scratch_of(thread), after); });
    }
    return {};
  };
  return Match::yes(std::move(c));
}

Match match_linear(const MatchCall& m) { return match(m, "cpu.linear.strassen"); }
Match match_matmul(const MatchCall& m) { return match(m, "cpu.matmul.strassen"); }

}  // namespace

std::span<const KernelDef> strassen_kernels() {
  static const KernelDef defs[] = {{"cpu.linear.strassen", {"linear"}, match_linear, true, true},
                                   {"cpu.matmul.strassen", {"matmul"}, match_matmul, true, true}};
  return defs;
}

}  // namespace moka::devices::cpu
