// SPDX-License-Identifier: Apache-2.0
#include "explaining/capture_commands.h"

#include <algorithm>

#include "kernel/device.h"
#include "kernel/layout.h"

namespace moka::explaining {

namespace {

using plan::Place;

constexpr int64_t kMostNumbers = 16;  // of a constant parameter that is shown

/// A small constant as text; empty: it is none.
std::string text_of(const ir::Value* v) {
  const ir::Constant* c = v == nullptr ? nullptr : v->constant();
  if (c == nullptr || !v->type.is_tensor() || c->tensor.empty_handle() || c->tensor.count() > kMostNumbers) return {};
  const ir::TensorView t = c->tensor.view();
  std::string out;
  for (int64_t i = 0; i < t.count(); i++) {
    if (i > 0) out += ", ";
    if (t.dtype == ir::DType::string)
      out += t.as<std::string>()[i];
    else if (t.dtype == ir::DType::boolean)
      out += ir::load_f64(t, i) != 0 ? "true" : "false";
    else if (ir::bits(t.dtype) < 8)
      return {};
    else
      out += cat(ir::load_f64(t, i));
  }
  return out;
}

/// The name of the parameter that argument `arg` of a call is of.
std::string parameter_of(const plan::Call& call, size_t arg) {
  const auto& params = call.op->version().params;
  for (size_t p = 0; p + 1 < call.first_arg.size() && p < params.size(); p++)
    if (arg >= call.first_arg[p] && arg < call.first_arg[p + 1]) {
      const bool is_one = call.first_arg[p + 1] - call.first_arg[p] == 1;
      return is_one ? params[p].name : cat(params[p].name, "[", arg - call.first_arg[p], "]");
    }
  return {};
}

CapturedOperation operation_of(const plan::Plan& plan, const plan::Call& call) {
  CapturedOperation out;
  out.name = call.op->name;
  out.type = call.op->type_name();
  if (call.op->source != nullptr) {
    out.source_name = call.op->source->name;
    out.source_type = call.op->source->type;
  }
  for (size_t i = 0; i < call.in.size(); i++)
    if (std::string text = text_of(plan.sequence.place(call.in[i]).value); !text.empty())
      out.parameters.emplace_back(parameter_of(call, i), std::move(text));
  return out;
}

std::string role_of(const Place& place, const ir::Value* value) {
  if (place.is<plan::Prepared>()) return "weights";
  if (place.is<plan::Constant>()) return "constant";
  if (place.type.is_state()) return "state";
  if (value == nullptr) return "intermediate";
  if (value->producer() == nullptr) return value->block() != nullptr ? "input" : "constant";
  return value->returned_by().empty() ? "intermediate" : "output";
}

/// What a reader learns of a place.
void describe_place(const plan::Sequence& sequence, const plan::CopiedValues& values, int i, CapturedBuffer& b) {
  const Place& place = sequence.place(i);
  const ir::Value* value = values.of(i);
  if (value != nullptr) b.value = value->name;
  b.role = role_of(place, value);
  b.type = cat(place.type);
  if (place.type.is_tensor()) b.layout = kernel::to_string(place.layout);
}

/// The arguments of a kernel of the host.
class HostBuffers {
 public:
  HostBuffers(const plan::Plan& plan, DescribedStep& to) : plan_(plan), values_(plan.sequence), to_(to) {}

  void add(const plan::KernelCall& call) {
    for (size_t i = 0; i < call.in.size(); i++) {
      const int at = call.in[i];
      const std::string name = parameter_of(call, i);
      bool is_packed = false;
      for (const kernel::PackedInput& p : call.choice->packed) {
        if (p.arg != static_cast<int>(i)) continue;
        CapturedBuffer& b = start(at, name, {StepValue::Of::packed, i});
        b.role = "weights";
        b.form = p.form;
        b.bytes = p.bytes;
        b.layout.clear();
        b.offset = 0;
        is_packed = true;
      }
      const ir::Value* value = plan_.sequence.place(at).value;
      if (!is_packed && !plan_.sequence.place(at).is<plan::Prepared>() && text_of(value).empty())
        start(at, name, {StepValue::Of::input, i});
    }
    for (size_t i = 0; i < call.out.size(); i++)
      start(call.out[i], call.out.size() == 1 ? "result" : cat("result[", i, "]"), {StepValue::Of::result, i});
  }
  void add(int place, const std::string& name, bool is_written) {
    start(place, name, {is_written ? StepValue::Of::result : StepValue::Of::input, 0});
  }

 private:
  CapturedBuffer& start(int at, const std::string& name, StepValue from) {
    to_.values.push_back(from);
    CapturedBuffer& b = to_.command.buffers.emplace_back();
    b.name = name;
    b.is_written = from.of == StepValue::Of::result;
    describe_place(plan_.sequence, values_, at, b);
    b.bytes = plan::bytes_of(plan_.sequence.place(at));
    if (plan_.sequence.place(at).is<plan::InArena>() && static_cast<size_t>(at) < plan_.memory.places.size())
      b.offset = plan_.memory.places[static_cast<size_t>(at)].offset;
    return b;
  }

