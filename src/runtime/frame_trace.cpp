#include <algorithm>

#include "kernel/device.h"
#include "kernel/layout.h"
#include "runtime/frame.h"

/// Records the steps of a frame. The lane Compute gets a slice for each run of steps on one device, which contains the
/// operations. The lane Data gets the transfers to and from devices.
namespace moka::runtime {

using plan::Place;
using plan::Step;

namespace {

bool has_blocks(const Step& step) { return step.kind == Step::Kind::cond || step.kind == Step::Kind::loop; }

std::string types_of(const plan::Plan& plan, const std::vector<int>& places) {
  std::string out;
  for (const int i : places) out += cat(out.empty() ? "" : ", ", plan.places[static_cast<size_t>(i)].type);
  return out;
}

int64_t bytes_of(const Place& p) {
  const auto n = kernel::storage_bytes(p.type.dtype(), p.type.shape(), p.layout);
  return n.ok() ? static_cast<int64_t>(*n) : 0;
}

/// The value in a place; for a copy, the value that it is a copy of.
const ir::Value* value_of(const plan::Plan& plan, int place) {
  for (size_t hops = 0; place >= 0 && hops <= plan.steps.size(); hops++) {
    if (const ir::Value* v = plan.places[static_cast<size_t>(place)].value) return v;
    const auto from = std::find_if(plan.steps.begin(), plan.steps.end(), [place](const Step& s) {
      return s.op == nullptr && s.in.size() == 1 && s.out.size() == 1 && s.out[0] == place;
    });
    if (from == plan.steps.end()) return nullptr;
    place = from->in[0];
  }
  return nullptr;
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

}  // namespace

const trace::Label* Frame::label_of(size_t s) {
  if (labels_.empty()) labels_.resize(steps_.size());
  const trace::Label*& slot = labels_[s];
  if (slot != nullptr) return slot;
  const Step& step = plan_->steps[s];
  const auto place = [this](int i) -> const Place& { return plan_->places[static_cast<size_t>(i)]; };
  const auto named = [this](int i) {
    const ir::Value* v = value_of(*plan_, i);
    return v != nullptr ? std::string_view(v->name) : std::string_view();
  };
  switch (step.kind) {
    case Step::Kind::convert: {
      const Place &from = place(step.in[0]), &to = place(step.out[0]);
      slot = trace::label(named(step.in[0]), "convert_layout",
                          {{"from", kernel::to_string(from.layout)},
                           {"to", kernel::to_string(to.layout)},
                           {"shape", cat(to.type)},
                           {"bytes", bytes_of(to)}});
      break;
    }
    case Step::Kind::transfer: {
      const bool up = is_upload(step);
      const ir::Value* v = value_of(*plan_, step.in[0]);
      std::string reason;
      if (plan_->decision != nullptr && v != nullptr)
        if (auto at = plan_->decision->reasons.find({v, !up}); at != plan_->decision->reasons.end())
          reason = at->second;
      slot = trace::label(named(step.in[0]), up ? "upload" : "download",
                          {{"device", step.device->name()}, {"bytes", steps_[s].bytes}, {"reason", reason}});
      break;
    }
    case Step::Kind::submit:
    case Step::Kind::wait:
      slot = trace::label(step.kind == Step::Kind::submit ? "submit" : "wait",
                          step.kind == Step::Kind::submit ? "submit" : "wait",
                          {{"device", step.device->name()}, {"region", step.region}});
      break;
    default: {
      std::string fused;
      for (const ir::Epilogue& e : step.op->epilogue) fused += cat(fused.empty() ? "" : ", ", e.origin);
      slot = trace::label(step.op->name, step.op->type_name(),
                          {{"device", step.device != nullptr ? step.device->name() : "executor"},
                           {"kernel", step.choice ? std::string_view(step.choice->kernel) : std::string_view()},
                           {"shape", types_of(*plan_, step.out)},
                           {"fused", fused},
                           {"note", step.choice ? std::string_view(step.choice->note) : std::string_view()},
                           {"threads", step.threads}});
    }
  }
  return slot;
}

const trace::Label* Frame::region_label(size_t r) {
  if (region_labels_.empty()) region_labels_.resize(plan_->regions.size());
  const trace::Label*& slot = region_labels_[r];
  if (slot != nullptr) return slot;
  const plan::Region& region = plan_->regions[r];
  std::string operations;
  int64_t count = 0;
  for (const int s : region.steps)
    if (const Step& step = plan_->steps[static_cast<size_t>(s)]; step.op != nullptr) {
      if (count++ < 64) operations += cat(operations.empty() ? "" : ", ", step.op->name);
    }
  slot =
      trace::label(region.device->name(), "region",
                   {{"unit", region.device->unit_name()}, {"region", r}, {"count", count}, {"operations", operations}});
  return slot;
}

void Frame::record_begin(size_t s, int64_t at) {
  const Step& step = plan_->steps[s];
  if (context_.depth == 0) {
    const kernel::Device* device = step.kind == Step::Kind::run ? step.device : nullptr;
    if (device == nullptr && context_.stretch == nullptr)
      for (const kernel::Device* d : context_.options->devices)
        if (device == nullptr && d->memory() == nullptr) device = d;
    if (device != nullptr && device != context_.stretch) {
      if (context_.stretch != nullptr) trace::end(trace::Lane::compute, at);
      trace::begin(trace::Lane::compute, stretch_label(*device), at);
      context_.stretch = device;
    }
  }
  if (!has_blocks(step)) return;
  trace::begin(trace::Lane::compute, label_of(s), at);
  context_.depth++;
}

void Frame::record_end(size_t s, int64_t from, int64_t to) {
  const Step& step = plan_->steps[s];
  if (has_blocks(step)) {
    context_.depth--;
    return trace::end(trace::Lane::compute, to);
  }
  if (step.kind == Step::Kind::placed) return;
  trace::slice(step.kind == Step::Kind::transfer ? trace::Lane::data : trace::Lane::compute, label_of(s), from, to);
  if (submitted_.size() < plan_->regions.size()) submitted_.resize(plan_->regions.size());
  if (step.kind == Step::Kind::submit) submitted_[static_cast<size_t>(step.region)] = from;
  if (step.kind == Step::Kind::wait) record_region(static_cast<size_t>(step.region), to);
}

/// Submissions of a queue run one after the other: what a region waited for the one before it is not its time.
void Frame::record_region(size_t r, int64_t to) {
  int64_t from = submitted_[r];
  for (size_t other = 0; other < submitted_.size(); other++)
    if (other != r && plan_->regions[other].device == plan_->regions[r].device && context_.region_end > from)
      from = context_.region_end;
  context_.region_end = to;
  const trace::DeviceId device = trace::add_device(plan_->regions[r].device->name());
  trace::slice(trace::Lane::compute, region_label(r), std::min(from, to), to, device);
}

}  // namespace moka::runtime
