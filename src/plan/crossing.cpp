#include <algorithm>

#include "kernel/fault.h"
#include "kernel/layout.h"
#include "kernel/pixels.h"
#include "plan/arranger.h"

namespace moka::plan {

namespace {
/// One thread does smaller conversions.
constexpr size_t kParallelBytes = 512 * 1024;

std::unique_ptr<kernel::KernelChoice> conversion(const kernel::Device& device, const ir::Type& type,
                                                 kernel::Layout from, kernel::Layout to) {
  return device.convert(type.dtype(), type.shape(), from, to).choice;
}
}  // namespace

Status Arranger::materialize(int i) {
  Place& p = place(i);
  Constant* c = std::get_if<Constant>(&p.storage);
  if (c != nullptr && c->tensor.empty_handle() && p.device == nullptr && p.value->type.is_tensor())
    c->tensor = MOKA_TRY(options_.constants->get(*p.value, true));
  return {};
}

Result<int> Arranger::available_in(int i, const Device* device, Layout layout) {
  const bool at_home = place(i).device == device;
  if (device == nullptr && at_home) MOKA_TRY(materialize(i));
  if (at_home && place(i).layout == layout) return i;
  const auto key = std::tuple(i, device, layout);
  if (auto it = copies_.find(key); it != copies_.end()) return it->second;
  int out;
  if (at_home) {
    out = MOKA_TRY(convert(i, layout));
  } else if (device != nullptr && place(i).device == nullptr) {
    out =
        place(i).is<Constant>() ? MOKA_TRY(upload_constant(i, *device, layout)) : MOKA_TRY(upload(i, *device, layout));
  } else if (device != nullptr) {
    out = MOKA_TRY(available_in(MOKA_TRY(available_in(i, nullptr, place(i).layout)), device, layout));
  } else {
    const Place& from = place(i);
    const size_t bytes = MOKA_TRY(kernel::storage_bytes(from.type.dtype(), from.type.shape(), from.layout));
    const size_t wanted = MOKA_TRY(kernel::storage_bytes(from.type.dtype(), from.type.shape(), layout));
    if (writer_of(i) == open_ && wanted <= bytes && from.layout != layout &&
        conversion(*from.device, from.type, from.layout, layout) != nullptr)
      out = MOKA_TRY(available_in(MOKA_TRY(available_in(i, from.device, layout)), nullptr, layout));
    else if (from.layout != layout)
      out = MOKA_TRY(available_in(MOKA_TRY(available_in(i, nullptr, from.layout)), nullptr, layout));
    else
      out = MOKA_TRY(download(i));
  }
  copies_[key] = out;
  return out;
}

Result<int> Arranger::convert(int i, Layout layout) {
  Place to;
  to.type = place(i).type;
  to.layout = layout;
  to.device = place(i).device;
  if (const Device* device = to.device; device != nullptr) {
    auto choice = conversion(*device, to.type, place(i).layout, layout);
    if (choice == nullptr) {
      const int there = MOKA_TRY(available_in(i, nullptr, layout));
      return available_in(there, device, layout);
    }
    const int r = region_of(*device), out = add_place(std::move(to));
    writer_of(out) = r;
    region(open_).steps.emplace_back(DeviceConvert{i, out, std::move(choice)});
    return out;
  }
  const size_t bytes = MOKA_TRY(kernel::storage_bytes(to.type.dtype(), to.type.shape(), layout));
  const int out = add_place(std::move(to));
  add_step(Convert{i, out, bytes > kParallelBytes ? options_.threads : 1});
  return out;
}

std::unique_ptr<kernel::KernelChoice> Arranger::unpacking(int i, const Device& device) {
  const ir::Type& type = place(i).type;
  if (std::find(sequence_.inputs.begin(), sequence_.inputs.end(), i) == sequence_.inputs.end() ||
      !options_.image_planes || !type.is_tensor() || type.rank() < 3)
    return nullptr;
  const auto order = options_.image_planes(*place(i).value);
  return order ? device.unpack(*order, type).choice : nullptr;
}

int Arranger::upload_pixels(int i, const Device& device, std::unique_ptr<kernel::KernelChoice> unpacks) {
  Place packed;
  packed.type =
      ir::Type::tensor(ir::DType::uint8, ir::Shape{static_cast<int64_t>(kernel::packed_pixels(place(i).type.shape()))});
  packed.storage = External{};
  const int there = add_upload(add_place(std::move(packed)), device);
  const auto input = std::find(sequence_.inputs.begin(), sequence_.inputs.end(), i) - sequence_.inputs.begin();
  sequence_.pixels.push_back({static_cast<size_t>(input), region(open_).uploads.back().from});
  Place planes;
  planes.type = place(i).type;
  planes.device = &device;
  const int out = add_place(std::move(planes));
  writer_of(out) = open_;
  region(open_).steps.emplace_back(DeviceConvert{there, out, std::move(unpacks)});
  copies_[std::tuple(out, nullptr, Layout{})] = i;
  return out;
}

Result<int> Arranger::upload(int i, const Device& device, Layout layout) {
  if (auto unpacks = unpacking(i, device)) {
    if (layout.is_row_major()) return upload_pixels(i, device, std::move(unpacks));
    return available_in(MOKA_TRY(available_in(i, &device, {})), &device, layout);
  }
  if (place(i).layout != layout) {
    const ir::Type& type = place(i).type;
    const size_t bytes = MOKA_TRY(kernel::storage_bytes(type.dtype(), type.shape(), place(i).layout));
    const size_t wanted = MOKA_TRY(kernel::storage_bytes(type.dtype(), type.shape(), layout));
    if (wanted < bytes || conversion(device, type, place(i).layout, layout) == nullptr)
      return available_in(MOKA_TRY(available_in(i, nullptr, layout)), &device, layout);
    return available_in(MOKA_TRY(available_in(i, &device, place(i).layout)), &device, layout);
  }
  return add_upload(i, device);
}

int Arranger::add_upload(int i, const Device& device) {
  Place p;
  p.type = place(i).type;
  p.layout = place(i).layout;
  p.device = &device;
  const int r = region_of(device), out = add_place(std::move(p));
  writer_of(out) = r;
  add_step(Upload{open_, region(open_).uploads.size()});
  region(open_).uploads.push_back({i, out});
  copies_[std::tuple(out, nullptr, place(i).layout)] = i;
  return out;
}

Result<int> Arranger::upload_constant(int i, const Device& device, Layout layout) {
  Place p;
  p.type = place(i).type;
  p.layout = layout;
  p.device = &device;
  const size_t bytes = MOKA_TRY(kernel::storage_bytes(p.type.dtype(), p.type.shape(), layout));
  auto fill = [&](std::byte* to) -> Status {
    const ir::Tensor& held = std::get<Constant>(place(i).storage).tensor;
    const ir::Tensor from = held.empty_handle() ? MOKA_TRY(options_.constants->get(*place(i).value, false)) : held;
    const ir::TensorView out{p.type.dtype(), p.type.shape(), to};
    kernel::convert_layout(from.view(), place(i).layout, out, layout, 0,
                           kernel::convert_tiles(p.type.shape(), place(i).layout, layout));
    return {};
  };
  std::shared_ptr<const kernel::Buffer> buffer;
  if (const ir::Value* v = pooled(i))
    buffer = MOKA_TRY_ON(options_.constants->upload(*v, *device.memory(),
                                                    cat(device.name(), ".", kernel::to_string(layout)), bytes, fill),
                         device);
  else
    buffer = MOKA_TRY_ON(upload_to(*device.memory(), bytes, fill), device);
  p.storage = Constant{{}, std::move(buffer)};
  return add_place(std::move(p));
}

Result<int> Arranger::download(int i) {
  const Device* device = place(i).device;
  // A state is not written by a region before its end.
  const bool is_state = place(i).is<External>();
  const int r = is_state ? region_of(*device) : writer_of(i);
  if (r < 0) return fail(ErrorCode::internal, "a constant of device '", device->name(), "' is read by the host");
  if (r == open_) close_region();
  if (!waited_[static_cast<size_t>(r)]) {
    waited_[static_cast<size_t>(r)] = true;
    add_step(Wait{r});
  }
  Place p;
  p.type = place(i).type;
  p.layout = place(i).layout;
  const int out = add_place(std::move(p));
  add_step(Download{r, region(r).downloads.size()});
  region(r).downloads.push_back({i, out});
  copies_[std::tuple(out, device, place(i).layout)] = i;
  return out;
}

Status Arranger::return_to_host(const ir::Value* v) {
  auto it = sequence_.place_of.find(v);
  if (it == sequence_.place_of.end() || place(it->second).device == nullptr) return {};
  it->second = MOKA_TRY(on_host(it->second));
  home_[static_cast<size_t>(resolved_.find(v))] = it->second;
  return {};
}

int Arranger::region_of(const Device& device) {
  if (open_ >= 0 && region(open_).device == &device) return open_;
  close_region();
  open_ = static_cast<int>(sequence_.regions.size());
  sequence_.regions.push_back({&device});
  waited_.push_back(false);
  return open_;
}

void Arranger::close_region() {
  if (open_ < 0) return;
  add_step(Launch{open_});
  open_ = -1;
}

}  // namespace moka::plan
