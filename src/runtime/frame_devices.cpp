#include <algorithm>
#include <cstring>

#include "runtime/frame.h"

namespace moka::runtime {

using plan::Place;
using plan::Step;
using plan::Storage;

Result<kernel::Queue*> ExecContext::queue(const kernel::Device& device) {
  for (const auto& [d, q] : queues)
    if (d == &device) return q.get();
  queues.emplace_back(&device, MOKA_TRY(device.open_queue()));
  return queues.back().second.get();
}

Status Frame::set_up_devices() {
  for (const plan::DeviceArena& a : plan_->device_arenas)
    device_arenas_.push_back(MOKA_TRY_IN(a.device->memory()->allocate(std::max<size_t>(a.bytes, 1)),
                                         cat("the arena of device '", a.device->name(), "'")));
  running_.assign(plan_->regions.size(), false);
  for (size_t r = 0; r < plan_->regions.size(); r++) MOKA_TRY(compile_region(r));
  return {};
}

kernel::BufferView Frame::buffer_view(int i) const {
  const Place& p = plan_->places[static_cast<size_t>(i)];
  kernel::BufferView v;
  v.dtype = p.type.dtype();
  v.shape = p.type.shape();
  v.layout = p.layout;
  if (p.storage == Storage::prepared) return v;
  if (p.storage == Storage::constant) {
    v.buffer = p.buffer.get();
    return v;
  }
  for (size_t a = 0; a < device_arenas_.size(); a++)
    if (plan_->device_arenas[a].device == p.device) v.buffer = device_arenas_[a].get();
  v.offset = p.offset;
  return v;
}

Status Frame::compile_region(size_t r) {
  const plan::Region& region = plan_->regions[r];
  std::vector<kernel::RegionStep> steps;
  for (int s : region.steps) {
    const Step& step = plan_->steps[static_cast<size_t>(s)];
    kernel::RegionStep out;
    out.choice = step.choice.get();
    for (int i : step.in) out.in.push_back(buffer_view(i));
    for (int i : step.out) out.out.push_back(buffer_view(i));
    if (step.choice->scratch > 0) {
      for (size_t a = 0; a < device_arenas_.size(); a++)
        if (plan_->device_arenas[a].device == region.device) out.scratch.buffer = device_arenas_[a].get();
      out.scratch.offset = step.scratch_offset;
      out.scratch.dtype = ir::DType::uint8;
      out.scratch.shape = {static_cast<int64_t>(step.choice->scratch)};
    }
    if (step.op != nullptr) {
      out.call = &*steps_[static_cast<size_t>(s)].call;
      out.epilogue = std::span(step.op->epilogue).subspan(std::min(step.choice->epilogues, step.op->epilogue.size()));
    }
    steps.push_back(std::move(out));
  }
  std::vector<kernel::BufferView> uploads, downloads;
  for (int i : region.uploads) uploads.push_back(buffer_view(i));
  for (int i : region.downloads) downloads.push_back(buffer_view(i));
  kernel::Queue* queue = MOKA_TRY(context_.queue(*region.device));
  submissions_.push_back(MOKA_TRY_IN(queue->compile({steps, uploads, downloads}),
                                     cat("region ", r, " of device '", region.device->name(), "'")));
  return {};
}

void Frame::run_transfer(const Step& step, StepData& data) {
  const plan::Region& region = plan_->regions[static_cast<size_t>(step.region)];
  kernel::Submission& submission = *submissions_[static_cast<size_t>(step.region)];
  const bool up = plan_->places[static_cast<size_t>(step.in[0])].device == nullptr;
  const int place = up ? step.out[0] : step.in[0];
  const std::vector<int>& crossing = up ? region.uploads : region.downloads;
  const auto slot = static_cast<size_t>(std::find(crossing.begin(), crossing.end(), place) - crossing.begin());
  const Place& p = plan_->places[static_cast<size_t>(place)];
  const auto bytes = kernel::storage_bytes(p.type.dtype(), p.type.shape(), p.layout);
  if (!bytes.ok() || *bytes == 0) return;
  if (up)
    std::memcpy(submission.upload(slot), data.in[0].data, *bytes);
  else
    std::memcpy(data.out[0].data, submission.download(slot), *bytes);
}

void Frame::wait_for_regions() {
  for (size_t r = 0; r < running_.size(); r++)
    if (running_[r]) {
      (void)submissions_[r]->wait();
      running_[r] = false;
    }
}

}  // namespace moka::runtime
