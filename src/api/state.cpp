#include <algorithm>
#include <cstring>

#include "api/bound_states.h"
#include "base/copy.h"
#include "base/error.h"

namespace moka {

namespace api {

Result<runtime::StateValue*> BoundStates::find(const std::string& name, const ir::Type& type) {
  for (auto& [n, value] : state_->impl().buffers)
    if (n == name && value.dtype() == type.dtype() && value.shape() == type.shape()) return &value;
  return fail(ErrorCode::invalid_argument, "state '", name, "': expected ", type,
              ", which the given state does not have: states are made by new_state of the same model");
}

Status BoundStates::bind(const std::string& name, const ir::Type& type, runtime::Frame& frame, size_t input,
                         bool keep) {
  runtime::StateValue& value = *MOKA_TRY(find(name, type));
  if (const kernel::Device* device = frame.device_of_input(input)) {
    frame.set_state(input, MOKA_TRY_IN(value.on_device(*device), cat("state '", name, "'")));
    on_devices_.emplace_back(&value, device);
    return {};
  }
  ir::Tensor& host = *MOKA_TRY_IN(value.write(), cat("state '", name, "'"));
  if (keep && std::none_of(before_.begin(), before_.end(), [&](const auto& b) { return b.first == &value; })) {
    ir::Tensor copy = MOKA_TRY(ir::Tensor::uninitialized(host.dtype(), host.shape()));
    copy_bytes(copy.mutable_data(), host.data(), host.bytes());
    before_.emplace_back(&value, std::move(copy));
  }
  frame.set_state(input, host.mutable_data());
  return {};
}

void BoundStates::computed() {
  for (auto [value, device] : on_devices_) value->computed();
}

void BoundStates::failed(const runtime::Frame& frame, const Error& error, bool is_replayed) {
  for (auto [value, device] : on_devices_) {
    const bool is_lost = error.code() == ErrorCode::device_lost && error.device() == device->name();
    if (frame.has_submitted() || is_lost) value->failed(is_lost || is_replayed);
  }
  on_devices_.clear();
  for (auto& [value, copy] : before_) copy_bytes(value->replace().mutable_data(), copy.data(), copy.bytes());
}

}  // namespace api

runtime::StateValue& State::Impl::at(std::string_view name) {
  for (auto& [n, value] : buffers)
    if (n == name) return value;
  throw Exception(ErrorKind::not_found, cat("state '", name, "': not a state of the model"));
}

MultiArray State::read(std::string_view name) const {
  const auto content = [&]() -> Result<const ir::Tensor*> {
    return MOKA_TRY_IN(impl_->at(name).read(), cat("state '", name, "'"));
  };
  return api::unwrap(api::to_array(api::unwrap(content())->view()));
}

void State::write(std::string_view name, const MultiArray& value) {
  runtime::StateValue& state = impl_->at(name);
  if (api::lacks_data(value))
    throw Exception(ErrorKind::invalid_argument,
                    cat("state '", name, "': expected values, got a MultiArray without data"));
  if (ir::Shape(std::span<const int64_t>(value.shape())) == state.shape()) {
    const auto check = [&]() -> Status {
      return MOKA_TRY_IN(api::check_whole(value, state.dtype()), cat("state '", name, "'")), Status{};
    };
    api::unwrap(check());
    return api::copy_array(value, state.replace().view());
  }
  throw Exception(ErrorKind::invalid_argument,
                  cat("state '", name, "': expected shape ", state.shape(), ", got ", describe(value)));
}

State State::copy() const {
  auto copied = std::make_shared<Impl>();
  for (auto& [name, value] : impl_->buffers) {
    const ir::Tensor& from = *api::unwrap(value.read());
    ir::Tensor to = api::unwrap(ir::Tensor::uninitialized(from.dtype(), from.shape()));
    copy_bytes(to.mutable_data(), from.data(), from.bytes());
    copied->buffers.emplace_back(name, runtime::StateValue(std::move(to)));
  }
  return State(std::move(copied));
}

std::vector<std::string> State::names() const {
  std::vector<std::string> out;
  for (const auto& [n, t] : impl_->buffers) out.push_back(n);
  return out;
}

}  // namespace moka
