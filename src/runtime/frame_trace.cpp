// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdlib>

#include "kernel/device.h"
#include "kernel/layout.h"
#include "runtime/frame.h"

/// Records the steps of a frame. The lane Compute gets a slice for each run of steps on one device, which contains the
/// operations. The lane Data gets the transfers to and from devices.
namespace moka::runtime {

using plan::Place;
using plan::Step;

namespace {

std::string types_of(const plan::Sequence& sequence, std::span<const int> places) {
  std::string out;
  for (const int i : places) out += cat(out.empty() ? "" : ", ", sequence.place(i).type);
  return out;
}

/// Made once for each device and thread, because asking for a description takes longer than a small operation.
const trace::Label* stretch_label(const kernel::Device& device) {
  thread_local std::vector<std::pair<const kernel::Device*, const trace::Label*>> made;
  for (const auto& [of, label] : made)
    if (of == &device) return label;
  made.emplace_back(&device, trace::label(device.name(), "stretch",
                                          {{"unit", device.unit_name()}, {"hardware", device.description()}}));
  return made.back().second;
}

/// Makes the label of a step.
class Labels {
 public:
  Labels(const plan::Plan& plan, int64_t bytes)
      : sequence_(plan.sequence), decision_(plan.decision.get()), values_(sequence_), bytes_(bytes) {}

  const trace::Label* operator()(const plan::Convert& step) const {
    const Place &from = place(step.from), &to = place(step.to);
    return trace::label(name_of(step.from), "convert_layout",
                        {{"from", kernel::to_string(from.layout)},
                         {"to", kernel::to_string(to.layout)},
                         {"shape", cat(to.type)},
                         {"bytes", static_cast<int64_t>(plan::bytes_of(to))}});
  }
  const trace::Label* operator()(const plan::Upload& step) const {
    return crossing("upload", region(step.to.region).device->name(), step.from, false);
  }
  const trace::Label* operator()(const plan::Download& step) const {
    const plan::Region& r = region(step.from.region);
    return crossing("download", r.device->name(), r.downloads[step.from.index], true);
  }
  const trace::Label* operator()(const plan::Transfer& step) const {
    const plan::Region &from = region(step.from.region), &to = region(step.to.region);
    return crossing("transfer", cat(from.device->name(), " to ", to.device->name()), from.downloads[step.from.index],
                    false);
  }
  const trace::Label* operator()(const plan::Launch& step) const { return of_region("submit", step.region); }
  const trace::Label* operator()(const plan::Wait& step) const { return of_region("wait", step.region); }
  const trace::Label* operator()(const plan::KernelCall& step) const {
    return of_call(step, step.device->name(), step.choice->kernel, step.choice->note, step.threads);
  }
  const trace::Label* operator()(const plan::Control& step) const { return of_call(step, "executor", {}, {}, 1); }

 private:
  const Place& place(int i) const { return sequence_.place(i); }
  const plan::Region& region(int r) const { return sequence_.region(r); }
  std::string_view name_of(int i) const {
    const ir::Value* v = values_.of(i);
    return v != nullptr ? std::string_view(v->name) : std::string_view();
  }

  const trace::Label* crossing(std::string_view kind, std::string_view device, int from, bool is_download) const {
    const ir::Value* v = values_.of(from);
    std::string reason;
    if (decision_ != nullptr && v != nullptr)
      if (auto at = decision_->reasons.find({v, is_download}); at != decision_->reasons.end()) reason = at->second;
    return trace::label(name_of(from), kind, {{"device", device}, {"bytes", bytes_}, {"reason", reason}});
  }
  const trace::Label* of_region(std::string_view kind, int r) const {
    return trace::label(kind, kind, {{"device", region(r).device->name()}, {"region", r}});
  }
  const trace::Label* of_call(const plan::Call& step, std::string_view device, std::string_view kernel,
                              std::string_view note, int threads) const {
    std::string fused;
    for (const ir::Epilogue& e : step.op->epilogue) fused += cat(fused.empty() ? "" : ", ", e.origin);
    return trace::label(step.op->name, step.op->type_name(),
                        {{"device", device},
                         {"kernel", kernel},
                         {"shape", types_of(sequence_, step.out)},
                         {"fused", fused},
                         {"note", note},
                         {"threads", threads}});
  }

