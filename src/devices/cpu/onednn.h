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
using kernel::Layout;

const dnnl::engine& engine();

/// Keeps oneDNN from making OpenMP's threads on this thread while it lives: an operation is divided into primitives of
/// one thread each, which Moka's own threads run.
class OneThread {
 public:
  OneThread();
  ~OneThread();
  OneThread(const OneThread&) = delete;

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
/// Makes `c`, of one part and complete but for this, add the addend after it has run, row-major and without epilogues.
void add_afterwards(kernel::KernelChoice& c, const kernel::MatchCall& m);
/// Attributes with user-managed scratch memory.
dnnl::primitive_attr attributes(const dnnl::post_ops& post = {});
/// Whether the implementation is a plain loop nest.
bool is_plain_loops(const dnnl::primitive_desc_base& pd);

/// What a primitive does of an operation: some of its images, or some of the channels of one.
struct Part {
  int64_t image = 0, images = 0, group = 0, groups = 0, channel = 0, channels = 0;  ///< channels of the result
};
/// Parts for as many of `threads` as there is work for. Each is a run of the data's bytes in both layouts.
/// `groups` of channels that do not mix; pooling has as many as channels.
std::vector<Part> divide(const ir::Shape& in, Layout in_layout, const ir::Shape& out, Layout out_layout, int64_t groups,
                         int threads);

/// A part's input or result, and which element of the whole is its first.
struct Run {
  ir::Shape shape;
  int64_t first;
};
Run input_of(const Part& part, const ir::Shape& whole, Layout layout, int64_t groups);
Run result_of(const Part& part, const ir::Shape& whole, Layout layout);

/// A primitive, of a part of an operation, and where each of its arguments comes from. `first`: the element of the
/// operation's data that is the first one of the part's.
class Launch {
 public:
  explicit Launch(const dnnl::primitive_desc_base& pd) : primitive_(pd) {}
  void in(int id, const Desc& desc, int arg, int64_t first = 0);
  void out(int id, const Desc& desc, int64_t first = 0);
  /// A constant input, reordered once from `plain` (how its row-major bytes are to be read) to `desc`.
  void packed(int id, const Desc& desc, int arg, const Desc& plain, int64_t first = 0);
  /// The primitive adds this input, which it finds where its result goes.
  void addend(int arg) { addend_ = arg; }

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

 private:
  dnnl::primitive_desc_base primitive_;
  std::vector<Argument> arguments_;
  int addend_ = -1;
};

/// A choice with kernel, note, tiles, thread_scratch, in_place, in_prepare_only, prepare and run set.
kernel::KernelChoice choose(std::string_view kernel, const std::vector<Launch>& parts, const kernel::MatchCall& call);

}  // namespace moka::devices::cpu::onednn
