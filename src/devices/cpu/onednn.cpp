#include "devices/cpu/onednn.h"

#include <omp.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <mutex>

#include "devices/cpu/kernels/common.h"
#include "devices/cpu/vector/loops.h"

namespace moka::devices::cpu::onednn {

using dnnl::algorithm;
using kernel::KernelArgs;
using kernel::Layout;
using tag = dnnl::memory::format_tag;

namespace {

constexpr auto kF32 = dnnl::memory::data_type::f32;
constexpr size_t kMaxArguments = 8;

std::string key_of(const Desc& plain, const Desc& packed) {
  auto text = [](const Desc& d) {
    const dnnl_memory_desc_t& m = d.data;
    std::string s;
    for (int i = 0; i < m.ndims; i++)
      s += cat(m.dims[i], "/", m.padded_dims[i], "/",
               m.format_kind == dnnl_blocked ? m.format_desc.blocking.strides[i] : -1, ",");
    if (m.format_kind == dnnl_blocked) {
      const auto& b = m.format_desc.blocking;
      for (int i = 0; i < b.inner_nblks; i++) s += cat(b.inner_idxs[i], "b", b.inner_blks[i], ",");
    } else {
      // An opaque format: its description decides it.
      const auto* raw = reinterpret_cast<const unsigned char*>(&m.format_desc);
      for (size_t i = 0; i < sizeof(m.format_desc); i++) s += cat(static_cast<int>(raw[i]), ".");
    }
    return s;
  };
  return cat("onednn ", text(plain), " to ", text(packed));
}

Error failed(std::string_view what, dnnl_status_t status) {
  return fail(ErrorCode::internal, "oneDNN ", what, ": status ", static_cast<int>(status));
}

/// A primitive that many threads may run at once. Memory objects are made when more runs overlap than ever before, and
/// kept; a run prefers those that already point where it wants.
class Shared {
 public:
  explicit Shared(const Launch& launch)
      : arguments(launch.arguments()), pd(launch.primitive()), addend(launch.addend()) {
    const Desc scratch = pd.query_md(dnnl::query::scratchpad_md, 0);
    if ((scratch_bytes = scratch.get_size()) > 0)
      arguments.push_back({DNNL_ARG_SCRATCHPAD, scratch, Launch::From::scratch, 0, 0, {}});
  }

  std::vector<Launch::Argument> arguments;
  std::vector<std::shared_ptr<const std::byte>> packed;  // parallel to arguments
  dnnl::primitive_desc_base pd;
  dnnl::primitive primitive;
  size_t scratch_bytes = 0;
  int addend = -1;

  Status prepare(kernel::PrepareContext& context) {
    OneThread scope;
    try {
      primitive = dnnl::primitive(pd.get());
      packed.resize(arguments.size());
      for (size_t i = 0; i < arguments.size(); i++) {
        const Launch::Argument& a = arguments[i];
        if (a.from != Launch::From::packed) continue;
        auto reorder = [&](const ir::TensorView& value, std::byte* to) -> Status {
          dnnl::memory from(a.plain, engine(), value.as<std::byte>() + a.offset), into(a.desc, engine(), to);
          dnnl::stream stream(engine());
          dnnl::reorder(from, into).execute(stream, from, into);
          stream.wait();
          return {};
        };
        packed[i] =
            MOKA_TRY(context.pack(a.index, cat(key_of(a.plain, a.desc), " at ", a.offset), a.desc.get_size(), reorder));
      }
    } catch (const dnnl::error& e) {
      return fail(ErrorCode::internal, "oneDNN: ", e.what());
    }
    return {};
  }

