// SPDX-License-Identifier: Apache-2.0
#include "sampling/fitting.h"

#include <algorithm>

#include "api/internal.h"
#include "moka/input_sizes.h"

namespace moka {

namespace {

/// Importing an operation costs about as much as inferring the types of so many.
constexpr int64_t kImported = 10;

}  // namespace

Status Model::Impl::infers(const Features& inputs, int64_t& operations) const {
  Asked wanted;
  MOKA_TRY(ask(inputs, wanted));
  std::vector<ir::Type> types;
  const auto inferred = [&](const ir::Block& body, const plan::PlanOptions& options) -> Status {
    MOKA_TRY(input_types(body, MOKA_TRY(runtime::features_of(body, model->function())), wanted, types));
    const plan::ResolveLimits limits{plan::kEagerConstantBytes, plan::kEagerConstantBytes, &operations};
    MOKA_TRY(plan::resolve(body, types, nullptr, *options.constants, limits));
    return {};
  };
  const bool is_usual = std::all_of(wanted.sizes.begin(), wanted.sizes.end(),
                                    [&](const auto& s) { return sized.at(s.first).size == s.second; });
  if (is_usual) {
    const auto runs = MOKA_TRY(model_for(wanted.leading, {}, wanted.sizes));
    return inferred(runs->ir().body(), runs->plan_options());
  }
  // Passes do not change the types, so this program is only imported.
  operations += kImported * static_cast<int64_t>(model->operations_in_source());
  const bool sequences = wanted.leading.sequence != 1 || sequences_only, batches = wanted.leading.batch != 1;
  auto again = source->import({compile_options.plan.budget, sequences, batches, false, wanted.sizes});
  if (!again.ok()) return fail(ErrorCode::invalid_argument, "inputs of these sizes: ", again.error().message());
  const ir::Function* f = again->program.find(model->ir().name);
  if (f == nullptr) return fail(ErrorCode::internal, "function '", model->ir().name, "' is not imported again");
  plan::PlanOptions options = compile_options.plan;
  options.constants = std::make_shared<plan::ConstantPool>(options.budget, nullptr, nullptr);
  return inferred(f->body(), options);
}

const Model::Impl::Fitting& Model::Impl::fitting() const {
  std::call_once(fitting_searched, [&] {
    fitting_found = sampling::fit({function, sequences_only, [&](std::string_view input) { return takes_rank5(input); },
                                   [&](const Features& inputs, int64_t& visited) { return infers(inputs, visited); },
                                   [&](Error e) { return import::with_empty_input(std::move(e), model->function()); }});
  });
  return fitting_found;
}

std::string Model::Impl::fitting_sizes() const {
  const Fitting& found = fitting();
  return found.is_usual ? found.tried : cat("; sizes that fit: ", shape_choices(found.function, false)[0].name);
}

Error Model::Impl::with_fitting_sizes(Error error) const {
  if (error.code() != ErrorCode::invalid_argument && error.code() != ErrorCode::data) return error;
  if (fitting().is_usual) return import::with_empty_input(std::move(error), model->function());
  return fail(error.code(), error.to_string(), fitting_sizes());
}

Features Model::random_inputs(uint64_t seed) const {
  const Impl::Fitting& fitting = impl_->fitting();
  if (!fitting.refusal.empty()) api::raise(fail(fitting.code, fitting.refusal, fitting.tried));
  return moka::random_inputs(fitting.function, seed);
}

}  // namespace moka
