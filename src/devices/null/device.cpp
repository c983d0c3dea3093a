// SPDX-License-Identifier: Apache-2.0
// A device to copy when adding one. docs/adding-a-device.md says what to do after copying. The comments here explain
// each part.
#include "devices/null/device.h"

#include <cstring>

namespace moka::devices::null {

namespace {

using namespace kernel;

// A kernel is one way to run one or several operations. While a plan is made, the planner calls its `match` with
// concrete types. The answer is a choice (how it will run and what it needs) or a refusal. The choice must not refer to
// `call`, which does not outlive planning.
Match match_identity(const MatchCall& call) {
  // Parameters have the names of the operation's definition in src/ops. By that definition `x` is required. For
  // optional parameters ask call.call.has() first.
  const ir::Type& type = call.call.type("x");

  // A refusal is a short noun phrase. People see it after the kernel's name: "null.identity: strings".
  if (!type.is_tensor()) return Match::no("not a tensor");
  if (type.dtype() == ir::DType::string) return Match::no("strings");
  auto bytes = ir::storage_bytes(type.dtype(), type.shape());
  if (!bytes.ok()) return Match::no("a tensor that is too large");

  KernelChoice choice;
  choice.kernel = "null.identity";  // static storage: a literal

  // Inputs are numbered over all parameters. Keep the number so that running needs no lookup.
  const auto x = static_cast<size_t>(call.call.arg_index("x"));

  // Inputs and outputs are row-major unless the choice asks for other layouts. This kernel takes its input in any
  // layout and returns the same one, which saves conversions. `in` has one entry per input, `out` one per output.
  const Layout layout = call.layouts[x];
  choice.in.resize(call.call.all_args().size());
  choice.in[x] = layout;
  choice.out = {layout};
  auto stored = storage_bytes(type.dtype(), type.shape(), layout);
  if (!stored.ok()) return Match::no("a tensor that is too large");

  // The estimated cost in seconds, here the bytes read and written over the memory's bandwidth.
  choice.cost = 2.0 * static_cast<double>(*stored) / 8e9;

  // A choice can set more fields, which a copy does not need:
  //   scratch              bytes of working memory
  //   in_prepare_only      inputs, such as weights, that `prepare` reads and packs once
  //   in_place             an input whose memory the output may take over
  //   tiles                the number of parts that threads may divide the work into
  //   internally_parallel  `run` divides the work itself, with kernel/parallel.h
  //   epilogues            number of fused activation functions that the kernel applies; the executor applies the rest

  // Many sessions call this at once, so it may capture only constants. It must not allocate.
  choice.run = [x, n = *stored](const KernelArgs& args) -> Status {
    if (n > 0 && args.in[x].data != args.out[0].data) std::memcpy(args.out[0].data, args.in[x].data, n);
    return {};
  };
  return Match::yes(std::move(choice));
}

// A kernel with an empty list of operations is asked for every operation. This one only gives a reason. `explain` shows
// it for every operation that the device refuses.
Match match_anything(const MatchCall&) { return Match::no("no hardware"); }

class Null final : public Device {
 public:
  // The name by which options and reports call the device.
  std::string_view name() const override { return "null"; }
  // The hardware, for users: its product name and important properties.
  std::string description() const override { return "runs nothing but copies"; }
  // The compute unit that a model configuration must allow for the device to be asked.
  ComputeUnit unit() const override { return ComputeUnit::cpu; }
  // Devices are asked in ascending rank. A negative one, as here, is asked only when a configuration names it.
  int rank() const override { return -1; }
  // Best first: the first kernel that matches an operation runs it.
  std::span<const KernelDef> kernels() const override {
    static const KernelDef defs[] = {{"null.identity", {"identity"}, match_identity},
                                     {"null.anything", {}, match_anything}};
    return defs;
  }
};

}  // namespace

// One object for the life of the process. Look for hardware here, once. If there is none, leave `kernels` empty.
const Device& device() {
  static const Null d;
  return d;
}

std::vector<const Device*> devices() { return {&device()}; }

}  // namespace moka::devices::null
