// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <memory>
#include <mutex>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "devices/cpu/onednn.h"
#include "devices/cpu/vector/winograd.h"

namespace moka::devices::cpu::onednn {

using kernel::KernelArgs;

namespace {

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
      // An opaque format: only all of its bytes identify it.
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

/// oneDNN generates the code of its matrix products when the first of them runs. This runs one.
void generate_products() {
  static std::once_flag once;
  std::call_once(once, [] {
    constexpr int n = 64;
    const std::vector<float> a(n * n), b(n * n);
    std::vector<float> c(n * n);
    dnnl_sgemm('N', 'N', n, n, n, 1, a.data(), n, b.data(), n, 0, c.data(), n);
  });
}

bool are_finite(const void* data, const Desc& desc) {
  const auto* x = static_cast<const float*>(data);
  const auto n = static_cast<int64_t>(desc.get_size() / sizeof(float));
  const int64_t whole = n - n % vector::winograds().block;
  return vector::winograds().are_finite(x, whole) &&
         std::all_of(x + whole, x + n, [](float v) { return std::isfinite(v); });
}

/// The primitive of Launch::Unfused, which is made when a run first needs it.
class UnfusedPrimitive {
 public:
  explicit UnfusedPrimitive(const Launch::Unfused& how) : how_(how) {}
  bool is_needed() const { return how_.make != nullptr; }

  /// Allocates: inputs are hardly ever NaN or infinite.
  Status run(std::span<const Launch::Argument> arguments, std::span<void* const> data) {
    OneThread scope;
    try {
      std::call_once(once_, [this] {
        pd_ = how_.make();
        if (pd_.get(true) != nullptr) primitive_ = dnnl::primitive(pd_.get());
      });
      if (!primitive_) return fail(ErrorCode::internal, "oneDNN has no primitive without post-ops");
      std::unordered_map<int, dnnl::memory> memories;
      float* y = nullptr;
      for (size_t i = 0; i < arguments.size(); i++) {
        const Launch::Argument& a = arguments[i];
        if (a.from == Launch::From::scratch) continue;
        if (a.from == Launch::From::out) y = static_cast<float*>(data[i]);
        memories.insert({a.id, dnnl::memory(a.desc, engine(), data[i])});
      }
      memories.insert({DNNL_ARG_SCRATCHPAD, dnnl::memory(pd_.query_md(dnnl::query::scratchpad_md, 0), engine())});
      dnnl::stream stream(engine());
      primitive_.execute(stream, memories);
      stream.wait();
      const int64_t n = storage_count(how_.shape, how_.layout);
      if (how_.layout == blocked())
        finish_blocked(how_.shape, nullptr, how_.after, y, 0, n);
      else
        apply_all(how_.after, y, n);
    } catch (const dnnl::error& e) {
      return fail(ErrorCode::internal, "oneDNN: ", e.what());
    }
    return {};
  }

 private:
  const Launch::Unfused how_;
  std::once_flag once_;
  dnnl::primitive_desc_base pd_;
  dnnl::primitive primitive_;
};

/// A primitive that many threads may run at once. Each run takes a set of memory objects, preferably one that already
/// points to its data. A new set is made when more runs overlap than ever before.
class Shared {
 public:
  explicit Shared(const Launch& launch)
      : arguments(launch.arguments()),
        pd(launch.primitive()),
        addend(launch.addend()),
        unfused_(launch.unfused()),
        inspect_(launch.inspect()) {
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
      if (std::string_view(pd.impl_info_str()).find("gemm") != std::string_view::npos) generate_products();
      packed.resize(arguments.size());
      bool inspected = false;
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
        inspected = unfused_.is_needed() || inspect_;
        if (inspected) finite_weights_ &= are_finite(packed[i].get(), a.desc);
      }
      if (inspect_ && !(inspected && finite_weights_)) MOKA_TRY(inspect_(context));
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
        // oneDNN takes what it reads and what it writes in the same way.
        case Launch::From::packed: data[i] = const_cast<std::byte*>(packed[i].get()); break;
        case Launch::From::scratch: data[i] = args.own<std::byte>(); break;
      }
    }
    if (unfused_.is_needed() && !has_finite_inputs(data)) return unfused_.run(arguments, std::span(data));
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

  bool has_finite_inputs(const std::array<void*, kMaxArguments>& data) const {
    if (!finite_weights_) return false;
    for (size_t i = 0; i < arguments.size(); i++) {
      const Launch::From from = arguments[i].from;
      if (from == Launch::From::in || (from == Launch::From::out && addend >= 0))
        if (!are_finite(data[i], arguments[i].desc)) return false;
    }
    return true;
  }

  std::mutex mutex_;
  std::vector<std::unique_ptr<Slot>> free_;
  UnfusedPrimitive unfused_;
  Launch::Inspect inspect_;
  bool finite_weights_ = true;
};

}  // namespace

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
