// SPDX-License-Identifier: Apache-2.0
#include "api/internal.h"
#include "base/copy.h"
#include "base/error.h"

namespace moka {

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
      return MOKA_TRY_IN(api::check_whole(api::view_of(value), state.dtype()), cat("state '", name, "'")), Status{};
    };
    api::unwrap(check());
    return ir::copy_array(api::view_of(value), state.replace().view());
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
