// SPDX-License-Identifier: Apache-2.0
#include "devices/neural_engine/device.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>

#include "base/half.h"
#include "devices/neural_engine/rules.h"
#include "ir/program.h"
#include "kernel/epilogue.h"
#include "kernel/parallel.h"

namespace moka::devices::neural_engine {

extern const char* const kBuiltInRules;

namespace {

using namespace kernel;

constexpr size_t kAlignment = 64;
constexpr int kPartsOfThread = 4;

/// Rounds floats to float16. Returns whether any of them changed.
bool round_to_half(const float* from, float* to, size_t n) {
  constexpr size_t kBlock = 256;
  uint16_t halves[kBlock];
  float rounded[kBlock];
  bool changed = false;
  for (size_t at = 0; at < n; at += kBlock) {
    const size_t m = std::min(kBlock, n - at);
    float_to_half(from + at, halves, m);
    half_to_float(halves, rounded, m);
    changed |= std::memcmp(from + at, rounded, m * sizeof(float)) != 0;
    std::memcpy(to + at, rounded, m * sizeof(float));
  }
  return changed;
}

/// A kernel of the host whose inputs and outputs are rounded to float16.
struct Rounded {
  std::unique_ptr<KernelChoice> inner;
  std::vector<ir::Epilogue> left;  ///< epilogues that the kernel does not apply itself
  int threads = 1;
  struct Value {
    /// index of the input or output; number of stored floats; for inputs, the offset in the scratch
    size_t index, floats, offset;
  };
  std::vector<Value> in, out;

  Status run_inner(const KernelArgs& args) const {
    KernelArgs whole = args;
    whole.begin = 0;
    whole.end = inner->tiles;
    if (inner->internally_parallel || inner->tiles <= 1 || threads <= 1) return inner->run(whole);
    Status first;
    std::atomic<bool> failed{false};
    const int64_t parts = std::min<int64_t>(inner->tiles, threads * kPartsOfThread);
    parallel_for(threads, parts, [&](int64_t p, int thread) {
      KernelArgs part = whole;
      part.begin = inner->tiles * p / parts;
      part.end = inner->tiles * (p + 1) / parts;
      part.thread = thread;
      if (Status s = inner->run(part); !s.ok() && !failed.exchange(true)) first = std::move(s);
    });
    return first;
  }