  const plan::Plan& plan_;
  const plan::CopiedValues values_;
  DescribedStep& to_;
};

/// What every kernel of the host tells.
void tell_choice(const kernel::KernelChoice& c, kernel::Facts& facts) {
  if (c.internally_parallel)
    facts.add("division", "by the kernel");
  else
    facts.add("pieces for threads", c.tiles);
  if (c.in_place >= 0) facts.add("may work in place", "yes");
  if (c.scratch > 0) facts.add("scratch", c.scratch, " bytes");
  if (c.thread_scratch > 0) facts.add("scratch of a thread", c.thread_scratch, " bytes");
}

void add_kernel(const plan::Plan& plan, const plan::KernelCall& call, CapturedCommand& to) {
  to.operations.push_back(operation_of(plan, call));
  for (const ir::Epilogue& e : call.op->epilogue) to.fused.push_back(e.origin);
  to.kernels.emplace_back(call.choice->kernel);
  if (to.note.empty()) to.note = call.choice->note;
  kernel::Facts facts;
  if (call.choice->facts) call.choice->facts(facts);
  if (call.device->memory() == nullptr) tell_choice(*call.choice, facts);
  for (kernel::Fact& f : facts.take()) to.facts.emplace_back(std::move(f.name), std::move(f.value));
}

class StepDescriber {
 public:
  StepDescriber(const plan::Plan& plan, DescribedStep& to) : plan_(plan), step_(to), to_(to.command) {}

  void operator()(const plan::Run& step) {
    to_.kind = "kernel";
    set_device(*step.device);
    to_.threads = step.threads;
    add_kernel(plan_, step, to_);
    HostBuffers(plan_, step_).add(step);
  }
  void operator()(const plan::Placed&) {}
  void operator()(const plan::Convert& step) {
    to_.kind = "convert";
    to_.device = "executor";
    to_.threads = step.threads;
    HostBuffers buffers(plan_, step_);
    buffers.add(step.from, "from", false);
    buffers.add(step.to, "to", true);
  }
  void operator()(const plan::Control& step) {
    to_.kind = "control";
    to_.device = "executor";
    to_.operations.push_back(operation_of(plan_, step));
  }
  void operator()(const plan::Upload& step) { cross("upload", step.to.region, step.from); }
  void operator()(const plan::Download& step) { cross("download", step.from.region, step.to); }
  void operator()(const plan::Transfer& step) {
    cross("transfer", step.to.region, plan_.sequence.region(step.from.region).downloads[step.from.index]);
  }
  void operator()(const plan::Launch& step) { of_region("submit", step.region); }
  void operator()(const plan::Wait& step) { of_region("wait", step.region); }

 private:
  void set_device(const kernel::Device& device) {
    to_.device = device.name();
    to_.unit = device.unit_name();
  }
  void of_region(const char* kind, int region) {
    to_.kind = kind;
    to_.region = region;
    set_device(*plan_.sequence.region(region).device);
  }
  void cross(const char* kind, int region, int place) {
    of_region(kind, region);
    to_.bytes = plan::bytes_of(plan_.sequence.place(place));
    HostBuffers(plan_, step_).add(place, "value", to_.kind == "download");
  }

  const plan::Plan& plan_;
  DescribedStep& step_;
  CapturedCommand& to_;
};

std::vector<std::pair<std::string, std::string>> pairs_of(const std::vector<kernel::Fact>& facts) {
  std::vector<std::pair<std::string, std::string>> out;
  for (const kernel::Fact& f : facts) out.emplace_back(f.name, f.value);
  return out;
}

/// The commands of one region.
class RegionDescriber {
 public:
  RegionDescriber(const runtime::Frame& frame, size_t region)
      : frame_(frame),
        sequence_(frame.plan().sequence),
        region_(sequence_.regions[region]),
        number_(static_cast<int>(region)),
        values_(sequence_),
        steps_(plan::computed_steps(region_)) {}

  /// The place that has exactly these bytes, first among what the command reads or writes; -1: none.
  int place_of(const kernel::ShownCommand& c, const kernel::BoundBuffer& b) const {
    if (b.is_unused) return -1;
    int found = -1;
    const auto look = [&](std::span<const int> places) {
      for (const int i : places) {
        if (found >= 0 || sequence_.place(i).is<plan::Prepared>()) continue;
        const kernel::BufferView v = frame_.buffer_view(i);
        if (v.buffer == b.buffer && v.offset == b.offset && plan::bytes_of(sequence_.place(i)) == b.bytes) found = i;
      }
    };
    if (c.steps.empty()) {
      look(region_.uploads);
      look(region_.downloads);
    }
    const auto look_in = [&](bool results) {
      for (size_t k = 0; k < c.steps.size(); k++) {
        const uint32_t s = c.steps[results ? c.steps.size() - 1 - k : k];
        if (s >= steps_.size()) continue;
        std::visit(
            [&](const auto& one) { look(results ? plan::writes_of(sequence_, one) : plan::reads_of(sequence_, one)); },
            *steps_[s]);
      }
    };
    look_in(b.is_written);
    look_in(!b.is_written);
    return found;
  }

