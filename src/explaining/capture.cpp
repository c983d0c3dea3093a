// SPDX-License-Identifier: Apache-2.0
#include "explaining/capture.h"

#include <algorithm>
#include <cmath>

#include "base/clock.h"
#include "kernel/device.h"
#include "kernel/layout.h"

namespace moka::explaining {

namespace {

double median_of(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1) return *middle;
  return (*middle + *std::max_element(values.begin(), middle)) / 2;
}

CapturedDevice facts_of(const kernel::Device& device, const std::optional<kernel::TimestampFacts>& times) {
  CapturedDevice out;
  out.name = device.name();
  out.unit = device.unit_name();
  out.description = device.description();
  if (!times) return out;
  out.has_timestamps = true;
  out.has_queries = times->are_queries;
  out.resolution = times->resolution;
  out.bits = times->bits;
  out.overhead = times->overhead;
  out.is_calibrated = times->is_calibrated;
  return out;
}

}  // namespace

Capturer::Capturer(KeepValue keep) : keep_(std::move(keep)) {}
Capturer::~Capturer() = default;

void Capturer::begin() {
  restart();
  start_ = clock_nanoseconds();
}

void Capturer::restart() {
  for (const auto& g : groups_)
    for (Command& c : g->commands) {
      c.current = 0;
      c.runs = 0;
      c.is_measured = false;
    }
}

void Capturer::end(bool counts) {
  for (const auto& g : groups_)
    for (Command& c : g->commands) {
      c.shown.runs = std::max(c.shown.runs, c.runs);
      if (counts && c.is_measured) c.samples.push_back(c.current);
    }
}

void Capturer::begin_values() {
  begin();
  values_ = true;
}

Capturer::Group& Capturer::group(const Key& key) {
  Group*& at = group_of_[key];
  if (at == nullptr) at = groups_.emplace_back(std::make_unique<Group>()).get();
  return *at;
}

Status Capturer::add_device(const kernel::Device& device, kernel::Queue* queue) {
  for (const CapturedDevice& d : out_.devices)
    if (d.name == device.name()) return {};
  out_.devices.push_back(
      facts_of(device, queue == nullptr ? std::optional(kernel::clock_facts()) : MOKA_TRY(queue->timestamps())));
  return {};
}

Result<Capturer::Command*> Capturer::described(const runtime::CapturedStep& step) {
  if (const auto* launch = std::get_if<plan::Launch>(&step.step))
    group({&step.plan, static_cast<size_t>(launch->region)});  // its commands stand before what follows
  Group& g = group({&step.step, SIZE_MAX});
  if (!g.is_filled) {
    g.is_filled = true;
    DescribedStep made = described_step(step.plan, step.step);
    Command& command = g.commands.emplace_back();
    command.shown = std::move(made.command);
    command.values = std::move(made.values);
    if (const auto* run = std::get_if<plan::Run>(&step.step)) MOKA_TRY(add_device(*run->device, nullptr));
  }
  return &g.commands[0];
}

Status Capturer::before(const runtime::CapturedStep& step) {
  if (std::holds_alternative<plan::Placed>(step.step)) return {};
  return read_values(step, false, *MOKA_TRY(described(step)));
}

Status Capturer::step(const runtime::CapturedStep& step) {
  const int64_t end = clock_nanoseconds();
  if (std::holds_alternative<plan::Placed>(step.step)) return {};
  Command& c = *MOKA_TRY(described(step));
  if (values_) return read_values(step, true, c);
  c.current += step.seconds;
  c.runs++;
  c.is_measured = true;
  c.shown.end = static_cast<double>(end - start_) * 1e-9;
  c.shown.start = std::max(0.0, c.shown.end - step.seconds);
  return {};
}

Capturer::Group& Capturer::filled(const runtime::CapturedRegion& region) {
  Group& g = group({&region.frame.plan(), region.region});
  if (g.is_filled) return g;
  g.is_filled = true;
  const auto number_of = [&](const kernel::Buffer& buffer, const std::string& name) {
    const auto [it, is_new] = memories_.try_emplace(&buffer, static_cast<int>(out_.memories.size()));
    if (is_new) out_.memories.push_back({name, buffer.bytes()});
    return it->second;
  };
  for (CapturedCommand& shown :
       described_commands(region.frame, region.region, region.submission.commands(), number_of))
    g.commands.emplace_back().shown = std::move(shown);
  return g;
}

Status Capturer::region(const runtime::CapturedRegion& region) {
  const kernel::Device& device = *region.frame.plan().sequence.regions[region.region].device;
  MOKA_TRY(add_device(device, &region.queue));
  Group& g = filled(region);
  const std::vector<kernel::CommandTime> times = region.submission.times();
  for (size_t i = 0; i < g.commands.size(); i++) {
    Command& c = g.commands[i];
    c.runs++;
    if (i >= times.size()) continue;
    c.current += static_cast<double>(times[i].to - times[i].from) * 1e-9;
    c.is_measured = true;
    c.shown.start = std::max(0.0, static_cast<double>(times[i].from - start_) * 1e-9);
    c.shown.end = std::max(c.shown.start, static_cast<double>(times[i].to - start_) * 1e-9);
  }
  return {};
}

