// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "conformance/case_util.h"
#include "ir/op_def.h"
#include "kernel/kernel.h"
#include "opdocs/opdocs.h"
#include "plan/plan.h"
#include "runtime/frame.h"

namespace moka::api {
std::vector<const kernel::Device*> all_devices();
}

namespace moka::opdocs {

using namespace ir;

namespace {

constexpr size_t kMostReasons = 8;

/// A device that records what it was asked.
class Recorder final : public kernel::Device {
 public:
  explicit Recorder(const kernel::Device& device) : device_(device) {}
  std::string_view name() const override { return device_.name(); }
  std::string description() const override { return device_.description(); }
  kernel::ComputeUnit unit() const override { return device_.unit(); }
  int rank() const override { return device_.rank(); }
  std::span<const kernel::KernelDef> kernels() const override { return device_.kernels(); }
  kernel::Match claim(const kernel::MatchCall& call) const override {
    kernel::Match m = device_.claim(call);
    // Planning may ask again for calls that were refused.
    if (!asked.insert({call.call.op, call.outputs.empty() ? std::string() : cat(call.outputs[0])}).second &&
        device_.memory() != nullptr)
      return kernel::Match::no("asked only");
    const std::string& op = call.call.version().def->name;
    DeviceUse& use = uses[op];
    ++use.asked;
    if (m.choice)
      ++use.taken;
    else
      ++use.refusals[m.refusal];
    ask_kernels(call, op, use);
    // Devices with their own memory are only asked; they do not run.
    return device_.memory() == nullptr ? std::move(m) : kernel::Match::no("asked only");
  }

  mutable std::map<std::string, DeviceUse> uses;
  mutable std::set<std::pair<const Op*, std::string>> asked;  ///< operations of one case, with their types

 private:
  void ask_kernels(kernel::MatchCall call, const std::string& op, DeviceUse& use) const {
    call.device = &device_;
    size_t place = 0;
    bool open = true;
    for (const kernel::KernelDef& k : kernels()) {
      if (!k.runs(op)) continue;
      if (use.kernels.size() == place) use.kernels.push_back({std::string(k.name), 0, 0, {}});
      KernelUse& mine = use.kernels[place++];
      if (!open) continue;
      const kernel::Match m = k.match(call);
      open = m.choice == nullptr;
      ++mine.asked;
      if (open)
        ++mine.refusals[m.refusal];
      else
        ++mine.taken;
    }
  }

