// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <dnnl.hpp>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "devices/cpu/common/activations.h"
#include "kernel/kernel.h"

/// Shared by the kernels that use oneDNN.
///
/// oneDNN can divide an operation among OpenMP threads. Moka does not use this: divide() cuts the operation into parts,
/// each part becomes a Launch (a primitive for one thread), and choose() makes tiles of them:
///
///   OneThread scope;
///   for (const Part& part : divide(x, l, y, l, groups, threads)) {
///     Launch& launch = launches.emplace_back(primitive_desc_of(part));
///     launch.in(DNNL_ARG_SRC, src_desc, call.arg_index("x"), input_of(part, x, l, groups).first);
///     launch.out(DNNL_ARG_DST, dst_desc, result_of(part, y, l).first);
///   }
///   KernelChoice c = choose("cpu.x.onednn", launches, m);
namespace moka::devices::cpu::onednn {

using Dims = dnnl::memory::dims;
using Desc = dnnl::memory::desc;
using kernel::Layout;

const dnnl::engine& engine();

/// While it lives, oneDNN uses no OpenMP threads when the current thread calls it.
class OneThread {
 public:
  OneThread();
  ~OneThread();
  OneThread(const OneThread&) = delete;

 private:
  int before_;
};

/// Describes a row-major fp32 tensor.
Desc row_major(const Dims& dims);
Desc strided(const Dims& dims, const Dims& strides);
Desc any(const Dims& dims);
/// Precondition: rank 3 to 5 unless row-major; block 8 or 16.
Desc describe(const ir::Shape& shape, kernel::Layout layout);
Dims dims_of(const ir::Shape& shape);

/// Appends the addend, if any, and as many epilogues as oneDNN supports, from the first on. Returns how many epilogues
/// it appended.
size_t append_epilogues(const kernel::MatchCall& m, dnnl::post_ops& to);
/// Makes `c` add the addend after its run. `c` must be complete, row-major, of one part and without epilogues.
void add_afterwards(kernel::KernelChoice& c, const kernel::MatchCall& m);
/// The addend alone, without the epilogues.
dnnl::post_ops without_epilogues(const kernel::MatchCall& m);
/// Attributes with user-managed scratch memory.
dnnl::primitive_attr attributes(const dnnl::post_ops& post = {});
/// Whether the implementation is a plain loop nest.
bool is_plain_loops(const dnnl::primitive_desc_base& pd);

/// A part of an operation: some of its images, or some of the channels of one image.
struct Part {
  /// channels are those of the result
  int64_t image = 0, images = 0, group = 0, groups = 0, channel = 0, channels = 0;
};
/// Divides an operation into at most `threads` parts. Each is a contiguous run of bytes in both layouts. `groups` is
/// the number of independent groups of channels; for pooling it is the number of channels.
std::vector<Part> divide(const ir::Shape& in, Layout in_layout, const ir::Shape& out, Layout out_layout, int64_t groups,
                         int threads);

/// A part's input or result, and the position of its first element in the whole.
struct Run {
  ir::Shape shape;
  int64_t first;
};
Run input_of(const Part& part, const ir::Shape& whole, Layout layout, int64_t groups);
Run result_of(const Part& part, const ir::Shape& whole, Layout layout);

/// A primitive for a part of an operation, and the source of each argument. `first` is the position of the part's first
/// element in the operation's tensor.
class Launch {
 public:
  explicit Launch(const dnnl::primitive_desc_base& pd) : primitive_(pd) {}
  void in(int id, const Desc& desc, int arg, int64_t first = 0);
  void out(int id, const Desc& desc, int64_t first = 0);
  /// A constant input, reordered once to `desc`. `plain` describes its row-major bytes.
  void packed(int id, const Desc& desc, int arg, const Desc& plain, int64_t first = 0);
  /// The primitive adds this input, which is copied to the result's memory before the run.
  void addend(int arg) { addend_ = arg; }

  /// oneDNN's post-ops turn NaN into numbers. So a run whose inputs are not finite uses the primitive that `make`
  /// makes, which has no post-ops but the addend's, and then applies `after` to the result.
  struct Unfused {
    std::function<dnnl::primitive_desc_base()> make;
    std::vector<Activation> after;
    ir::Shape shape;  ///< of this part's result
    Layout layout;
  };
  void unfused(Unfused u) { unfused_ = std::move(u); }

  /// Called while the choice is prepared, unless packed weights were found to be finite.
  using Inspect = std::function<Status(kernel::PrepareContext&)>;
  void inspect(Inspect f) { inspect_ = std::move(f); }

  enum class From : uint8_t { in, out, packed, scratch };
  struct Argument {
    int id = 0;
    Desc desc;
    From from = From::in;
    int index = 0;
    size_t offset = 0;  ///< bytes
    Desc plain;
  };
  const dnnl::primitive_desc_base& primitive() const { return primitive_; }
  const std::vector<Argument>& arguments() const { return arguments_; }
  int addend() const { return addend_; }
  const Unfused& unfused() const { return unfused_; }
  const Inspect& inspect() const { return inspect_; }

 private:
  dnnl::primitive_desc_base primitive_;
  std::vector<Argument> arguments_;
  int addend_ = -1;
  Unfused unfused_;
  Inspect inspect_;
};

/// A choice with kernel, note, tiles, thread_scratch, in_place, in_prepare_only, prepare and run set.
kernel::KernelChoice choose(std::string_view kernel, const std::vector<Launch>& parts, const kernel::MatchCall& call);

}  // namespace moka::devices::cpu::onednn