Status Capturer::command(const runtime::CapturedRegion& region, size_t command, bool has_run) {
  Group& g = filled(region);
  return command < g.commands.size() ? read_values(region, command, has_run, g.commands[command]) : Status();
}

size_t Capturer::number_of(const Command& command) const {
  size_t n = 0;
  for (const auto& g : groups_)
    for (const Command& c : g->commands) {
      if (&c == &command) return n;
      n++;
    }
  return n;
}

Status Capturer::keep(Command& of, size_t buffer, const ir::TensorView& view, kernel::Layout layout) {
  ir::Tensor plain;
  if (!layout.is_row_major()) {
    plain = MOKA_TRY(ir::Tensor::zeros(view.dtype, view.shape));
    kernel::convert_layout(view, layout, plain.view(), {}, 0, kernel::convert_tiles(view.shape, layout, {}));
  }
  return keep_(of.shown, number_of(of), buffer, plain.empty_handle() ? view : plain.view());
}

Status Capturer::read_values(const runtime::CapturedStep& step, bool has_run, Command& into) {
  const plan::Sequence& sequence = step.plan.sequence;
  const auto keep_one = [&](size_t buffer, std::span<const int> places, std::span<const ir::TensorView> views,
                            size_t index) -> Status {
    if (index >= places.size() || index >= views.size() || views[index].data == nullptr) return {};
    const plan::Place& p = sequence.place(places[index]);
    if (!p.type.is_tensor() || p.type.dtype() == ir::DType::string || ir::bits(p.type.dtype()) < 8) return {};
    return keep(into, buffer, views[index], p.layout);
  };
  for (size_t i = 0; i < into.values.size(); i++) {
    const StepValue from = into.values[i];
    const bool is_input = from.of == StepValue::Of::input;
    if (from.of == StepValue::Of::packed || is_input == has_run) continue;
    MOKA_TRY(std::visit(
        [&](const auto& one) {
          return is_input ? keep_one(i, plan::reads_of(sequence, one), step.in, from.index)
                          : keep_one(i, plan::writes_of(sequence, one), step.out, from.index);
        },
        step.step));
  }
  return {};
}

Status Capturer::read_values(const runtime::CapturedRegion& region, size_t command, bool has_run, Command& into) {
  const plan::Plan& plan = region.frame.plan();
  const kernel::Memory& memory = *plan.sequence.regions[region.region].device->memory();
  const std::vector<kernel::ShownCommand> shown = region.submission.commands();
  const kernel::ShownCommand& c = shown[command];
  for (size_t i = 0; i < c.buffers.size(); i++) {
    const kernel::BoundBuffer& bound = c.buffers[i];
    CapturedBuffer& b = into.shown.buffers[i];
    if (bound.is_unused || bound.bytes == 0 || bound.is_written != has_run) continue;
    const bool is_constant = b.role == "weights" || b.role == "constant";
    if (const auto known = constants_.find({bound.buffer, bound.offset}); is_constant && known != constants_.end()) {
      b.summary = known->second.summary;
      b.file = known->second.file;
      continue;
    }
    std::vector<std::byte> bytes(bound.bytes);
    if (const std::byte* at = memory.host_address(*bound.buffer))
      std::copy_n(at + bound.offset, bytes.size(), bytes.data());
    else
      MOKA_TRY(memory.read(*bound.buffer, bound.offset, bytes.data(), bytes.size()));
    ir::TensorView view;
    kernel::Layout layout;
    if (const int at = place_of(region.frame, region.region, c, bound); at >= 0) {
      const plan::Place& place = plan.sequence.place(at);
      view.dtype = place.type.dtype();
      view.shape = place.type.shape();
      layout = place.layout;
    } else {
      view.dtype = bound.element == ir::DType::none ? ir::DType::uint8 : bound.element;
      view.shape = {static_cast<int64_t>(bytes.size() * 8 / static_cast<size_t>(ir::bits(view.dtype)))};
    }
    view.data = bytes.data();
    MOKA_TRY(keep(into, i, view, layout));
    if (is_constant) constants_[{bound.buffer, bound.offset}] = b;
  }
  return {};
}

Capture Capturer::take() {
  for (const auto& g : groups_)
    for (Command& c : g->commands) {
      if (!c.samples.empty()) {
        const auto [least, most] = std::minmax_element(c.samples.begin(), c.samples.end());
        c.shown.time = CapturedTime{static_cast<int>(c.samples.size()), 0, *least, *most};
        c.shown.time->median = median_of(std::move(c.samples));
      }
      out_.commands.push_back(std::move(c.shown));
    }
  return std::move(out_);
}

void add_dispatches(const Capture& capture, std::vector<PlannedOperation>& to) {
  for (const CapturedCommand& c : capture.commands) {
    if (c.kind != "dispatch" && c.kind != "copy" && c.kind != "function") continue;
    for (const CapturedOperation& op : c.operations)
      for (PlannedOperation& p : to) {
        if (p.region < 0 || p.name != op.name || p.type != op.type || p.device != c.device) continue;
        OperationDispatch& d = p.dispatches.emplace_back();
        d.code = c.code;
        d.groups = c.groups;
        if (c.time) d.seconds = c.time->median;
        for (const CapturedOperation& other : c.operations)
          if (&other != &op) d.also.push_back(other.name);
        break;
      }
  }
}

}  // namespace moka::explaining