  Status run(const KernelArgs& args) {
    std::array<void*, kMaxArguments> data{};
    for (size_t i = 0; i < arguments.size(); i++) {
      const auto at = static_cast<size_t>(arguments[i].index);
      switch (arguments[i].from) {
        case Launch::From::in: data[i] = args.in[at].as<std::byte>() + arguments[i].offset; break;
        case Launch::From::out: {
          data[i] = args.out[at].as<std::byte>() + arguments[i].offset;
          if (addend < 0) break;
          const auto* add = args.in[static_cast<size_t>(addend)].as<std::byte>() + arguments[i].offset;
          if (add != data[i]) std::memcpy(data[i], add, arguments[i].desc.get_size());
          break;
        }
        case Launch::From::packed: data[i] = const_cast<std::byte*>(packed[i].get()); break;
        case Launch::From::scratch: data[i] = args.own<std::byte>(); break;
      }
    }
    std::unique_ptr<Slot> slot = take(data);
    if (!slot) {
      try {
        slot = make_slot();
      } catch (const dnnl::error& e) {
        return fail(ErrorCode::internal, "oneDNN memory: ", e.what());
      }
    }
    Status result;
    dnnl_status_t status = dnnl_success;
    for (size_t i = 0; i < arguments.size() && status == dnnl_success; i++) {
      if (slot->data[i] == data[i]) continue;
      status = dnnl_memory_set_data_handle(slot->arguments[i].memory, data[i]);
      slot->data[i] = data[i];
    }
    if (status == dnnl_success) {
      OneThread scope;
      status = dnnl_primitive_execute(primitive.get(), slot->stream.get(), static_cast<int>(arguments.size()),
                                      slot->arguments.data());
    }
    give_back(std::move(slot));
    if (status != dnnl_success) return failed("execution", status);
    return {};
  }

 private:
  struct Slot {
    dnnl::stream stream;
    std::vector<dnnl::memory> memories;
    std::array<dnnl_exec_arg_t, kMaxArguments> arguments{};
    std::array<void*, kMaxArguments> data{};
  };

  std::unique_ptr<Slot> make_slot() const {
    auto slot = std::make_unique<Slot>();
    slot->stream = dnnl::stream(engine());
    for (size_t i = 0; i < arguments.size(); i++) {
      slot->memories.emplace_back(arguments[i].desc, engine(), nullptr);
      slot->arguments[i] = {arguments[i].id, slot->memories.back().get()};
    }
    return slot;
  }

  std::unique_ptr<Slot> take(const std::array<void*, kMaxArguments>& data) {
    std::lock_guard lock(mutex_);
    if (free_.empty()) return nullptr;
    auto it = std::find_if(free_.begin(), free_.end(), [&](const auto& s) { return s->data == data; });
    if (it == free_.end()) it = std::prev(free_.end());
    std::unique_ptr<Slot> slot = std::move(*it);
    *it = std::move(free_.back());
    free_.pop_back();
    return slot;
  }

  void give_back(std::unique_ptr<Slot> slot) {
    std::lock_guard lock(mutex_);
    free_.push_back(std::move(slot));
  }

