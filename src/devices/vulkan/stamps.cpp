// SPDX-License-Identifier: Apache-2.0
#include "devices/vulkan/stamps.h"

#include <algorithm>

#include "base/clock.h"

namespace moka::devices::vulkan {

namespace {

constexpr size_t kGaps = 64;  // of timestamps with nothing between, to measure the overhead

/// The host's time of a tick of the device: nanoseconds of the steady clock. nullopt: the driver does not say it.
std::optional<std::pair<uint64_t, int64_t>> calibration(const Context& context) {
  const Api& api = context.api();
  if (!context.features().calibrated || api.GetCalibratedTimestampsEXT == nullptr) return std::nullopt;
  VkCalibratedTimestampInfoEXT infos[2] = {{VK_STRUCTURE_TYPE_CALIBRATED_TIMESTAMP_INFO_EXT, nullptr, {}},
                                           {VK_STRUCTURE_TYPE_CALIBRATED_TIMESTAMP_INFO_EXT, nullptr, {}}};
  infos[0].timeDomain = VK_TIME_DOMAIN_DEVICE_EXT;
  infos[1].timeDomain = VK_TIME_DOMAIN_CLOCK_MONOTONIC_EXT;
  uint64_t times[2] = {}, deviation = 0;
  if (api.GetCalibratedTimestampsEXT(context.device(), 2, infos, times, &deviation) != VK_SUCCESS) return std::nullopt;
  return std::pair(times[0], static_cast<int64_t>(times[1]));
}

}  // namespace

Result<std::unique_ptr<Stamps>> Stamps::make(std::shared_ptr<Context> context, size_t commands) {
  std::unique_ptr<Stamps> s;
  if (context->features().timestamp_bits == 0) return s;
  s.reset(new Stamps(std::move(context)));
  s->count_ = static_cast<uint32_t>(commands) + 1;
  VkQueryPoolCreateInfo info{VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO};
  info.queryType = VK_QUERY_TYPE_TIMESTAMP;
  info.queryCount = s->count_;
  MOKA_VK(s->context_->api(), CreateQueryPool, s->context_->device(), &info, nullptr, &s->pool_);
  return s;
}

Stamps::~Stamps() {
  if (context_->is_own()) context_->api().DestroyQueryPool(context_->device(), pool_, nullptr);
}

void Stamps::begin(VkCommandBuffer to) {
  context_->api().CmdResetQueryPool(to, pool_, 0, count_);
  next_ = 0;
  add(to);
}

void Stamps::add(VkCommandBuffer to) {
  context_->api().CmdWriteTimestamp(to, VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, pool_, next_++);
}

std::vector<kernel::CommandTime> Stamps::read(int64_t waited) const {
  std::vector<uint64_t> ticks(count_);
  const VkResult r =
      context_->api().GetQueryPoolResults(context_->device(), pool_, 0, count_, count_ * sizeof(uint64_t), ticks.data(),
                                          sizeof(uint64_t), VK_QUERY_RESULT_64_BIT);
  if (r != VK_SUCCESS) return {};
  const Features& f = context_->features();
  const uint64_t mask = f.timestamp_bits >= 64 ? ~uint64_t{0} : (uint64_t{1} << f.timestamp_bits) - 1;
  const auto nanoseconds = [&](uint64_t from, uint64_t to) {
    // Differences of later and earlier ticks, which the counter's end may separate.
    return static_cast<double>((to - from) & mask) * f.timestamp_period;
  };
  const double all = nanoseconds(ticks.front(), ticks.back());
  auto first = static_cast<double>(waited) - all;
  if (const auto known = calibration(*context_))
    first = std::min(first, static_cast<double>(known->second) - nanoseconds(ticks.front(), known->first));
  std::vector<kernel::CommandTime> out;
  double from = first;
  for (size_t i = 1; i < ticks.size(); i++) {
    // A card may begin a command before the one before it ends, but not end it before.
    const double to = std::max(from, first + nanoseconds(ticks.front(), ticks[i]));
    out.push_back({static_cast<int64_t>(from), static_cast<int64_t>(to)});
    from = to;
  }
  return out;
}

Result<std::optional<kernel::TimestampFacts>> timestamp_facts(const std::shared_ptr<Context>& context) {
  std::optional<kernel::TimestampFacts> out;
  auto stamps = MOKA_TRY(Stamps::make(context, kGaps));
  if (stamps == nullptr) return out;
  const Api& api = context->api();
  auto pool = MOKA_TRY(CommandPool::make(context));
  VkCommandBufferBeginInfo begin{VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
  MOKA_VK(api, BeginCommandBuffer, pool->buffer(), &begin);
  stamps->begin(pool->buffer());
  for (size_t i = 0; i < kGaps; i++) stamps->add(pool->buffer());
  MOKA_VK(api, EndCommandBuffer, pool->buffer());
  MOKA_TRY(pool->submit());
  MOKA_TRY(pool->wait());
  std::vector<int64_t> gaps;
  for (const kernel::CommandTime& t : stamps->read(clock_nanoseconds())) gaps.push_back(t.to - t.from);
  if (gaps.empty()) return out;
  std::nth_element(gaps.begin(), gaps.begin() + static_cast<std::ptrdiff_t>(gaps.size() / 2), gaps.end());
  const Features& f = context->features();
  out = kernel::TimestampFacts{true, f.timestamp_period * 1e-9, static_cast<int>(f.timestamp_bits),
                               static_cast<double>(gaps[gaps.size() / 2]) * 1e-9, f.calibrated};
  return out;
}

}  // namespace moka::devices::vulkan
