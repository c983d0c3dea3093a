#pragma once

#include <dnnl.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kernel/kernel.h"

/// What kernels that oneDNN runs share.
namespace moka::devices::cpu::onednn {

using Dims = dnnl::memory::dims;
using Desc = dnnl::memory::desc;

const dnnl::engine& engine();

/// Makes oneDNN and OpenMP use `threads` on this thread while it lives.
class ThreadScope {
 public:
  explicit ThreadScope(int threads);
  ~ThreadScope();
  ThreadScope(const ThreadScope&) = delete;

 private:
  int before_;
};

/// fp32.
Desc row_major(const Dims& dims);
Desc strided(const Dims& dims, const Dims& strides);
Desc any(const Dims& dims);
/// Precondition: rank 3 to 5 unless row-major; block 8 or 16.
Desc describe(const ir::Shape& shape, kernel::Layout layout);
Dims dims_of(const ir::Shape& shape);

/// Appends the addend, if there is one, and the epilogues that oneDNN has, from the first; returns how many of these.
size_t append_epilogues(const kernel::MatchCall& m, dnnl::post_ops& to);
/// Makes `c`, complete but for this, read the addend: `fused` with what append_epilogues made, else after it has run,
/// row-major and without epilogues.
void take_addend(kernel::KernelChoice& c, const kernel::MatchCall& m, bool fused);
/// Attributes with user-managed scratch memory.
dnnl::primitive_attr attributes(const dnnl::post_ops& post = {});
/// Whether the implementation is a plain loop nest.
bool is_plain_loops(const dnnl::primitive_desc_base& pd);

/// A primitive and where each of its arguments comes from.
class Launch {
 public:
  void in(int id, const Desc& desc, int arg);
  void out(int id, const Desc& desc, int output = 0);
  /// A constant input, reordered once from `plain` (how its row-major bytes are to be read) to `desc`.
  void packed(int id, const Desc& desc, int arg, const Desc& plain);
  /// A choice with kernel, note, scratch, in_prepare_only, own_threads, prepare and run set.
  kernel::KernelChoice choose(std::string_view kernel, const dnnl::primitive_desc_base& pd,
                              const kernel::MatchCall& call) const;

  enum class From : uint8_t { in, out, packed, scratch };
  struct Argument {
    int id = 0;
    Desc desc;
    From from = From::in;
    int index = 0;
    Desc plain;
  };

 private:
  std::vector<Argument> arguments_;
};

}  // namespace moka::devices::cpu::onednn
