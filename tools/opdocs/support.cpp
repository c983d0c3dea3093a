#include <algorithm>
#include <map>
#include <memory>
#include <set>

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

struct Answers {
  int asked = 0, taken = 0;
  std::map<std::string, int> refusals;
};

/// A device that remembers what it was asked.
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
    Answers& a = answers[call.call.version().def->name];
    ++a.asked;
    if (m.choice)
      ++a.taken;
    else
      ++a.refusals[m.refusal];
    return m;
  }

  mutable std::map<std::string, Answers> answers;

 private:
  const kernel::Device& device_;
};

/// Plans a case for the device and the reference, and runs it, as some operations are planned only then.
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

/// The reason given most often, the first of equals.
std::string reason(const Answers& a) {
  const std::pair<const std::string, int>* most = nullptr;
  for (const auto& r : a.refusals)
    if (most == nullptr || r.second > most->second) most = &r;
  std::string text = most == nullptr ? "" : most->first;
  std::replace(text.begin(), text.end(), '|', '/');
  return text;
}

std::string elsewhere(const OpVersion& v) {
  if (has(v.traits, Trait::control)) return "the executor runs its blocks";
  if (has(v.traits, Trait::constant)) return "a constant";
  if (has(v.traits, Trait::constexpr_weight)) return "expanded once, before running";
  if (has(v.traits, Trait::alias)) return "needs no kernel";
  return "no case runs it while predicting";
}

}  // namespace

std::string support_markdown(const std::string& golden) {
  std::vector<const kernel::Device*> devices;
  for (const kernel::Device* d : api::all_devices())
    if (d->rank() >= 0) devices.push_back(d);
  std::sort(devices.begin(), devices.end(), [](const auto* a, const auto* b) { return a->rank() < b->rank(); });
  const kernel::Device* last = devices.back();
  const auto cases = conformance::load_cases(golden);
  std::vector<std::unique_ptr<Recorder>> recorders;
  for (const kernel::Device* d : devices) {
    recorders.push_back(std::make_unique<Recorder>(*d));
    std::vector<const kernel::Device*> chain = {recorders.back().get()};
    if (d != last) chain.push_back(last);
    for (const conformance::Case& c : cases)
      if (const Status s = ask(c, chain); !s.ok())
        throw std::runtime_error(c.op + " " + c.name + ": " + s.error().to_string());
  }

  std::string out =
      "# What runs where\n\n<!-- Made by `make docs` from the conformance cases and the devices' kernels; do not edit. "
      "-->\n\n"
      "Of the operations in the cases of tests/conformance/golden, with their shapes and element types: how many each "
      "device\n"
      "takes when it is asked first, and the reason given most often when it refuses. What all devices refuse runs on "
      "`reference`.\n"
      "Made with the instructions that every processor has; one with more may take more.\n\n| Operation |";
  std::string rule = "|---|";
  for (const kernel::Device* d : devices) {
    out += " " + std::string(d->name()) + " |";
    rule += "---|";
  }
  out += "\n" + rule + "\n";
  std::map<std::string, const OpDef*> names;
  for (const OpDef& d : ops::table().defs()) names[d.name] = &d;
  for (const auto& [name, def] : names) {
    out += "| " + name + " |";
    bool asked = false;
    for (const auto& r : recorders) asked |= r->answers[name].asked > 0;
    if (!asked) {
      out += " " + elsewhere(def->versions.back()) + " |\n";
      continue;
    }
    for (const auto& r : recorders) {
      const Answers& a = r->answers[name];
      std::string cell = std::to_string(a.taken) + " of " + std::to_string(a.asked);
      if (a.taken == a.asked) cell = a.asked == 0 ? "" : "all " + std::to_string(a.asked);
      if (a.taken == 0 && a.asked > 0) cell = "none";
      if (a.taken < a.asked) cell += ": " + reason(a);
      out += " " + cell + " |";
    }
    out += "\n";
  }
  return out;
}

}  // namespace moka::opdocs