  std::mutex mutex_;
  std::vector<std::unique_ptr<Slot>> free_;
};

}  // namespace

const dnnl::engine& engine() {
  static const dnnl::engine e(dnnl::engine::kind::cpu, 0);
  return e;
}

OneThread::OneThread() : before_(omp_get_max_threads()) {
  if (before_ != 1) omp_set_num_threads(1);
}

OneThread::~OneThread() {
  if (before_ != 1) omp_set_num_threads(before_);
}

Desc row_major(const Dims& dims) {
  Dims strides(dims.size());
  dnnl_dim_t step = 1;
  for (size_t i = dims.size(); i-- > 0; step *= dims[i]) strides[i] = step;
  return {dims, kF32, strides};
}

Desc strided(const Dims& dims, const Dims& strides) { return {dims, kF32, strides}; }
Desc any(const Dims& dims) { return {dims, kF32, tag::any}; }
Dims dims_of(const ir::Shape& shape) { return {shape.begin(), shape.end()}; }

Desc describe(const ir::Shape& shape, Layout layout) {
  const Dims dims = dims_of(shape);
  const int rank = shape.rank();
  if (layout.is_row_major() || rank < 3) return row_major(dims);
  if (layout.kind == Layout::Kind::channels_last)
    return {dims, kF32, rank == 3 ? tag::nwc : rank == 4 ? tag::nhwc : tag::ndhwc};
  if (layout.block == 16) return {dims, kF32, rank == 3 ? tag::nCw16c : rank == 4 ? tag::nChw16c : tag::nCdhw16c};
  return {dims, kF32, rank == 3 ? tag::nCw8c : rank == 4 ? tag::nChw8c : tag::nCdhw8c};
}

size_t append_epilogues(const kernel::MatchCall& m, dnnl::post_ops& to) {
  struct Function {
    algorithm a;
    float alpha, beta;
    bool operator==(const Function&) const = default;
  };
  std::vector<Function> all;
  size_t n = 0;
  if (m.call.has_addend()) to.append_sum();
  for (const ir::Epilogue& e : m.epilogue) {
    const size_t before = all.size();
    auto add = [&](algorithm a, float alpha = 0, float beta = 0) { all.push_back({a, alpha, beta}); };
    if (e.op == "relu")
      add(algorithm::eltwise_relu);
    else if (e.op == "relu6")
      add(algorithm::eltwise_clip, 0, 6);
    else if (e.op == "clip")
      add(algorithm::eltwise_clip, e.alpha, e.beta);
    else if (e.op == "sigmoid")
      add(algorithm::eltwise_logistic);
    else if (e.op == "tanh")
      add(algorithm::eltwise_tanh);
    else if (e.op == "silu")
      add(algorithm::eltwise_swish, 1);
    else if (e.op == "leaky_relu")
      add(algorithm::eltwise_relu, e.alpha);
    else if (e.op == "elu")
      add(algorithm::eltwise_elu, e.alpha);
    else if (e.op == "gelu")
      add(algorithm::eltwise_gelu_erf);
    else if (e.op == "gelu_tanh")
      add(algorithm::eltwise_gelu_tanh);
    else if (e.op == "linear_activation")
      add(algorithm::eltwise_linear, e.alpha, e.beta);
    else if (e.op == "abs")
      add(algorithm::eltwise_abs);
    else if (e.op == "sqrt")
      add(algorithm::eltwise_sqrt);
    else if (e.op == "square")
      add(algorithm::eltwise_square);
    else if (e.op == "exp")
      add(algorithm::eltwise_exp);
    else if (e.op == "moka_hard_swish")
      add(algorithm::eltwise_hardswish);
    else if (e.op == "sigmoid_hard") {
      add(algorithm::eltwise_linear, e.alpha, e.beta);
      add(algorithm::eltwise_clip, 0, 1);
    } else
      break;
    // Its kernels compute a second function of the same kind with the numbers of the first.
    for (size_t i = before; i < all.size(); i++)
      for (size_t j = 0; j < i; j++)
        if (all[i].a == all[j].a && all[i] != all[j]) return n;
    for (size_t i = before; i < all.size(); i++) to.append_eltwise(1, all[i].a, all[i].alpha, all[i].beta);
    n++;
  }
  return n;
}

void add_afterwards(kernel::KernelChoice& c, const kernel::MatchCall& m) {
  const auto at = static_cast<size_t>(m.call.arg_index("addend"));
  const int64_t count = m.outputs[0].shape().count();
  c.run = [run = std::move(c.run), at, count](const KernelArgs& args) -> Status {
    MOKA_TRY(run(args));
    auto* y = args.out[0].as<float>();
    vector::loops().binary(vector::Binary::add, y, 1, args.in[at].as<float>(), 1, y, count);
    return {};
  };
}

dnnl::primitive_attr attributes(const dnnl::post_ops& post) {
  dnnl::primitive_attr a;
  a.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  a.set_post_ops(post);
  return a;
}

bool is_plain_loops(const dnnl::primitive_desc_base& pd) {
  return std::string_view(pd.impl_info_str()).find("ref") != std::string_view::npos;
}

std::vector<Part> divide(const ir::Shape& in, Layout in_layout, const ir::Shape& out, Layout out_layout, int64_t groups,
                         int threads) {
  const Part whole{0, out[0], 0, groups, 0, out[1]};
  auto cut = [&](int64_t units) { return std::max<int64_t>(std::min<int64_t>(units, threads), 1); };
  std::vector<Part> parts;
  if (out[0] > 1) {
    for (int64_t n = cut(out[0]), i = 0; i < n; i++) {
      Part p = whole;
      p.image = out[0] * i / n;
      p.images = out[0] * (i + 1) / n - p.image;
      parts.push_back(p);
    }
    return parts;
  }
  if (in_layout.kind == Layout::Kind::channels_last || out_layout.kind == Layout::Kind::channels_last) return {whole};
  // Whole blocks, of row-major data too: narrower pieces are slow.
  const int64_t block = channel_block(), of_group = out[1] / groups, in_of_group = in[1] / groups;
  int64_t step = block;  // channels of the result
  if (groups > 1)
    for (step = of_group; step < out[1] && (step % block != 0 || step / of_group * in_of_group % block != 0);)
      step += of_group;
  const int64_t units = (out[1] + step - 1) / step;
  for (int64_t n = cut(units), i = 0; i < n; i++) {
    Part p = whole;
    p.channel = units * i / n * step;
    p.channels = std::min(units * (i + 1) / n * step, out[1]) - p.channel;
    if (groups > 1) {
      p.group = p.channel / of_group;
      p.groups = p.channels / of_group;
    }
    parts.push_back(p);
  }
  return parts;
}

namespace {
Run run_of(const Part& part, const ir::Shape& whole, Layout layout, int64_t channel, int64_t channels) {
  Run run{whole, part.image * (storage_count(whole, layout) / whole[0]) + channel * whole.count(2, whole.rank())};
  run.shape[0] = part.images;
  run.shape[1] = channels;
  return run;
}
}  // namespace

Run input_of(const Part& part, const ir::Shape& whole, Layout layout, int64_t groups) {
  const int64_t of_group = whole[1] / groups;
  return run_of(part, whole, layout, of_group * part.group, of_group * part.groups);
}

Run result_of(const Part& part, const ir::Shape& whole, Layout layout) {
  return run_of(part, whole, layout, part.channel, part.channels);
}

void Launch::in(int id, const Desc& desc, int arg, int64_t first) {
  arguments_.push_back({id, desc, From::in, arg, static_cast<size_t>(first) * sizeof(float), {}});
}
void Launch::out(int id, const Desc& desc, int64_t first) {
  arguments_.push_back({id, desc, From::out, 0, static_cast<size_t>(first) * sizeof(float), {}});
}
void Launch::packed(int id, const Desc& desc, int arg, const Desc& plain, int64_t first) {
  if (desc == plain)
    in(id, desc, arg, first);
  else
    arguments_.push_back({id, desc, From::packed, arg, static_cast<size_t>(first) * sizeof(float), plain});
}

kernel::KernelChoice choose(std::string_view kernel, const std::vector<Launch>& launches,
                            const kernel::MatchCall& call) {
  kernel::KernelChoice c;
  c.kernel = kernel;
  c.note = launches.front().primitive().impl_info_str();
  c.tiles = static_cast<int64_t>(launches.size());
  c.in_place = launches.front().addend();
  for (const Launch::Argument& a : launches.front().arguments()) {
    if (a.from != Launch::From::packed) continue;
    c.in_prepare_only.resize(call.call.all_args().size());
    c.in_prepare_only[static_cast<size_t>(a.index)] = true;
  }
  auto parts = std::make_shared<std::vector<std::unique_ptr<Shared>>>();
  for (const Launch& launch : launches) {
    parts->push_back(std::make_unique<Shared>(launch));
    c.thread_scratch = std::max(c.thread_scratch, parts->back()->scratch_bytes);
  }
  c.prepare = [parts](kernel::PrepareContext& context) -> Status {
    for (auto& part : *parts) MOKA_TRY(part->prepare(context));
    return {};
  };
  c.run = [parts](const KernelArgs& args) -> Status {
    for (int64_t i = args.begin; i < args.end; i++) MOKA_TRY((*parts)[static_cast<size_t>(i)]->run(args));
    return {};
  };
  return c;
}

}  // namespace moka::devices::cpu::onednn
