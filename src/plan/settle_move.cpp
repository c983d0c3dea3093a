// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "kernel/fault.h"
#include "kernel/layout.h"
#include "kernel/memory.h"
#include "kernel/pixels.h"
#include "plan/settle.h"

namespace moka::plan {

namespace {

/// One thread does smaller conversions.
constexpr size_t kParallelBytes = 512 * 1024;

std::unique_ptr<kernel::KernelChoice> conversion(const kernel::Device& device, const Place& from,
                                                 kernel::Layout layout) {
  return device.convert(from.type.dtype(), from.type.shape(), from.layout, layout).choice;
}

Result<size_t> bytes_in(const Place& p, kernel::Layout layout) {
  return kernel::storage_bytes(p.type.dtype(), p.type.shape(), layout);
}

}  // namespace

Result<int> Settler::place_at(int from, const Spot& to) {
  std::vector<int> passed;
  int at = from;
  while (Spot{place(at).device, place(at).layout} != to) {
    passed.push_back(at);
    auto known = copies_.find({at, to});
    if (known == copies_.end()) {
      const Spot next = MOKA_TRY(next_hop(at, to));
      known = copies_.find({at, next});
      if (known == copies_.end()) {
        const int there = MOKA_TRY(hop(at, next));
        known = copies_.emplace(std::pair(at, next), there).first;
      }
    }
    at = known->second;
  }
  for (int i : passed) copies_[{i, to}] = at;
  return at;
}

/// A value is converted on the side where fewer bytes cross then.
Result<Spot> Settler::next_hop(int i, const Spot& to) {
  const Place& p = place(i);
  const Spot as_it_is{to.device, p.layout}, converted{p.device, to.layout};
  if (p.device == to.device) {
    const bool can_convert = p.device == nullptr || conversion(*p.device, p, to.layout) != nullptr;
    return can_convert ? converted : Spot{nullptr, p.layout};
  }
  if (p.device != nullptr && to.device != nullptr) return next_hop_between(i, to);
  if (p.device == nullptr && p.is<Constant>()) return to;
  if (p.layout == to.layout) return to;
  if (p.device == nullptr && unpacking(i, *to.device) && conversion(*to.device, p, to.layout)) return as_it_is;
  const size_t bytes = MOKA_TRY(bytes_in(p, p.layout)), wanted = MOKA_TRY(bytes_in(p, to.layout));
  if (p.device == nullptr)
    return wanted < bytes || conversion(*to.device, p, to.layout) == nullptr ? converted : as_it_is;
  return writer_of(i) == open_ && wanted <= bytes && conversion(*p.device, p, to.layout) != nullptr ? converted
                                                                                                    : as_it_is;
}

/// From one device to another one. What the host has already, and what no device converts, goes on from there.
Result<Spot> Settler::next_hop_between(int i, const Spot& to) {
  const Place& p = place(i);
  const Spot on_host{nullptr, p.layout};
  if (copies_.contains({i, on_host})) return on_host;
  if (p.layout == to.layout) return to;
  const size_t bytes = MOKA_TRY(bytes_in(p, p.layout)), wanted = MOKA_TRY(bytes_in(p, to.layout));
  if (writer_of(i) == open_ && wanted <= bytes && conversion(*p.device, p, to.layout) != nullptr)
    return Spot{p.device, to.layout};
  return conversion(*to.device, p, to.layout) != nullptr ? Spot{to.device, p.layout} : on_host;
}

Result<int> Settler::hop(int i, const Spot& to) {
  if (place(i).device == to.device) return convert(i, to);
  if (to.device == nullptr) return download(i);
  if (place(i).device != nullptr) return transfer(i, *to.device);
  if (place(i).is<Constant>()) return upload_constant(i, to);
  if (auto unpacks = unpacking(i, *to.device)) return upload_pixels(i, *to.device, std::move(unpacks));
  return upload(i, *to.device);
}

Result<int> Settler::convert(int i, const Spot& to) {
  Place p;
  p.type = place(i).type;
  p.layout = to.layout;
  p.device = to.device;
  if (const Device* device = to.device; device != nullptr) {
    auto choice = conversion(*device, place(i), to.layout);
    const int r = region_of(*device), out = add_place(std::move(p));
    writer_of(out) = r;
    region(r).steps.emplace_back(DeviceConvert{i, out, std::move(choice)});
    return out;
  }
  const size_t bytes = MOKA_TRY(bytes_in(p, to.layout));
  const int out = add_place(std::move(p));
  add_step(Convert{i, out, bytes > kParallelBytes ? options_.threads : 1});
  return out;
}

std::unique_ptr<kernel::KernelChoice> Settler::unpacking(int i, const Device& device) {
  const ir::Type& type = place(i).type;
  if (std::find(sequence_.inputs.begin(), sequence_.inputs.end(), i) == sequence_.inputs.end() ||
      !options_.image_planes || !type.is_tensor() || type.rank() < 3)
    return nullptr;
  const auto order = options_.image_planes(*place(i).value);
  return order ? device.unpack(*order, type).choice : nullptr;
}

int Settler::upload_pixels(int i, const Device& device, std::unique_ptr<kernel::KernelChoice> unpacks) {
  const size_t of_pixels = kernel::packed_pixels(place(i).type.shape());
  const size_t room = device.takes_frames() ? options_.frame_bytes : 0;
  Place packed;
  packed.type = ir::Type::tensor(ir::DType::uint8, ir::Shape{static_cast<int64_t>(std::max(of_pixels, room))});
  packed.storage = External{};
  const int pixels = add_place(std::move(packed)), there = upload(pixels, device);
  const auto input = std::find(sequence_.inputs.begin(), sequence_.inputs.end(), i) - sequence_.inputs.begin();
  sequence_.pixels.push_back({static_cast<size_t>(input), pixels, true, room});
  Place planes;
  planes.type = place(i).type;
  planes.device = &device;
  const int out = add_place(std::move(planes));
  writer_of(out) = open_;
  region(open_).steps.emplace_back(DeviceConvert{there, out, std::move(unpacks)});
  copies_[{out, Spot{}}] = i;
  return out;
}

std::pair<int, Slot> Settler::add_upload(int i, const Device& device) {
  Place p;
  p.type = place(i).type;
  p.layout = place(i).layout;
  p.device = &device;
  const int r = region_of(device), out = add_place(std::move(p));
  writer_of(out) = r;
  region(r).uploads.push_back(out);
  copies_[{out, Spot{place(i).device, place(i).layout}}] = i;
  return {out, Slot{r, region(r).uploads.size() - 1}};
}

int Settler::upload(int i, const Device& device) {
  const auto [out, slot] = add_upload(i, device);
  add_step(Upload{i, slot});
  return out;
}

Result<int> Settler::upload_constant(int i, const Spot& to) {
  Place p;
  p.type = place(i).type;
  p.layout = to.layout;
  p.device = to.device;
  const size_t bytes = MOKA_TRY(bytes_in(p, to.layout));
  const kernel::Memory& memory = *to.device->memory();
  std::shared_ptr<const kernel::Buffer> buffer;
  if (const ir::Value* v = pooled(place(i))) {
    const std::string key = cat(to.device->name(), ".", kernel::to_string(to.layout));
    buffer = MOKA_TRY_ON(options_.constants->upload_plain(*v, memory, key, p.type, place(i).layout, to.layout, bytes),
                         *to.device);
  } else {
    const auto fill = [&](std::byte* data) -> Status {
      const ir::Tensor& held = std::get<Constant>(place(i).storage).tensor;
      const ir::Tensor from = held.empty_handle() ? MOKA_TRY(options_.constants->get(*place(i).value, false)) : held;
      const ir::TensorView out{p.type.dtype(), p.type.shape(), data};
      kernel::convert_layout(from.view(), place(i).layout, out, to.layout, 0,
                             kernel::convert_tiles(p.type.shape(), place(i).layout, to.layout));
      return {};
    };
    buffer = MOKA_TRY_ON(upload_to(memory, bytes, fill), *to.device);
  }
  p.storage = Constant{{}, std::move(buffer)};
  return add_place(std::move(p));
}

Result<Slot> Settler::result_slot(int i) {
  const Device* device = place(i).device;
  // A state is not written by a region before its end.
  const int r = place(i).is<External>() ? region_of(*device) : writer_of(i);
  if (r < 0) return fail(ErrorCode::internal, "a constant of device '", device->name(), "' is read elsewhere");
  if (r == open_) close_region();
  if (!waited_[static_cast<size_t>(r)]) {
    waited_[static_cast<size_t>(r)] = true;
    add_step(Wait{r});
  }
  std::vector<int>& given = region(r).downloads;
  const auto index = static_cast<size_t>(std::find(given.begin(), given.end(), i) - given.begin());
  if (index == given.size()) given.push_back(i);
  return Slot{r, index};
}

Result<int> Settler::download(int i) {
  const Slot slot = MOKA_TRY(result_slot(i));
  Place p;
  p.type = place(i).type;
  p.layout = place(i).layout;
  const int out = add_place(std::move(p));
  add_step(Download{slot, out});
  copies_[{out, Spot{place(i).device, place(i).layout}}] = i;
  return out;
}

Result<int> Settler::transfer(int i, const Device& device) {
  const Slot from = MOKA_TRY(result_slot(i));
  const auto [out, to] = add_upload(i, device);
  add_step(Transfer{from, to});
  return out;
}

int Settler::region_of(const Device& device) {
  if (open_ >= 0 && region(open_).device == &device) return open_;
  close_region();
  open_ = static_cast<int>(sequence_.regions.size());
  sequence_.regions.push_back({&device, {}, {}, {}});
  waited_.push_back(false);
  return open_;
}

void Settler::close_region() {
  if (open_ < 0) return;
  add_step(Launch{open_});
  open_ = -1;
}

}  // namespace moka::plan
