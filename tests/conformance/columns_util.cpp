// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>

#include "conformance/round_trips_util.h"
#include "ir/op_def.h"
#include "ir/text_printer.h"
#include "kernel/kernel.h"
#include "passes/pass.h"
#include "runtime/frame.h"
#include "runtime/parameters.h"
#include "runtime/state_value.h"

namespace moka::api {
std::vector<const kernel::Device*> all_devices();
}

namespace moka::conformance {

using namespace ir;

namespace {

Result<Tensor> converted(const TensorView& v, DType dtype) {
  Tensor out = MOKA_TRY(Tensor::zeros(dtype, v.shape));
  const TensorView to = out.view();
  for (int64_t i = 0; i < v.count(); ++i) {
    if (dtype == DType::string)
      to.as<std::string>()[i] = v.as<std::string>()[i];
    else if (is_float(v.dtype))
      store_f64(to, i, load_f64(v, i));
    else
      store_i64(to, i, load_i64(v, i));
  }
  return out;
}

Result<std::vector<Tensor>> reference(const Case& c) { return interpret(c, MOKA_TRY(read_program(c))); }

struct PlannedOptions {
  bool every_device = true;  ///< false: `reference` only
  int threads = 1;
  bool reuse_buffers = true, optimize = false;
  std::string_view accelerator;  ///< a device with its own memory
  bool parameters = false;       ///< all weights are parameters, and the program has zeros instead of them
  int host_share = 0;  ///< percentage of the operations that stay on the host next to the accelerator, chosen by name
};

/// Makes all weights parameters whose initial value is 0. Returns their values by name.
Result<std::map<std::string, Tensor>> hide_weights(Function& f) {
  const std::string all = "*";
  if (Status marked = runtime::mark_parameters(f, std::span(&all, 1), ops::table());
      !marked.ok() && marked.error().code() != ErrorCode::not_found)
    return std::move(marked).error();
  std::map<std::string, Tensor> values;
  plan::ConstantPool pool(nullptr);
  for (const runtime::Parameter& p : runtime::parameters_of(f)) {
    values[p.name] = MOKA_TRY(pool.get(*p.value, false));
    p.value->producer()->set_constant("initial", MOKA_TRY(Tensor::zeros(p.type.dtype(), p.type.shape())));
  }
  return values;
}

const kernel::Device* device_named(std::string_view name) {
  const auto all = api::all_devices();
  const auto it = std::find_if(all.begin(), all.end(), [&](const auto* d) { return d->name() == name; });
  return it == all.end() ? nullptr : *it;
}

/// Plans for the inputs' shapes and runs twice, like a model. Returns the results of the second run.
Result<std::vector<Tensor>> planned(const Case& c, const PlannedOptions& how) {
  Program program = MOKA_TRY(read_program(c));
  Function& f = *program.functions[0];
  std::vector<DType> declared;
  for (const Value* v : f.body().outputs()) declared.push_back(v->type.dtype());
  std::vector<RuntimeValue> given = MOKA_TRY(ordered_inputs(c, f));
  std::map<std::string, Tensor> weights;
  if (how.parameters) weights = MOKA_TRY(hide_weights(f));
  if (how.optimize) {
    std::vector<passes::Remark> remarks;
    MOKA_TRY(passes::run_pipeline(program, ops::table(), {}, remarks));
  }
  plan::PlanOptions options;
  for (const kernel::Device* d : api::all_devices())
    if (d->rank() >= 0 && d->memory() == nullptr && d->unit() == kernel::ComputeUnit::cpu &&
        (how.every_device || d->name() == "reference"))
      options.devices.push_back(d);
  std::sort(options.devices.begin(), options.devices.end(),
            [](const auto* a, const auto* b) { return a->rank() < b->rank(); });
  if (const kernel::Device* accelerator = device_named(how.accelerator); accelerator != nullptr) {
    options.devices.insert(options.devices.begin(), accelerator);
    options.pinned_device = [accelerator, host = options.devices[1], share = how.host_share](const Op& op) {
      return std::hash<std::string>{}(op.name + "cut") % 100 < static_cast<size_t>(share) ? host : accelerator;
    };
  }
  options.states_on_devices = true;
  options.threads = how.threads;
  options.reuse_buffers = how.reuse_buffers;
  plan::ParameterValues parameters;
  for (const runtime::Parameter& p : runtime::parameters_of(f))
    if (const auto it = weights.find(p.name); it != weights.end()) parameters.emplace(p.value, it->second);
  options.constants = std::make_shared<plan::ConstantPool>(nullptr, nullptr, nullptr, std::move(parameters));
  std::vector<Type> types;
  std::vector<Tensor> inputs;
  for (size_t i = 0; i < given.size(); ++i) {
    const Value& v = *f.body().inputs()[i];
    const DType dtype = v.type.is_tensor() ? v.type.dtype() : given[i].tensor.dtype();
    inputs.push_back(MOKA_TRY(converted(given[i].tensor.view(), dtype)));
    types.push_back(v.type.is_state() ? v.type : Type::tensor(dtype, inputs.back().shape()));
  }
  auto plan = MOKA_TRY(plan::plan_block(f.body(), types, nullptr, options));
  runtime::ExecContext context;
  context.options = &options;
  auto frame = MOKA_TRY(runtime::Frame::make(plan, nullptr, context));
  bool stateful = false;
  std::vector<std::pair<size_t, runtime::StateValue>> states;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (types[i].is_state() && frame->device_of_input(i) != nullptr) {
      states.emplace_back(i, runtime::StateValue(inputs[i]));
      continue;
    }
    if (types[i].is_state())
      frame->set_state(i, inputs[i].mutable_data());
    else
      frame->set_input(i, inputs[i].data());
    stateful |= types[i].is_state();
  }
  const auto run = [&]() -> Status {
    // Each run has states of its own.
    std::vector<std::pair<size_t, runtime::StateValue>> own = states;
    for (auto& [i, state] : own) frame->set_state(i, MOKA_TRY(state.on_device(*frame->device_of_input(i))));
    return frame->run();
  };
  if (!stateful) MOKA_TRY(run());
  MOKA_TRY(run());
  std::vector<Tensor> out;
  for (size_t i = 0; i < declared.size(); ++i) out.push_back(MOKA_TRY(converted(frame->output(i), declared[i])));
  return out;
}

Result<std::vector<Tensor>> planned_reference(const Case& c) { return planned(c, {.every_device = false}); }
Result<std::vector<Tensor>> devices(const Case& c) { return planned(c, {}); }
Result<std::vector<Tensor>> threads(const Case& c) { return planned(c, {.threads = 3}); }
Result<std::vector<Tensor>> no_reuse(const Case& c) { return planned(c, {.reuse_buffers = false}); }
Result<std::vector<Tensor>> simulator(const Case& c) { return planned(c, {.accelerator = "simulator"}); }
Result<std::vector<Tensor>> cuts(const Case& c) {
  return planned(c, {.optimize = true, .accelerator = "simulator", .host_share = 50});
}
Result<std::vector<Tensor>> vulkan(const Case& c) { return planned(c, {.accelerator = "vulkan"}); }
Result<std::vector<Tensor>> vulkan_optimized(const Case& c) {
  return planned(c, {.optimize = true, .accelerator = "vulkan"});
}
Result<std::vector<Tensor>> vulkan_cuts(const Case& c) {
  return planned(c, {.optimize = true, .accelerator = "vulkan", .host_share = 50});
}
Result<std::vector<Tensor>> optimized(const Case& c) { return planned(c, {.optimize = true}); }
Result<std::vector<Tensor>> parameters(const Case& c) { return planned(c, {.optimize = true, .parameters = true}); }

}  // namespace

