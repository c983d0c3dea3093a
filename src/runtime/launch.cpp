#include "runtime/launch.h"

#include <omp.h>

#include <algorithm>
#include <array>
#include <atomic>

#include "kernel/epilogue.h"
#include "kernel/layout.h"
#include "plan/team.h"

namespace moka::runtime {

namespace {

constexpr int kMostThreads = 64, kPartsOfThread = 4;  // of one step

struct alignas(64) Counter {
  std::atomic<int64_t> next;
};

Status run_tiles(const kernel::KernelChoice& c, const kernel::KernelArgs& whole, int threads) {
  if (c.tiles <= 1 || threads <= 1 || c.own_threads) return c.run(whole);
  Status first;
  const int64_t parts = std::min<int64_t>(c.tiles, threads * kPartsOfThread);
  threads = static_cast<int>(std::min<int64_t>({threads, parts, kMostThreads}));
  // Each thread begins with the same share of every step, whose data is in its caches, and then helps the others.
  std::array<Counter, kMostThreads> shares;
  for (int t = 0; t < threads; t++) shares[static_cast<size_t>(t)].next = parts * t / threads;
  plan::spread_team(threads);
#pragma omp parallel num_threads(threads)
  {
    const int self = omp_get_thread_num();
    for (int other = 0; other < threads; other++) {
      const int from = (self + other) % threads;
      const int64_t end = parts * (from + 1) / threads;
      for (int64_t p; (p = shares[static_cast<size_t>(from)].next.fetch_add(1, std::memory_order_relaxed)) < end;) {
        kernel::KernelArgs part = whole;
        part.begin = c.tiles * p / parts;
        part.end = c.tiles * (p + 1) / parts;
        part.thread = self;
        Status s = c.run(part);
        if (!s.ok()) {
#pragma omp critical(moka_first_error)
          if (first.ok()) first = std::move(s);
        }
      }
    }
  }
  return first;
}

}  // namespace

Status launch(const kernel::KernelChoice& choice, const kernel::KernelArgs& whole, int threads,
              std::span<const ir::Epilogue> epilogue) {
  MOKA_TRY(run_tiles(choice, whole, threads));
  if (epilogue.size() > choice.epilogues) kernel::apply_epilogues(epilogue.subspan(choice.epilogues), whole.out[0]);
  return {};
}

void launch_conversion(const ir::TensorView& in, kernel::Layout from, const ir::TensorView& out, kernel::Layout to,
                       int threads) {
  const int64_t tiles = kernel::convert_tiles(in.shape, from, to);
  if (threads == 1 || tiles == 1) return kernel::convert_layout(in, from, out, to, 0, tiles);
#pragma omp parallel for num_threads(threads)
  for (int64_t t = 0; t < tiles; t++) kernel::convert_layout(in, from, out, to, t, t + 1);
}

}  // namespace moka::runtime
