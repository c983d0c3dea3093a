#include "runtime/model.h"

#include <algorithm>
#include <random>

namespace moka::runtime {

namespace {

size_t count_operations(const ir::Block& block) {
  size_t n = 0;
  for (const auto& op : block.ops()) {
    n += !op->has_trait(ir::Trait::constant);
    for (size_t b = 0; b < op->block_count(); b++) n += count_operations(*op->block(b));
  }
  return n;
}

}  // namespace

Result<std::unique_ptr<Model>> Model::compile(import::ImportedModel imported, const CompileOptions& options) {
  std::unique_ptr<Model> m(new Model(std::move(imported), options));
  const import::ModelDescription& d = m->imported_.description;
  const std::string& name = options.function_name.empty() ? d.default_function : options.function_name;
  m->function_ = d.function(name);
  m->ir_ = m->imported_.program.find(name);
  if (m->function_ == nullptr || m->ir_ == nullptr) {
    std::string all;
    for (const auto& f : d.functions) all += cat(all.empty() ? "'" : ", '", f.name, "'");
    return fail(ErrorCode::not_found, "function: expected one of ", all, ", got '", name, "'");
  }
  std::erase_if(m->imported_.program.functions, [&](const auto& f) { return f.get() != m->ir_; });
  if (m->ir_->body().inputs().size() != m->function_->inputs.size() + m->function_->states.size())
    return fail(ErrorCode::malformed, "function '", name, "': the description has ", m->function_->inputs.size(),
                " inputs and ", m->function_->states.size(), " states, the program takes ",
                m->ir_->body().inputs().size());
  if (m->ir_->body().outputs().size() != m->function_->outputs.size())
    return fail(ErrorCode::malformed, "function '", name, "': the description has ", m->function_->outputs.size(),
                " outputs, the program returns ", m->ir_->body().outputs().size());
  m->operations_in_source_ = count_operations(m->ir_->body());
  if (!options.outputs.empty()) MOKA_TRY(m->select_outputs());
  passes::PipelineOptions pipeline{options.optimize, !options.exact_precision};
  MOKA_TRY(passes::run_pipeline(m->imported_.program, ops::table(), pipeline, m->remarks_));
  m->options_.plan.constants = std::make_shared<plan::ConstantPool>(options.plan.budget, options.packed, options.cache);
  return m;
}

Status Model::select_outputs() {
  auto& described = imported_.description.functions;
  auto& outputs =
      std::find_if(described.begin(), described.end(), [&](const auto& f) { return &f == function_; })->outputs;
  std::vector<import::FeatureDescription> kept;
  std::vector<ir::Value*> values;
  for (size_t i = 0; i < outputs.size(); i++) {
    if (std::find(options_.outputs.begin(), options_.outputs.end(), outputs[i].name) == options_.outputs.end())
      continue;
    kept.push_back(outputs[i]);
    values.push_back(ir_->body().outputs()[i]);
  }
  outputs = std::move(kept);
  ir_->body().set_outputs(std::move(values));
  const passes::Pass* sweep = passes::find("remove_dead_code");
  passes::PassContext context{*ir_, ops::table(), remarks_, "outputs"};
  return sweep->run(context);
}

Result<std::shared_ptr<const plan::Plan>> Model::plan(const std::vector<ir::Type>& inputs) const {
  return plans_.get(inputs, options_.plan.cached_shapes,
                    [&] { return plan::plan_block(ir_->body(), inputs, nullptr, options_.plan); });
}

Result<std::unique_ptr<Session>> Model::acquire(const std::vector<ir::Type>& inputs) const {
  auto plan = MOKA_TRY(this->plan(inputs));
  if (auto session = sessions_.take(*plan)) return session;
  // A plan that is new may have replaced another one.
  sessions_.keep_only(plans_.snapshot());
  auto s = std::make_unique<Session>(plan, inputs.size());
  s->context.options = &options_.plan;
  s->context.loop_limit = options_.loop_limit;
  s->context.random.state = (uint64_t{std::random_device{}()} << 32) | std::random_device{}();
  auto frame = Frame::make(plan, nullptr, s->context);
  if (!frame.ok()) {
    sessions_.give_up(*plan);
    return std::move(frame).error();
  }
  s->frame = std::move(frame).value();
  return s;
}

void Model::release(std::unique_ptr<Session> session) const {
  session->context.trace = nullptr;
  sessions_.give_back(std::move(session));
}

}  // namespace moka::runtime
