// A device to copy. docs/adding-a-device.md says what to do after copying; the comments here say what each part is for.
#include "devices/null/device.h"

#include <cstring>

namespace moka::devices::null {

namespace {

using namespace kernel;

// A kernel is one way to run one or several operations. Its `match` is asked while a plan is made, with concrete types,
// and answers with a choice (how it will run, and what it needs) or with a refusal. It must not keep references into
// `call`, which is gone when the plan is made.
Match match_identity(const MatchCall& call) {
  // Parameters are looked up by the names of the operation's definition in src/ops. `x` is always there, because the
  // definition says so; `call.call.has("x")` asks for optional ones.
  const ir::Type& type = call.call.type("x");

  // A refusal is a short noun phrase: it is shown to people behind the kernel's name, "null.identity: strings".
  if (!type.is_tensor()) return Match::no("not a tensor");
  if (type.dtype() == ir::DType::string) return Match::no("strings");
  auto bytes = ir::storage_bytes(type.dtype(), type.shape());
  if (!bytes.ok()) return Match::no("a size that is too large");

  KernelChoice choice;
  choice.kernel = "null.identity";  // static storage: a literal

  // Inputs are numbered over all parameters; keep the number, so that running needs no lookup.
  const auto x = static_cast<size_t>(call.call.arg_index("x"));

  // Layouts: inputs and outputs are row-major unless asked for otherwise. This kernel takes what comes and gives the
  // same, which saves conversions; `in` has one entry for each input, `out` one for each output.
  const Layout layout = call.layouts[x];
  choice.in.resize(call.call.all_args().size());
  choice.in[x] = layout;
  choice.out = {layout};
  auto stored = storage_bytes(type.dtype(), type.shape(), layout);
  if (!stored.ok()) return Match::no("a size that is too large");

  // Cost in seconds: what the planner compares. Bytes read and written over the memory's speed will do here.
  choice.cost = 2.0 * static_cast<double>(*stored) / 8e9;

  // What else a choice can say, none of which a copy needs: `scratch` bytes of working memory; `in_prepare_only` for
  // inputs that `prepare` reads and repacks once (weights); `in_place` for an input whose memory the output may take
  // over; `tiles` so that threads can share the work, or `shares` for a kernel that divides it itself; `epilogues`
  // for the fused activation functions that the kernel applies itself (the executor applies those left over).

  // Runs in many sessions at once: only constants may be captured, and nothing may be allocated.
  choice.run = [x, n = *stored](const KernelArgs& args) -> Status {
    if (n > 0 && args.in[x].data != args.out[0].data) std::memcpy(args.out[0].data, args.in[x].data, n);
    return {};
  };
  return Match::yes(std::move(choice));
}

// A kernel for all operations (an empty list of names) is asked for each. This one exists to refuse: the reason is what
// `explain` shows for every operation that the device leaves to the next.
Match match_anything(const MatchCall&) { return Match::no("no hardware"); }

class Null final : public Device {
 public:
  // The name by which options and reports call the device.
  std::string_view name() const override { return "null"; }
  // The hardware, for people: a product name and what matters of it.
  std::string description() const override { return "runs nothing but copies"; }
  // Which of the compute units of a model configuration it belongs to; one that is not allowed is not asked.
  ComputeUnit unit() const override { return ComputeUnit::cpu; }
  // When it is asked among the devices, lowest first; negative: only when named, as befits this one.
  int rank() const override { return -1; }
  // Best first: the first kernel that matches an operation runs it.
  std::span<const KernelDef> kernels() const override {
    static const KernelDef defs[] = {{"null.identity", {"identity"}, match_identity},
                                     {"null.anything", {}, match_anything}};
    return defs;
  }
};

}  // namespace

// One object for the life of the process. Look for hardware here, once; where there is none, `kernels` is empty.
const Device& device() {
  static const Null d;
  return d;
}

}  // namespace moka::devices::null
