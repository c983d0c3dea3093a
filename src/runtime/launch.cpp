// SPDX-License-Identifier: Apache-2.0
#include "runtime/launch.h"

#include <algorithm>
#include <atomic>

#include "kernel/epilogue.h"
#include "kernel/layout.h"
#include "kernel/parallel.h"

namespace moka::runtime {

namespace {

constexpr int kPartsOfThread = 4;  // of one step

Status run_tiles(const kernel::KernelChoice& c, const kernel::KernelArgs& whole, int threads, int64_t parts) {
  if (c.tiles <= 1 || threads <= 1) return c.run(whole);
  Status first;
  std::atomic<bool> failed{false};
  parts = std::min(parts, c.tiles);
  kernel::parallel_for(threads, parts, [&](int64_t p, int thread) {
    kernel::KernelArgs part = whole;
    part.begin = c.tiles * p / parts;
    part.end = c.tiles * (p + 1) / parts;
    part.thread = thread;
    if (Status s = c.run(part); !s.ok() && !failed.exchange(true)) first = std::move(s);
  });
  return first;
}

}  // namespace

Status launch(const kernel::KernelChoice& choice, const kernel::KernelArgs& whole, int threads,
              std::span<const ir::Epilogue> epilogue, bool in_few_parts) {
  MOKA_TRY(run_tiles(choice, whole, threads, in_few_parts ? threads : threads * kPartsOfThread));
  if (epilogue.size() > choice.epilogues) kernel::apply_epilogues(epilogue.subspan(choice.epilogues), whole.out[0]);
  return {};
}

void launch_conversion(const ir::TensorView& in, kernel::Layout from, const ir::TensorView& out, kernel::Layout to,
                       int threads) {
  const int64_t tiles = kernel::convert_tiles(in.shape, from, to);
  const int64_t parts = std::min<int64_t>(tiles, threads * kPartsOfThread);
  kernel::parallel_for(threads, parts, [&](int64_t p, int) {
    kernel::convert_layout(in, from, out, to, tiles * p / parts, tiles * (p + 1) / parts);
  });
}

}  // namespace moka::runtime