std::vector<Column> columns() {
  std::vector<Column> all = {{"reference", reference},
                             {"text", text, true},
                             {"message", message, true},
                             {"compiled", compiled, true},
                             {"decompiled", decompiled, true},
                             {"planned", planned_reference, true},
                             {"devices", devices},
                             {"threads", threads},
                             {"no_reuse", no_reuse},
                             {"optimized", optimized, false, true},
                             {"parameters", parameters, false, true},
                             {"simulator", simulator},
                             {"cuts", cuts, false, true}};
  // Sums of float32; exp, log and the like by the driver.
  constexpr double kDriver = 1e-4;
  if (const kernel::Device* gpu = device_named("vulkan"); gpu != nullptr && !gpu->kernels().empty()) {
    all.push_back({"vulkan", vulkan, false, true, kDriver});
    all.push_back({"vulkan_optimized", vulkan_optimized, false, true, kDriver});
    all.push_back({"vulkan_cuts", vulkan_cuts, false, true, kDriver});
  }
  return all;
}

Result<Case> widened(const Case& c) {
  Program program = MOKA_TRY(read_program(c));
  std::vector<passes::Remark> remarks;
  MOKA_TRY(passes::run_pipeline(program, ops::table(), {.optimize = false}, remarks));
  const Function& f = *program.functions[0];
  const std::vector<RuntimeValue> given = MOKA_TRY(ordered_inputs(c, f));
  Case out;
  out.op = c.op;
  out.program = print_text(program);
  for (size_t i = 0; i < given.size(); ++i) {
    const Value& v = *f.body().inputs()[i];
    const DType dtype = v.type.is_tensor() ? v.type.dtype() : given[i].tensor.dtype();
    out.inputs.push_back({v.name, MOKA_TRY(converted(given[i].tensor.view(), dtype))});
  }
  return out;
}

Result<std::vector<Tensor>> widened_reference(const Case& c) {
  const Program program = MOKA_TRY(read_program(c));
  std::vector<Tensor> out = MOKA_TRY(reference(MOKA_TRY(widened(c))));
  for (size_t i = 0; i < out.size(); ++i)
    out[i] = MOKA_TRY(converted(out[i].view(), program.functions[0]->body().outputs()[i]->type.dtype()));
  return out;
}

}  // namespace moka::conformance