  CapturedCommand described(const kernel::ShownCommand& c,
                            const std::function<int(const kernel::Buffer&, const std::string&)>& number_of) const {
    CapturedCommand out;
    out.kind = c.kind == kernel::ShownCommand::Kind::copy       ? "copy"
               : c.kind == kernel::ShownCommand::Kind::function ? "function"
                                                                : "dispatch";
    out.device = region_.device->name();
    out.unit = region_.device->unit_name();
    out.code = c.code;
    out.region = number_;
    out.waits = c.waits;
    out.groups = c.groups;
    out.group_size = c.group_size;
    out.constants = pairs_of(c.constants);
    out.parameters = pairs_of(c.parameters);
    out.parameter_bytes = c.parameter_bytes;
    for (const uint32_t s : c.steps) {
      if (s >= steps_.size()) continue;
      if (const auto* run = std::get_if<plan::Run>(steps_[s]))
        add_kernel(frame_.plan(), *run, out);
      else if (const auto* convert = std::get_if<plan::DeviceConvert>(steps_[s]))
        out.kernels.emplace_back(convert->choice->kernel);
    }
    for (const kernel::Fact& f : c.facts) out.facts.emplace_back(f.name, f.value);
    for (size_t i = 0; i < c.buffers.size(); i++) {
      CapturedBuffer& b = out.buffers.emplace_back();
      b.binding = static_cast<int>(i);
      std::string memory;
      describe(c, c.buffers[i], b, memory);
      b.memory = number_of(*c.buffers[i].buffer, memory);
    }
    return out;
  }

 private:
  void describe(const kernel::ShownCommand& c, const kernel::BoundBuffer& from, CapturedBuffer& b,
                std::string& memory) const {
    b.name = from.name;
    if (from.element != ir::DType::none) b.element = cat(from.element);
    b.is_written = from.is_written;
    b.is_unused = from.is_unused;
    b.offset = from.offset;
    b.bytes = from.bytes;
    const auto arenas = frame_.device_arenas();
    const bool in_arena =
        std::any_of(arenas.begin(), arenas.end(), [&](const auto& a) { return a.get() == from.buffer; });
    if (in_arena) memory = cat("arena of ", region_.device->name());
    if (const int i = place_of(c, from); i >= 0) {
      describe_place(sequence_, values_, i, b);
      if (!in_arena) memory = cat(b.role, b.value.empty() ? "" : " ", b.value);
      return;
    }
    if (in_arena) {
      b.role = from.is_unused ? "" : "scratch";
      return;
    }
    if (describe_weights(c, from, b)) {
      memory = cat("weights of ", b.value);
      return;
    }
    b.role = from.is_unused ? "" : "staging";
    memory = cat("staging of ", region_.device->name());
  }
  bool describe_weights(const kernel::ShownCommand& c, const kernel::BoundBuffer& from, CapturedBuffer& b) const {
    for (const uint32_t s : c.steps) {
      const auto* run = s < steps_.size() ? std::get_if<plan::Run>(steps_[s]) : nullptr;
      if (run == nullptr) continue;
      for (const kernel::PackedInput& p : run->choice->packed) {
        if (p.buffer != from.buffer || p.arg < 0 || static_cast<size_t>(p.arg) >= run->in.size()) continue;
        const Place& place = sequence_.place(run->in[static_cast<size_t>(p.arg)]);
        b.role = "weights";
        b.form = p.form;
        b.type = cat(place.type);
        b.value = place.value != nullptr && !place.value->name.empty()
                      ? place.value->name
                      : cat(run->op->name, ".", parameter_of(*run, static_cast<size_t>(p.arg)));
        return true;
      }
    }
    return false;
  }

  const runtime::Frame& frame_;
  const plan::Sequence& sequence_;
  const plan::Region& region_;
  const int number_;
  const plan::CopiedValues values_;
  const std::vector<const plan::RegionStep*> steps_;
};

}  // namespace

DescribedStep described_step(const plan::Plan& plan, const plan::Step& step) {
  DescribedStep out;
  std::visit(StepDescriber(plan, out), step);
  return out;
}

std::vector<CapturedCommand> described_commands(
    const runtime::Frame& frame, size_t region, const std::vector<kernel::ShownCommand>& commands,
    const std::function<int(const kernel::Buffer&, const std::string& name)>& number_of) {
  const RegionDescriber describer(frame, region);
  std::vector<CapturedCommand> out;
  for (const kernel::ShownCommand& c : commands) out.push_back(describer.described(c, number_of));
  return out;
}

int place_of(const runtime::Frame& frame, size_t region, const kernel::ShownCommand& command,
             const kernel::BoundBuffer& bound) {
  return RegionDescriber(frame, region).place_of(command, bound);
}

}  // namespace moka::explaining