  const kernel::Device& device_;
};

/// Plans a case for the device and the reference, and runs it, because some operations are planned only at run time.
Status ask(const conformance::Case& c, const std::vector<const kernel::Device*>& devices) {
  Program program = MOKA_TRY(conformance::read_program(c));
  Function& f = *program.functions[0];
  std::vector<RuntimeValue> inputs = MOKA_TRY(conformance::ordered_inputs(c, f));
  plan::PlanOptions options;
  options.devices = devices;
  options.constants = std::make_shared<plan::ConstantPool>(nullptr);
  std::vector<Type> types;
  for (size_t i = 0; i < inputs.size(); ++i) types.push_back(inputs[i].type(f.body().inputs()[i]->type));
  auto plan = MOKA_TRY(plan::plan_block(f.body(), types, nullptr, options));
  runtime::ExecContext context;
  context.options = &options;
  auto frame = MOKA_TRY(runtime::Frame::make(plan, nullptr, context));
  for (size_t i = 0; i < inputs.size(); ++i) frame->set_input(i, inputs[i].tensor.mutable_data());
  return frame->run();
}

/// The reasons as a table cell, the most frequent first.
std::string reasons(const std::map<std::string, int>& refusals, size_t most) {
  std::vector<std::pair<std::string, int>> sorted(refusals.begin(), refusals.end());
  std::stable_sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  std::string text;
  for (size_t i = 0; i < std::min(most, sorted.size()); ++i) text += (i == 0 ? "" : "; ") + sorted[i].first;
  if (sorted.size() > most && most > 1) text += "; ...";
  std::replace(text.begin(), text.end(), '|', '/');
  return text;
}

std::string share(int taken, int asked) {
  if (asked == 0) return "";
  if (taken == asked) return "all " + std::to_string(asked);
  return taken == 0 ? "none" : std::to_string(taken) + " of " + std::to_string(asked);
}

std::string elsewhere(const OpVersion& v) {
  if (has(v.traits, Trait::control)) return "the executor runs its blocks";
  if (has(v.traits, Trait::constant)) return "a constant";
  if (has(v.traits, Trait::constexpr_weight)) return "expanded once, before running";
  if (has(v.traits, Trait::alias)) return "needs no kernel";
  return "no case runs it while predicting";
}

std::string elsewhere(const std::string& operation) { return elsewhere(ops::table().find(operation)->versions.back()); }

const DeviceUse* use_of(const Support& s, const std::string& operation, const std::string& device) {
  const auto op = s.uses.find(operation);
  if (op == s.uses.end()) return nullptr;
  const auto use = op->second.find(device);
  return use == op->second.end() ? nullptr : &use->second;
}

/// Whether the device takes every operation, like devices made for tests. Such a column would say nothing.
bool for_all(const kernel::Device& d) {
  const auto kernels = d.kernels();
  return std::all_of(kernels.begin(), kernels.end(), [](const kernel::KernelDef& k) { return k.ops.empty(); });
}

}  // namespace

Support find_support(const std::string& golden) {
  std::vector<const kernel::Device*> devices;
  std::vector<const kernel::Device*> accelerators;
  Support out;
  for (const kernel::Device* d : api::all_devices()) {
    if (d->rank() >= 0 && d->is_host()) {
      devices.push_back(d);
    } else if (d->memory() != nullptr && d->kernels().empty()) {
      out.complete = false;
    } else if (d->memory() != nullptr && !for_all(*d)) {
      accelerators.push_back(d);
      out.accelerators.emplace_back(d->name());
    }
  }
  std::sort(devices.begin(), devices.end(), [](const auto* a, const auto* b) { return a->rank() < b->rank(); });
  const kernel::Device* last = devices.back();
  const auto cases = conformance::load_cases(golden);
  for (const conformance::Case& c : cases) ++out.cases[c.op];
  for (const kernel::Device* d : devices) out.devices.emplace_back(d->name());
  accelerators.insert(accelerators.end(), devices.begin(), devices.end());
  for (const kernel::Device* d : accelerators) {
    const std::string name(d->name());
    const Recorder recorder(*d);
    std::vector<const kernel::Device*> chain = {&recorder};
    if (d != last) chain.push_back(last);
    for (const conformance::Case& c : cases) {
      recorder.asked.clear();
      if (const Status s = ask(c, chain); !s.ok())
        throw std::runtime_error(c.op + " " + c.name + ": " + s.error().to_string());
    }
    for (auto& [op, use] : recorder.uses) out.uses[op][name] = std::move(use);
  }
  return out;
}

std::string support_markdown(const Support& support) {
  std::string out =
      "# What runs where\n\n<!-- Made by `make docs` from the conformance cases and the devices' kernels; do not edit. "
      "-->\n\n"
      "Each operation has cases in tests/conformance/golden, with shapes and element types. The table says how many of "
      "them\n"
      "each device takes when it is asked first, and its most frequent reason to refuse others. A case that a device\n"
      "refuses runs on `reference`. The counts are those of the instructions that every processor has. A processor "
      "with\n"
      "more may take more. Devices with a memory of their own are asked too, with a driver that has float16 and "
      "bytes.\n\n"
      "| Operation |";
  std::string rule = "|---|";
  std::vector<std::string> devices = support.devices;
  devices.insert(devices.end(), support.accelerators.begin(), support.accelerators.end());
  for (const std::string& d : devices) {
    out += " " + d + " |";
    rule += "---|";
  }
  out += "\n" + rule + "\n";
  std::map<std::string, const OpDef*> names;
  for (const OpDef& d : ops::table().defs()) names[d.name] = &d;
  for (const auto& [name, def] : names) {
    out += "| " + name + " |";
    if (!support.uses.contains(name)) {
      out += " " + elsewhere(name) + " |\n";
      continue;
    }
    for (const std::string& d : devices) {
      const DeviceUse* use = use_of(support, name, d);
      std::string cell;
      if (use != nullptr) {
        const bool elsewhere = use->kernels.empty();
        cell = elsewhere ? "on `reference`" : share(use->taken, use->asked);
        if (!elsewhere && use->taken < use->asked) cell += ": " + reasons(use->refusals, 1);
      }
      out += " " + cell + " |";
    }
    out += "\n";
  }
  return out;
}

std::string kernels_markdown(const Support& support, const std::string& operation) {
  if (!support.uses.contains(operation)) return "Runs: " + elsewhere(operation) + ".\n";
  std::string rows;
  for (const std::string& d : support.devices) {
    const DeviceUse* use = use_of(support, operation, d);
    if (use == nullptr) continue;
    for (const KernelUse& k : use->kernels) {
      rows += "| " + d + " | `" + k.name + "` | " + share(k.taken, k.asked) + " |";
      const std::string why = reasons(k.refusals, kMostReasons);
      rows += why.empty() ? " |\n" : " " + why + " |\n";
    }
    if (use->kernels.empty()) rows += "| " + d + " | none | | |\n";
  }
  return "Each kernel is asked for the operations of the cases that the kernels before it refused. Predictions "
         "widen float16\nto float32 first unless precision is exact.\n\n"
         "| Device | Kernel | Takes | Refuses |\n|---|---|---|---|\n" +
         rows;
}

}  // namespace moka::opdocs