  const plan::Sequence& sequence_;
  const plan::Decision* const decision_;
  const plan::CopiedValues values_;
  const int64_t bytes_;
};

/// "8 x 4 x 1"; empty: not known.
std::string groups_text(const std::array<uint32_t, 3>& n) {
  return n[0] == 0 ? std::string() : cat(n[0], " x ", n[1], " x ", n[2]);
}

std::vector<const trace::Label*> command_labels(const plan::Sequence& sequence, const plan::Region& region,
                                                const std::vector<kernel::ShownCommand>& commands) {
  const std::vector<const plan::RegionStep*> steps = plan::computed_steps(region);
  const plan::CopiedValues values(sequence);
  std::vector<const trace::Label*> out;
  for (const kernel::ShownCommand& c : commands) {
    std::string operations, kernels;
    std::string name = c.kind == kernel::ShownCommand::Kind::copy ? "copy" : c.code;
    for (const uint32_t s : c.steps) {
      if (s >= steps.size()) continue;
      if (const auto* run = std::get_if<plan::Run>(steps[s])) {
        name = run->op->name;
        operations += cat(operations.empty() ? "" : ", ", run->op->name);
        kernels += cat(kernels.empty() ? "" : ", ", run->choice->kernel);
      } else if (const auto* convert = std::get_if<plan::DeviceConvert>(steps[s])) {
        const ir::Value* v = values.of(convert->from);
        name = v != nullptr ? v->name : "convert_layout";
        kernels += cat(kernels.empty() ? "" : ", ", convert->choice->kernel);
      }
    }
    out.push_back(trace::label(name, c.kind == kernel::ShownCommand::Kind::copy ? "copy" : "dispatch",
                               {{"device", region.device->name()},
                                {"kernel", kernels},
                                {"shader", c.code},
                                {"operations", operations},
                                {"workgroups", groups_text(c.groups)},
                                {"workgroup", groups_text(c.group_size)},
                                {"barrier", c.waits ? "yes" : "no"}}));
  }
  return out;
}

}  // namespace

const trace::Label* Frame::label_of(size_t s) {
  if (labels_.empty()) labels_.resize(steps_.size());
  const trace::Label*& slot = labels_[s];
  if (slot == nullptr) slot = std::visit(Labels(*plan_, static_cast<int64_t>(steps_[s].bytes)), sequence_.steps[s]);
  return slot;
}

const trace::Label* Frame::region_label(size_t r) {
  if (region_labels_.empty()) region_labels_.resize(sequence_.regions.size());
  const trace::Label*& slot = region_labels_[r];
  if (slot != nullptr) return slot;
  const plan::Region& region = sequence_.regions[r];
  std::string operations;
  int64_t count = 0;
  for (const plan::RegionStep& step : region.steps)
    if (const plan::Run* run = std::get_if<plan::Run>(&step))
      if (count++ < 64) operations += cat(operations.empty() ? "" : ", ", run->op->name);
  slot =
      trace::label(region.device->name(), "region",
                   {{"unit", region.device->unit_name()}, {"region", r}, {"count", count}, {"operations", operations}});
  return slot;
}

void Frame::record_begin(size_t s, int64_t at) {
  const Step& step = sequence_.steps[s];
  if (context_.depth == 0) {
    const plan::Run* run = std::get_if<plan::Run>(&step);
    const kernel::Device* device = run != nullptr ? run->device : nullptr;
    if (device == nullptr && context_.stretch == nullptr)
      for (const kernel::Device* d : context_.options->devices)
        if (device == nullptr && d->memory() == nullptr) device = d;
    if (device != nullptr && device != context_.stretch) {
      if (context_.stretch != nullptr) trace::end(trace::Lane::compute, at);
      trace::begin(trace::Lane::compute, stretch_label(*device), at);
      context_.stretch = device;
    }
  }
  if (plan::control_of(step) == nullptr) return;
  trace::begin(trace::Lane::compute, label_of(s), at);
  context_.depth++;
}

void Frame::record_end(size_t s, int64_t from, int64_t to) {
  const Step& step = sequence_.steps[s];
  if (plan::control_of(step) != nullptr) {
    context_.depth--;
    return trace::end(trace::Lane::compute, to);
  }
  if (std::holds_alternative<plan::Placed>(step) || is_shared(s)) return;
  trace::slice(plan::crosses(step) ? trace::Lane::data : trace::Lane::compute, label_of(s), from, to);
  if (submitted_.size() < sequence_.regions.size()) submitted_.resize(sequence_.regions.size());
  if (const auto* launch = std::get_if<plan::Launch>(&step)) submitted_[static_cast<size_t>(launch->region)] = from;
  if (const auto* wait = std::get_if<plan::Wait>(&step)) record_region(static_cast<size_t>(wait->region), to);
}

/// Submissions of a queue run one after the other: what a region waited for the one before it is not its time.
void Frame::record_region(size_t r, int64_t to) {
  int64_t from = submitted_[r];
  for (size_t other = 0; other < submitted_.size(); other++)
    if (other != r && sequence_.regions[other].device == sequence_.regions[r].device && context_.region_end > from)
      from = context_.region_end;
  context_.region_end = to;
  const trace::DeviceId device = trace::add_device(sequence_.regions[r].device->name());
  trace::slice(trace::Lane::compute, region_label(r), std::min(from, to), to, device);
  if (is_shown_) record_commands(r, device);
}

bool ExecContext::traces_commands() {
  static const bool traces = [] {
    const char* v = std::getenv("MOKA_TRACE_DISPATCHES");
    return v == nullptr || std::string_view(v) != "0";
  }();
  return traces;
}

/// What a device measured of a region that has run.
void Frame::record_commands(size_t r, trace::DeviceId device) {
  const std::vector<kernel::CommandTime> times = submissions_[r]->times();
  if (times.empty()) return;
  if (command_labels_.empty()) command_labels_.resize(sequence_.regions.size());
  std::vector<const trace::Label*>& labels = command_labels_[r];
  if (labels.empty()) labels = command_labels(plan_->sequence, sequence_.regions[r], submissions_[r]->commands());
  for (size_t i = 0; i < std::min(labels.size(), times.size()); i++)
    trace::slice(trace::Lane::gpu, labels[i], times[i].from, times[i].to, device);
}

}  // namespace moka::runtime
