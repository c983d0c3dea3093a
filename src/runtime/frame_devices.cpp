// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>

#include "kernel/fault.h"
#include "runtime/frame.h"

namespace moka::runtime {

using plan::Place;

Result<kernel::Queue*> ExecContext::queue(const kernel::Device& device) {
  for (const auto& [d, q] : queues)
    if (d == &device) return q.get();
  queues.emplace_back(&device, MOKA_TRY_ON(device.open_queue(), device));
  return queues.back().second.get();
}

Status Frame::set_up_devices() {
  for (const plan::DeviceArena& a : plan_->memory.devices)
    device_arenas_.push_back(MOKA_TRY_ON(a.device->memory()->allocate(std::max<size_t>(a.bytes, 1)), *a.device,
                                         cat("the arena of ", kernel::place_of(*a.device))));
  running_.assign(sequence_.regions.size(), false);
  states_.resize(sequence_.inputs.size());
  pixels_.resize(sequence_.pixels.size());
  find_crossings();
  bool has_states = false;
  for (size_t i = 0; i < states_.size(); i++) has_states |= device_of_input(i) != nullptr;
  // Regions that use states are compiled for their buffers.
  if (!has_states) MOKA_TRY(compile_regions());
  for (size_t s = 0; s < steps_.size(); s++) {
    const plan::Step& step = sequence_.steps[s];
    if (const auto* up = std::get_if<plan::Upload>(&step))
      for (size_t k = 0; k < sequence_.pixels.size(); k++)
        if (sequence_.pixels[k].place == up->from) steps_[s].pixels = static_cast<int>(k);
    if (plan::crosses(step))
      for (int i : std::visit([&](const auto& one) { return plan::writes_of(sequence_, one); }, step))
        steps_[s].bytes = plan::bytes_of(sequence_.place(i));
  }
  return {};
}

const kernel::Device* Frame::device_of_input(size_t i) const { return sequence_.place(sequence_.inputs[i]).device; }

void Frame::set_state(size_t i, std::shared_ptr<kernel::Buffer> buffer) {
  if (states_[i] == buffer) return;
  submissions_.clear();
  compiled_.clear();
  states_[i] = std::move(buffer);
}

bool Frame::takes_pixels(size_t i) const {
  return std::any_of(sequence_.pixels.begin(), sequence_.pixels.end(), [&](const auto& p) { return p.input == i; });
}

bool Frame::takes_planes(size_t i) const {
  return std::any_of(sequence_.pixels.begin(), sequence_.pixels.end(),
                     [&](const auto& p) { return p.input == i && p.planes_read; });
}

void Frame::set_pixels(size_t i, const kernel::Pixels& pixels) {
  for (size_t k = 0; k < pixels_.size(); k++)
    if (sequence_.pixels[k].input == i) pixels_[k] = pixels;
}

void Frame::show_commands(bool shows) {
  submissions_.clear();
  compiled_.clear();
  command_labels_.clear();
  is_shown_ = shows;
}

size_t Frame::frame_room(size_t i) const {
  size_t room = 0;
  for (const plan::PixelInput& p : sequence_.pixels)
    if (p.input == i) room = room == 0 ? p.frame_room : std::min(room, p.frame_room);
  return room;
}

void Frame::set_frame(size_t i, const kernel::FramePicture& frame) {
  for (size_t k = 0; k < pixels_.size(); k++)
    if (sequence_.pixels[k].input == i) pixels_[k] = frame;
}

Status Frame::compile_regions() {
  submissions_.clear();
  for (size_t r = 0; r < sequence_.regions.size(); r++) MOKA_TRY(compile_region(r));
  return {};
}

kernel::BufferView Frame::buffer_view(int i) const {
  const Place& p = sequence_.place(i);
  kernel::BufferView v;
  v.dtype = p.type.dtype();
  v.shape = p.type.shape();
  v.layout = p.layout;
  if (p.is<plan::Prepared>()) return v;
  if (const auto* constant = std::get_if<plan::Constant>(&p.storage)) {
    v.buffer = constant->buffer.get();
    return v;
  }
  if (p.is<plan::External>()) {
    v.offset = p.delta;
    const auto input = std::find(sequence_.inputs.begin(), sequence_.inputs.end(), p.root) - sequence_.inputs.begin();
    v.buffer = states_[static_cast<size_t>(input)].get();
    return v;
  }
  if (const Bound* bound = bound_places_.empty() ? nullptr : &bound_places_[static_cast<size_t>(i)];
      bound != nullptr && bound->buffer != nullptr) {
    v.buffer = bound->buffer.get();
    v.offset = bound->offset;
    return v;
  }
  v.offset = plan_->memory.places[static_cast<size_t>(i)].offset;
  for (size_t a = 0; a < device_arenas_.size(); a++)
    if (plan_->memory.devices[a].device == p.device) v.buffer = device_arenas_[a].get();
  return v;
}

kernel::RegionStep Frame::region_step(const plan::Region& region, const plan::Run& step, const StepData& data) const {
  kernel::RegionStep out;
  out.choice = step.choice.get();
  for (int i : step.in) out.in.push_back(buffer_view(i));
  for (int i : step.out) out.out.push_back(buffer_view(i));
  if (step.choice->scratch > 0) {
    for (size_t a = 0; a < device_arenas_.size(); a++)
      if (plan_->memory.devices[a].device == region.device) out.scratch.buffer = device_arenas_[a].get();
    out.scratch.offset = data.scratch.own;
    out.scratch.dtype = ir::DType::uint8;
    out.scratch.shape = {static_cast<int64_t>(step.choice->scratch)};
  }
  out.call = &*data.call;
  out.epilogue = std::span(step.op->epilogue).subspan(std::min(step.choice->epilogues, step.op->epilogue.size()));
  return out;
}

std::vector<kernel::BufferView> Frame::kept_by(const plan::Region& region) const {
  std::vector<kernel::BufferView> kept;
  const auto visit_steps = [&](const plan::Region& of, auto&& visit) {
    for (const plan::RegionStep& step : of.steps)
      if (!std::holds_alternative<plan::Placed>(step)) std::visit(visit, step);
  };
  for (const plan::Region& other : sequence_.regions) {
    if (&other == &region || other.device != region.device) continue;
    visit_steps(other, [&](const auto& step) {
      for (int i : plan::reads_of(sequence_, step))
        if (const Place& p = sequence_.place(i); p.is<plan::InArena>() || p.is<plan::External>())
          kept.push_back(buffer_view(i));
    });
    // This region may compute parts of a concat in place, which no step reads.
    for (int i : other.downloads) kept.push_back(buffer_view(i));
  }
  // Later predictions read states.
  visit_steps(region, [&](const auto& step) {
    for (int i : plan::writes_of(sequence_, step))
      if (sequence_.place(i).is<plan::External>()) kept.push_back(buffer_view(i));
  });
  return kept;
}

Status Frame::compile_region(size_t r) {
  const plan::Region& region = sequence_.regions[r];
  std::vector<kernel::RegionStep> steps;
  for (size_t s = 0; s < region.steps.size(); s++) {
    if (const auto* run = std::get_if<plan::Run>(&region.steps[s])) {
      steps.push_back(region_step(region, *run, region_steps_[r][s]));
    } else if (const auto* convert = std::get_if<plan::DeviceConvert>(&region.steps[s])) {
      kernel::RegionStep& out = steps.emplace_back();
      out.choice = convert->choice.get();
      out.in.push_back(buffer_view(convert->from));
      out.out.push_back(buffer_view(convert->to));
    }
  }
  const std::vector<kernel::BufferView> kept = kept_by(region);
  std::vector<kernel::BufferView> uploads, downloads;
  for (int i : region.uploads) uploads.push_back(buffer_view(i));
  for (int i : region.downloads) downloads.push_back(buffer_view(i));
  kernel::Queue* queue = MOKA_TRY(context_.queue(*region.device));
  submissions_.push_back(MOKA_TRY_ON(queue->compile({steps, uploads, downloads, kept, is_shown_}), *region.device,
                                     cat("region ", r, " of ", kernel::place_of(*region.device))));
  return {};
}

std::byte* Frame::upload_at(const plan::Slot& upload) const {
  return submissions_[static_cast<size_t>(upload.region)]->upload(upload.index);
}

const std::byte* Frame::result_at(const plan::Slot& download) const {
  return submissions_[static_cast<size_t>(download.region)]->download(download.index);
}

Status Frame::execute(const plan::Upload& step, StepData& data) {
  if (data.bytes == 0) return {};
  if (data.pixels < 0) {
    if (std::byte* to = upload_at(step.to); to != data.in[0].data) std::memcpy(to, data.in[0].data, data.bytes);
    return {};
  }
  const auto& picture = pixels_[static_cast<size_t>(data.pixels)];
  if (const auto* frame = std::get_if<kernel::FramePicture>(&picture))
    kernel::pack_frame(*frame, upload_at(step.to));
  else
    kernel::pack(std::get<kernel::Pixels>(picture), upload_at(step.to));
  return {};
}

Status Frame::execute(const plan::Download& step, StepData& data) {
  const std::byte* from = result_at(step.from);
  if (data.bytes > 0 && from != data.out[0].data) std::memcpy(data.out[0].data, from, data.bytes);
  return {};
}

Status Frame::execute(const plan::Transfer& step, StepData& data) {
  if (data.bytes > 0) std::memcpy(upload_at(step.to), result_at(step.from), data.bytes);
  return {};
}

void Frame::wait_for_regions() {
  for (size_t r = 0; r < running_.size(); r++)
    if (running_[r]) {
      (void)submissions_[r]->wait();
      running_[r] = false;
    }
}

}  // namespace moka::runtime
