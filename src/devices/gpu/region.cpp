// SPDX-License-Identifier: Apache-2.0
#include "devices/gpu/region.h"

#include "devices/gpu/common/conversions.h"

namespace moka::devices::gpu {

namespace {

constexpr size_t kStagingAlignment = 64;

size_t aligned(size_t bytes) { return (bytes + kStagingAlignment - 1) / kStagingAlignment * kStagingAlignment; }

/// Where the host writes and reads the values of a region.
class HostSide {
 public:
  HostSide(const GpuDevice& device, RecordedRegion& region) : memory_(*device.memory()), region_(region) {}

  /// Bytes of staging memory for values that the host does not see.
  size_t staging(std::span<const Use> values) const {
    size_t bytes = 0;
    for (const Use& u : values)
      if (address(u) == nullptr) bytes += aligned(u.bytes);
    return bytes;
  }
  /// The staging memory of a value, which is added to `seen`. No buffer: the host sees the value itself.
  Use stage(const Use& u, std::vector<std::byte*>& seen) {
    if (std::byte* at = address(u)) {
      seen.push_back(at + u.offset);
      return {};
    }
    const Use there{region_.staging.get(), used_, u.bytes, u.element};
    seen.push_back(memory_.host_address(*region_.staging) + used_);
    used_ += aligned(u.bytes);
    return there;
  }

 private:
  std::byte* address(const Use& u) const { return memory_.host_address(*u.buffer); }

  const kernel::Memory& memory_;
  RecordedRegion& region_;
  size_t used_ = 0;
};

}  // namespace

Result<RecordedRegion> record_region(const GpuDevice& device, const kernel::Region& region) {
  RecordedRegion out;
  CommandRecorder recorder(device);
  HostSide host(device, out);
  std::vector<Use> up, down;
  for (const BufferView& v : region.uploads) up.push_back(Use::write(v));
  for (const BufferView& v : region.downloads) down.push_back(Use::read(v));
  if (const size_t bytes = host.staging(up) + host.staging(down); bytes > 0)
    out.staging = MOKA_TRY(device.allocate_staging(bytes));
  for (const Use& u : down) recorder.keep(u);
  for (const BufferView& v : region.kept) recorder.keep(Use::read(v));
  for (const Use& u : up)
    if (const Use from = host.stage(u, out.uploads); from.buffer != nullptr) {
      recorder.copy(from, u);
      out.counters.uploaded += u.bytes;
    }
  for (size_t i = 0; i < region.steps.size(); i++) {
    const kernel::RegionStep& step = region.steps[i];
    recorder.begin_step(static_cast<uint32_t>(i));
    if (step.choice != nullptr && step.choice->record) {
      const RecordArgs args{step.in, step.out, step.scratch, step.call};
      MOKA_TRY(step.choice->record(recorder, args));
    }
    if (!step.epilogue.empty()) MOKA_TRY(record_epilogues(recorder, step.epilogue, step.out[0]));
  }
  recorder.begin_step(std::nullopt);
  for (const Use& u : down)
    if (const Use to = host.stage(u, out.downloads); to.buffer != nullptr) {
      recorder.copy(u, to);
      out.counters.downloaded += u.bytes;
    }
  out.commands = MOKA_TRY(recorder.finish());
  for (const Command& c : out.commands) {
    out.counters.barriers += c.waits;
    ++(c.run.code == nullptr ? out.counters.copies : out.counters.dispatches);
  }
  return out;
}

}  // namespace moka::devices::gpu
