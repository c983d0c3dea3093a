// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "api/internal.h"
#include "base/clock.h"

namespace moka {

namespace {

const runtime::Parameter& parameter_named(const runtime::Model& model, std::string_view name) {
  const auto& all = model.parameters();
  const auto it = std::find_if(all.begin(), all.end(), [&](const auto& p) { return p.name == name; });
  if (it != all.end()) return *it;
  constexpr size_t kMost = 10;
  std::string some;
  for (size_t i = 0; i < std::min(all.size(), kMost); i++) some += cat(i == 0 ? "'" : ", '", all[i].name, "'");
  throw Exception(ErrorKind::not_found,
                  cat("parameter '", name, "': ",
                      all.empty() ? "the model was loaded without parameters (ModelConfiguration::parameters)"
                                  : cat("expected one of ", some, all.size() > kMost ? ", ..." : "")));
}

bool is_finite(const ir::Tensor& t) {
  for (int64_t i = 0; i < t.count(); i++)
    if (!std::isfinite(ir::load_f64(t.view(), i))) return false;
  return true;
}

/// A copy of `value` in the type of the parameter.
ir::Tensor converted(const runtime::Parameter& p, const MultiArray& value) {
  const ir::Shape shape(value.shape());
  if (!(shape == p.type.shape()))
    throw Exception(ErrorKind::invalid_argument,
                    cat("parameter '", p.name, "': expected shape ", p.type.shape(), ", got ", shape));
  ir::Tensor to = api::unwrap(ir::Tensor::uninitialized(p.type.dtype(), shape));
  ir::copy_array(api::view_of(value), to.view());
  if (p.type.dtype() == api::to_ir(value.type()) || is_finite(to)) return to;
  const ir::Tensor given = api::unwrap(ir::Tensor::uninitialized(ir::DType::fp64, shape));
  ir::copy_array(api::view_of(value), given.view());
  for (int64_t i = 0; i < to.count(); i++)
    if (const double x = ir::load_f64(given.view(), i); std::isfinite(x) && !std::isfinite(ir::load_f64(to.view(), i)))
      throw Exception(ErrorKind::invalid_argument, cat("parameter '", p.name, "': expected numbers that ",
                                                       p.type.dtype(), " has, got ", x, " at element ", i));
  return to;
}

}  // namespace

std::vector<ParameterDescription> Model::parameters() const {
  std::vector<ParameterDescription> out;
  for (const runtime::Parameter& p : impl_->model->parameters()) {
    const auto dims = p.type.shape().dims();
    out.push_back({p.name, api::unwrap(api::from_ir(p.type.dtype())), {dims.begin(), dims.end()}});
  }
  return out;
}

MultiArray Model::parameter(std::string_view name) const {
  const ir::Tensor value = api::unwrap(impl_->model->parameter_value(parameter_named(*impl_->model, name)));
  return api::unwrap(api::to_array(value.view()));
}

Model Model::with_parameters(const std::map<std::string, MultiArray>& values) const {
  std::map<std::string, ir::Tensor> tensors;
  for (const auto& [name, value] : values)
    tensors.emplace(name, converted(parameter_named(*impl_->model, name), value));
  return Model(Impl::with_parameters(*impl_, tensors));
}

std::shared_ptr<const Model::Impl> Model::Impl::with_parameters(const Impl& from,
                                                                const std::map<std::string, ir::Tensor>& values) {
  const auto start = Clock::now();
  auto impl = std::make_shared<Impl>();
  static_cast<api::LoadedModel&>(*impl) = from;
  impl->present.set_model(from.present.model());
  // Nothing gives a budget back, so versions that are gone would count for this one.
  auto& budget = impl->compile_options.plan.budget;
  if (budget) budget = std::make_shared<MemoryBudget>(budget->limit());
  for (const auto& [name, value] : values) impl->compile_options.parameter_values.insert_or_assign(name, value);
  impl->model = from.model->with_parameters(values, budget);
  impl->times.total = seconds_since(start);
  return impl;
}

}  // namespace moka
