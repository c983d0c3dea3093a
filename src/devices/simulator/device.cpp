// SPDX-License-Identifier: Apache-2.0
#include "devices/simulator/device.h"

#include <cstring>
#include <functional>

#include "base/copy.h"
#include "devices/simulator/queue.h"
#include "kernel/epilogue.h"
#include "kernel/layout.h"
#include "kernel/packed_frame.h"
#include "kernel/pixels.h"

namespace moka::devices::simulator {

namespace {

using namespace kernel;

bool is_stored(const ir::Type& t) {
  return t.is_tensor() && t.dtype() != ir::DType::string && ir::bits(t.dtype()) >= 8;
}

/// A row-major copy of a value in any layout, or memory for one.
struct RowMajor {
  explicit RowMajor(const BufferView& v) : bytes(static_cast<size_t>(v.shape.count() * ir::bits(v.dtype) / 8)) {
    view = {v.dtype, v.shape, bytes.data()};
  }
  std::vector<std::byte> bytes;
  ir::TensorView view;
};

void copy(const ir::TensorView& from, Layout a, const ir::TensorView& to, Layout b) {
  convert_layout(from, a, to, b, 0, convert_tiles(from.shape, a, b));
}

/// Constants that a buffer cannot hold (names of modes, bits), by input.
using HostConstants = std::vector<std::pair<size_t, ir::Tensor>>;

/// Runs the reference function of an operation on the device's thread.
Status record_reference(const HostConstants& constants, Recorder& recorder, const RecordArgs& args) {
  struct Job {
    std::vector<BufferView> in, out;
    std::vector<ir::Type> types;
    const ir::OpCall* call;
    std::vector<uint32_t> first;  // as in OpCall
    HostConstants constants;
  };
  auto job = std::make_shared<Job>();
  job->in.assign(args.in.begin(), args.in.end());
  job->out.assign(args.out.begin(), args.out.end());
  for (const ir::Arg& a : args.call->all_args()) job->types.push_back(*a.type);
  job->call = args.call;
  job->constants = constants;
  job->first.push_back(0);
  for (const ir::ParamDef& p : args.call->version().params)
    job->first.push_back(job->first.back() + static_cast<uint32_t>(args.call->args(p.name).size()));
  static_cast<SimulatedRecorder&>(recorder).work.push_back([job]() -> Status {
    std::vector<RowMajor> in, out;
    std::vector<ir::TensorView> views, results;
    std::vector<ir::Arg> call_args;
    in.reserve(job->in.size());
    out.reserve(job->out.size());
    views.resize(job->in.size());
    for (const auto& [i, tensor] : job->constants) views[i] = tensor.view();
    for (size_t i = 0; i < views.size(); i++) {
      const BufferView& v = job->in[i];
      if (v.buffer != nullptr) {
        copy({v.dtype, v.shape, data_of(v)}, v.layout, in.emplace_back(v).view, {});
        views[i] = in.back().view;
      }
      call_args.push_back({&job->types[i], &views[i]});
    }
    for (const BufferView& v : job->out) results.push_back(out.emplace_back(v).view);
    ir::OpCall call(job->call->version(), job->call->name(), call_args, job->first);
    call.op = job->call->op;
    MOKA_TRY(call.version().reference(call, results));
    for (size_t i = 0; i < out.size(); i++)
      copy(out[i].view, {}, {job->out[i].dtype, job->out[i].shape, data_of(job->out[i])}, job->out[i].layout);
    return {};
  });
  return {};
}

/// Stores some values in blocks and some with channels last. Their names decide, so that a plan is the same each time.
Layout layout_of(const MatchCall& call, const ir::Type& t) {
  if (t.shape().rank() < 3 || t.shape().count() == 0 || !call.epilogue.empty()) return {};
  const size_t pick = std::hash<std::string_view>{}(call.call.name()) % 4;
  const Layout layout = pick == 0 ? Layout::blocked(4) : pick == 1 ? Layout::channels_last() : Layout{};
  return layout;
}

Match match(const MatchCall& call) {
  const ir::OpVersion& version = call.call.version();
  if (!version.reference) return Match::no("control flow");
  if (ir::has(version.traits, ir::Trait::stateful) || ir::has(version.traits, ir::Trait::random))
    return Match::no("state that the host keeps");
  if (call.call.has_addend()) return Match::no("a tensor to be added");
  KernelChoice c;
  c.kernel = "simulator.reference";
  const auto args = call.call.all_args();
  HostConstants constants;
  c.in_prepare_only.assign(args.size(), false);
  for (size_t i = 0; i < args.size(); i++) {
    if (is_stored(*args[i].type)) continue;
    if (!args[i].type->is_tensor() || args[i].value == nullptr)
      return Match::no("a value that is not a tensor of bytes");
    auto copied = ir::Tensor::copy_of(*args[i].value);
    if (!copied.ok()) return Match::no("a constant that is too large");
    constants.emplace_back(i, std::move(*copied));
    c.in_prepare_only[i] = true;
  }
  for (const ir::Type& t : call.outputs) {
    if (!is_stored(t)) return Match::no("a result that is not a tensor of whole bytes");
    c.out.push_back(layout_of(call, t));
  }
  c.cost = 1e-6;
  c.record = [constants = std::move(constants)](Recorder& recorder, const RecordArgs& a) {
    return record_reference(constants, recorder, a);
  };
  return Match::yes(std::move(c));
}

class Simulator final : public Device {
 public:
  explicit Simulator(std::string_view name) : name_(name) {}
  std::string_view name() const override { return name_; }
  std::string description() const override { return "reference kernels behind a simulated memory and queue"; }
  ComputeUnit unit() const override { return ComputeUnit::gpu; }
  int rank() const override { return -1; }
  std::span<const KernelDef> kernels() const override {
    static const KernelDef defs[] = {{"simulator.reference", {}, match, true}};
    return defs;
  }
  const Memory* memory() const override { return &simulator::memory(); }
  Result<std::unique_ptr<Queue>> open_queue() const override { return simulator::open_queue(); }
  Match convert(ir::DType, const ir::Shape& shape, Layout from, Layout to) const override {
    if (from == Layout::channels_last() && to == Layout::blocked(4)) return Match::no("channels last to blocks");
    if (from != to && shape.rank() < 3 && from.half == to.half) return Match::no("no channels");
    KernelChoice c;
    c.kernel = "simulator.convert";
    c.record = [](Recorder& recorder, const RecordArgs& args) -> Status {
      static_cast<SimulatedRecorder&>(recorder).work.push_back([in = args.in[0], out = args.out[0]]() -> Status {
        copy({in.dtype, in.shape, data_of(in)}, in.layout, {out.dtype, out.shape, data_of(out)}, out.layout);
        return {};
      });
      return {};
    };
    return Match::yes(std::move(c));
  }
  Match unpack(PlaneOrder order, const ir::Type& type) const override {
    KernelChoice c;
    c.kernel = "simulator.unpack";
    c.record = [order, type](Recorder& recorder, const RecordArgs& args) -> Status {
      static_cast<SimulatedRecorder&>(recorder).work.push_back([=, in = args.in[0], out = args.out[0]]() -> Status {
        const ir::TensorView to{type.dtype(), type.shape(), data_of(out)};
        if (!kernel::is_packed_frame(data_of(in))) {
          kernel::unpack(packed(data_of(in), type.shape()), order, to);
          return {};
        }
        const kernel::FramePicture picture = kernel::packed_frame(data_of(in));
        pictures::Fitter fitter(picture.frame.width, picture.frame.height, picture.placement,
                                order == PlaneOrder::gray ? 1 : 3);
        kernel::unpack_frame(picture, fitter, order, to);
        return {};
      });
      return {};
    };
    return Match::yes(std::move(c));
  }
  bool takes_frames() const override { return true; }
  bool applies(const ir::Epilogue& e) const override { return is_epilogue(e.op); }

 private:
  std::string_view name_;
};

}  // namespace

const Device& device() {
  static const Simulator d("simulator");
  return d;
}

std::vector<const Device*> devices() {
  static const Simulator second("simulator1");
  return {&device(), &second};
}

}  // namespace moka::devices::simulator
