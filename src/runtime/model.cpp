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
  passes::PipelineOptions pipeline{options.optimize, !options.exact_precision};
  MOKA_TRY(passes::run_pipeline(m->imported_.program, ops::table(), pipeline, m->remarks_));
  m->options_.plan.constants = std::make_shared<plan::ConstantPool>(options.plan.budget, options.packed, options.cache);
  return m;
}

Result<std::shared_ptr<const plan::Plan>> Model::plan(const std::vector<ir::Type>& inputs) const {
  return plans_.get(inputs, options_.plan.cached_shapes,
                    [&] { return plan::plan_block(ir_->body(), inputs, nullptr, options_.plan); });
}

Result<std::unique_ptr<Model::Session>> Model::acquire(const std::vector<ir::Type>& inputs) const {
  auto plan = MOKA_TRY(this->plan(inputs));
  {
    std::lock_guard lock(mutex_);
    for (auto it = idle_.rbegin(); it != idle_.rend(); ++it)
      if ((*it)->plan == plan) {
        std::swap(*it, idle_.back());
        std::unique_ptr<Session> s = std::move(idle_.back());
        idle_.pop_back();
        return s;
      }
  }
  auto s = std::make_unique<Session>();
  s->plan = plan;
  s->context.options = &options_.plan;
  s->context.loop_limit = options_.loop_limit;
  s->context.random.state = (uint64_t{std::random_device{}()} << 32) | std::random_device{}();
  s->frame = MOKA_TRY(Frame::make(plan, nullptr, s->context));
  size_t n = inputs.size();
  s->staging.resize(n);
  s->string_staging.resize(n);
  s->dict_staging.resize(n);
  return s;
}

void Model::release(std::unique_ptr<Session> session) const {
  session->context.trace = nullptr;
  std::lock_guard lock(mutex_);
  size_t limit = std::max<size_t>(options_.plan.cached_shapes, 1);
  idle_.push_back(std::move(session));
  if (idle_.size() > 2 * limit) idle_.erase(idle_.begin());
}

}  // namespace moka::runtime