  Status run(const KernelArgs& args) const {
    std::vector<ir::TensorView> views(args.in.begin(), args.in.end());
    bool changed = false;
    for (const Value& v : in) {
      auto* rounded = reinterpret_cast<float*>(args.scratch + v.offset);
      if (!round_to_half(static_cast<const float*>(views[v.index].data), rounded, v.floats)) continue;
      views[v.index].data = rounded;
      changed = true;
    }
    if (changed) {
      std::vector<ir::Arg> call_args;
      std::vector<uint32_t> first{0};
      const auto all = args.call->all_args();
      for (size_t i = 0; i < all.size(); i++) call_args.push_back({all[i].type, &views[i]});
      for (const ir::ParamDef& p : args.call->version().params)
        first.push_back(first.back() + static_cast<uint32_t>(args.call->args(p.name).size()));
      ir::OpCall call(args.call->version(), args.call->name(), call_args, first);
      call.op = args.call->op;
      call.random = args.call->random;
      KernelArgs own = args;
      own.in = views;
      own.call = &call;
      MOKA_TRY(run_inner(own));
    } else {
      MOKA_TRY(run_inner(args));
    }
    if (!left.empty()) apply_epilogues(left, args.out[0]);
    for (const Value& v : out) {
      auto* data = static_cast<float*>(args.out[v.index].data);
      round_to_half(data, data, v.floats);
    }
    return {};
  }
};

Match rounded(Match host, const MatchCall& call) {
  auto r = std::make_shared<Rounded>();
  r->inner = std::move(host.choice);
  const KernelChoice& inner = *r->inner;
  r->left.assign(call.epilogue.begin() + static_cast<std::ptrdiff_t>(std::min(inner.epilogues, call.epilogue.size())),
                 call.epilogue.end());
  r->threads = call.threads;
  KernelChoice c = inner;
  c.kernel = "neural_engine.preview";
  c.note = cat("rounded to float16, by ", inner.kernel);
  c.epilogues = call.epilogue.size();
  const auto floats = [](const ir::Type& t, Layout layout) -> size_t {
    if (!t.is_tensor() || t.dtype() != ir::DType::fp32) return 0;
    const auto bytes = storage_bytes(t.dtype(), t.shape(), layout);
    return bytes.ok() ? *bytes / sizeof(float) : 0;
  };
  const auto args = call.call.all_args();
  for (size_t i = 0; i < args.size(); i++) {
    if (i < call.constant_args.size() && call.constant_args[i]) continue;
    if (const size_t n = floats(*args[i].type, i < inner.in.size() ? inner.in[i] : Layout{}); n > 0) {
      c.scratch = (c.scratch + kAlignment - 1) / kAlignment * kAlignment;
      r->in.push_back({i, n, c.scratch});
      c.scratch += n * sizeof(float);
    }
  }
  for (size_t i = 0; i < call.outputs.size(); i++)
    if (const size_t n = floats(call.outputs[i], i < inner.out.size() ? inner.out[i] : Layout{}); n > 0)
      r->out.push_back({i, n, 0});
  if (inner.prepare) c.prepare = [r](PrepareContext& context) { return r->inner->prepare(context); };
  c.run = [r](const KernelArgs& a) { return r->run(a); };
  c.tiles = 1;
  c.internally_parallel = inner.internally_parallel || inner.tiles > 1;
  return Match::yes(std::move(c));
}

class NeuralEngine final : public Device {
 public:
  NeuralEngine(std::vector<const Device*> hosts, Rules rules) : hosts_(std::move(hosts)), rules_(std::move(rules)) {}

  std::string_view name() const override { return "neural_engine"; }
  std::string description() const override {
    return "a preview of Apple's Neural Engine: its rules and its precision, computed on the CPU";
  }
  ComputeUnit unit() const override { return ComputeUnit::neural_engine; }
  int rank() const override { return 10; }
  std::span<const KernelDef> kernels() const override {
    // `claim` evaluates the rules.
    static const KernelDef defs[] = {
        {"neural_engine.preview", {}, [](const MatchCall&) { return Match::no("only rules decide"); }, true}};
    return defs;
  }
  Match claim(const MatchCall& call) const override {
    if (auto why = rules_.refusal(call)) return Match::no(std::move(why->reason), std::move(why->advice));
    std::string refusals;
    for (const Device* host : hosts_) {
      Match m = host->claim(call);
      if (m.choice) {
        Match out = rounded(std::move(m), call);
        out.advice = rules_.doubt(call);
        return out;
      }
      refusals += cat(refusals.empty() ? "" : "; ", host->name(), ": ", m.refusal);
    }
    return Match::no(std::move(refusals));
  }
  bool is_half_only() const override { return true; }
  bool is_preview() const override { return true; }
  Result<std::unique_ptr<Device>> with_rules(std::vector<const Device*> hosts, std::string_view rules) const override {
    Rules all = rules_;
    MOKA_TRY(all.add(rules));
    return std::unique_ptr<Device>(std::make_unique<NeuralEngine>(std::move(hosts), std::move(all)));
  }

 private:
  std::vector<const Device*> hosts_;
  Rules rules_;
};

}  // namespace

const Device& device() {
  static const NeuralEngine d = [] {
    Rules rules;
    const Status s = rules.add(kBuiltInRules);
    if (!s.ok()) std::abort();  // the tests parse the built-in rules
    return NeuralEngine({}, std::move(rules));
  }();
  return d;
}

std::vector<const Device*> devices() { return {&device()}; }

}  // namespace moka::devices::neural_engine
