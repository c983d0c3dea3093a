#include <algorithm>
#include <atomic>
#include <future>

#include "api/bound_states.h"
#include "api/internal.h"
#include "api/placed_outputs.h"
#include "base/whole.h"
#include "kernel/thread_pool.h"

namespace moka {

namespace {

/// The value named `name`, which callers usually pass as the i-th; nullptr when absent.
const FeatureValue* value_of(const Features& features, std::string_view name, size_t i) {
  if (i < features.size() && features.begin()[static_cast<std::ptrdiff_t>(i)].first == name)
    return &features.begin()[static_cast<std::ptrdiff_t>(i)].second;
  return features.find(name);
}

bool has_value(const FeatureValue* value) {
  return value != nullptr && !std::holds_alternative<std::monostate>(*value);
}

std::pair<const std::byte*, const std::byte*> extent(const MultiArray& a) {
  const auto* first = static_cast<const std::byte*>(a.data());
  return {first, first + static_cast<size_t>(a.count()) * size_of(a.type())};
}

/// Whether `array` shares memory with an input or another output, so that the prediction must not write to it early.
bool overlaps(const MultiArray& array, const Features& inputs, const Features& outputs) {
  const auto [first, last] = extent(array);
  for (const Features* some : {&inputs, &outputs})
    for (const auto& [name, value] : *some)
      if (const auto* other = std::get_if<MultiArray>(&value); other != nullptr && other != &array) {
        if (!other->is_contiguous()) return true;
        const auto [from, to] = extent(*other);
        if (first < to && from < last) return true;
      }
  return false;
}

/// The caller's array for an output, where the output can be computed in it.
void* room_for(const import::FeatureDescription& f, const ir::TensorView& view, FeatureValue* value,
               const Features& inputs, const Features& outputs) {
  auto* array = std::get_if<MultiArray>(value);
  if (array == nullptr || array->data() == nullptr || !array->is_contiguous() ||
      f.kind != import::FeatureKind::multi_array || api::to_ir(array->type()) != f.array.dtype ||
      f.array.dtype != view.dtype || view.shape.rank() == 0)
    return nullptr;
  const auto dims = view.shape.dims();
  if (!std::equal(dims.begin(), dims.end(), array->shape().begin(), array->shape().end())) return nullptr;
  return overlaps(*array, inputs, outputs) ? nullptr : array->data();
}

}  // namespace

Result<Model::Impl::Asked> Model::Impl::asked(const Features& inputs) const {
  const import::FunctionDescription& f = model->function();
  api::Leading leading;
  bool in_order = inputs.size() == f.inputs.size();
  for (size_t i = 0; const auto& [name, value] : inputs) {
    auto x = f.inputs.begin() + static_cast<std::ptrdiff_t>(std::min(i++, f.inputs.size()));
    if (x == f.inputs.end() || x->name != name) {
      in_order = false;
      x = std::find_if(f.inputs.begin(), f.inputs.end(), [&n = name](const auto& of) { return of.name == n; });
    }
    if (x != f.inputs.end()) {
      if (!x->array.takes_rank5) continue;
      const api::Leading own = api::leading_of(*x, value);
      leading = {std::max(leading.sequence, own.sequence), std::max(leading.batch, own.batch)};
      continue;
    }
    std::string all;
    for (const auto& of : f.inputs) all += cat(all.empty() ? "'" : ", '", of.name, "'");
    return fail(ErrorCode::invalid_argument, "input '", name, "': not an input of the model; expected ", all);
  }
  return Asked{leading, MOKA_TRY(sizes_of(inputs)), in_order};
}

Result<bool> Model::Impl::input_types(const ir::Block& body, const Features& inputs, const Asked& asked,
                                      std::vector<ir::Type>& types) const {
  const import::FunctionDescription& f = model->function();
  bool in_order = asked.in_order && body.inputs().size() == f.inputs.size();
  types.clear();
  for (const auto& v : body.inputs()) {
    const size_t i = types.size();
    const import::FeatureDescription& x = api::feature_of(f, *v, i);
    in_order = in_order && &x == &f.inputs[i];
    if (v->type.is_state()) {
      types.push_back(v->type);
      continue;
    }
    const FeatureValue* value =
        in_order ? &inputs.begin()[static_cast<std::ptrdiff_t>(i)].second : value_of(inputs, x.name, i);
    if (!has_value(value)) {
      if (!x.optional)
        return fail(ErrorCode::invalid_argument, "input '", x.name, "': expected ", api::to_public(x).formatted_type(),
                    ", got nothing");
      types.push_back(MOKA_TRY(api::default_type(x, v->type, asked.leading.batch)));
    } else {
      types.push_back(MOKA_TRY(api::input_type(x, v->type, *value)));
    }
  }
  return in_order;
}

Result<Model::Impl::Chosen> Model::Impl::choose(const Features& inputs, const std::vector<std::string>& outputs,
                                                std::vector<ir::Type>& types) const {
  Asked wanted = MOKA_TRY(asked(inputs));
  const api::Leading leading = wanted.leading;
  const std::shared_ptr<const runtime::Model> runs = MOKA_TRY(model_for(leading, outputs, std::move(wanted.sizes)));
  const bool in_order = MOKA_TRY(input_types(runs->ir().body(), inputs, wanted, types));
  return Chosen{runs, sequences_only || leading.sequence != 1 || leading.batch != 1, in_order};
}

namespace {

/// The input whose value is not among the categories that the model knows; nullptr: none.
const import::FeatureDescription* of_unknown_category(const import::FunctionDescription& f, const Features& inputs) {
  const auto known = [](const import::FeatureDescription& x, const std::string& text) {
    return std::find(x.categories.begin(), x.categories.end(), text) != x.categories.end();
  };
  for (const import::FeatureDescription& x : f.inputs) {
    const FeatureValue* value = inputs.find(x.name);
    if (x.categories.empty() || value == nullptr) continue;
    if (const auto* text = std::get_if<std::string>(value); text != nullptr && !known(x, *text)) return &x;
    if (const auto* number = std::get_if<int64_t>(value); number != nullptr && !known(x, cat(*number))) return &x;
    const auto is_known = [&](double v) { return is_int64(v) && known(x, cat(static_cast<int64_t>(v))); };
    if (const auto* number = std::get_if<double>(value); number != nullptr && !is_known(*number)) return &x;
    if (const auto* array = std::get_if<MultiArray>(value))
      for (int64_t i = 0; i < array->count(); ++i)
        if (!is_known(array->at(i))) return &x;
  }
  return nullptr;
}

}  // namespace

bool Model::Impl::takes_rank5(std::string_view input) const {
  for (const auto& x : model->function().inputs)
    if (x.name == input) return x.array.takes_rank5;
  return false;
}

namespace {

void show_remarks(const std::vector<std::string>& remarks, const PredictionOptions& options) {
  for (const std::string& remark : remarks) api::warn(remark);
  if (options.remarks == nullptr || remarks.empty()) return;
  // The items of a batch share the list.
  static std::mutex mutex;
  std::lock_guard lock(mutex);
  options.remarks->insert(options.remarks->end(), remarks.begin(), remarks.end());
}

}  // namespace

Status Model::Impl::predict(const Features& inputs, Features& outputs, const PredictionOptions& options,
                            runtime::TraceSink* trace, Ran* ran, bool observed) const {
  kernel::place_workers(configuration.processors);
  const bool is_recorded = trace::is_on();
  const trace::Use use(is_recorded ? traced() : 0);
  const trace::Span span(trace::Lane::activity, "predict");
  const trace::Counted counted(trace::Counter::predictions);
  const import::FunctionDescription& f = model->function();
  thread_local std::vector<ir::Type> types;
  const auto checked = [&]() -> Result<Chosen> {
    const trace::Span checking(trace::Lane::activity, "check inputs");
    return choose(inputs, options.outputs, types);
  };
  const Chosen chosen = MOKA_TRY(checked());
  const std::shared_ptr<const runtime::Model>& runs = chosen.model;
  const auto& wanted = runs->function().outputs;
  auto body_inputs = runs->ir().body().inputs();
  if (!f.states.empty() && options.state == nullptr)
    return fail(ErrorCode::invalid_argument, "the model keeps states: predict needs one made by new_state");

  struct InUse {
    std::atomic<bool>* flag = nullptr;
    ~InUse() {
      if (flag != nullptr) flag->store(false);
    }
  } in_use;
  if (!f.states.empty()) {
    if (options.state->impl().in_use.exchange(true))
      return fail(ErrorCode::invalid_argument, "the state is used by another prediction at the same time");
    in_use.flag = &options.state->impl().in_use;
  }

  auto acquired = runs->acquire(types, observed);
  if (!acquired.ok()) return with_fitting_sizes(std::move(acquired).error());
  auto session = std::move(acquired).value();
  api::BoundStates states(options.state);
  const auto compute = [&]() -> Status {
    for (size_t i = 0; i < body_inputs.size(); i++) {
      const import::FeatureDescription& x = chosen.in_order ? f.inputs[i] : api::feature_of(f, *body_inputs[i], i);
      void* data = nullptr;
      if (types[i].is_state()) {
        MOKA_TRY(states.bind(x.name, types[i].element(), *session->frame, i,
                             runs->may_replay() && !session->devices.empty()));
        continue;
      }
      const FeatureValue* value =
          chosen.in_order ? &inputs.begin()[static_cast<std::ptrdiff_t>(i)].second : value_of(inputs, x.name, i);
      if (has_value(value)) {
        if (const auto* image = std::get_if<Image>(value); image != nullptr && session->frame->takes_pixels(i)) {
          session->frame->set_pixels(i, api::pixels_of(*image));
          if (!session->frame->takes_planes(i)) continue;
        }
        data = MOKA_TRY(api::bind_input(x, types[i], *value, *session, i));
      } else {
        data = MOKA_TRY(api::bind_default(x, types[i], *session, i));
      }
      session->frame->set_input(i, data);
    }
    session->context.trace = trace;
    session->context.is_recorded = is_recorded;
    if (ran != nullptr) *ran = {runs, session->plan};
    auto returned = [&](size_t i, ir::TensorView view) {
      if (chosen.rank5) view.shape = api::output_shape(wanted[i], view.shape);
      return view;
    };
    api::PlacedOutputs placed(*session->frame);
    for (size_t i = 0; i < wanted.size(); i++) {
      const ir::TensorView* view = session->frame->placeable_output(i);
      if (view == nullptr) continue;
      if (FeatureValue* given = outputs.find(wanted[i].name); has_value(given)) {
        if (i < api::PlacedOutputs::kMostGiven)
          if (void* data = room_for(wanted[i], returned(i, *view), given, inputs, outputs)) placed.give(i, data);
        continue;
      }
      placed.add(i, MOKA_TRY(api::new_output(wanted[i], returned(i, *view))));
    }
    if (Status ran_through = runs->run(*session); !ran_through.ok())
      return api::reclassified(std::move(ran_through).error(), ErrorCode::data);
    states.computed();
    for (size_t i = 0; i < wanted.size(); i++) {
      if (placed.is_given(i)) continue;
      if (MultiArray* array = placed.find(i)) {
        outputs[wanted[i].name] = std::move(*array);
        continue;
      }
      MOKA_TRY(api::store_output(wanted[i], session->frame->output_type(i), returned(i, session->frame->output(i)),
                                 outputs[wanted[i].name]));
    }
    return {};
  };
  Status status = compute();
  while (!status.ok()) {
    const bool again = runs->can_replay(*session, status.error());
    states.failed(*session->frame, status.error(), again);
    if (!again) break;
    if (trace != nullptr) trace->restart();
    session = MOKA_TRY(runs->acquire_instead(std::move(session), types, status.error()));
    status = compute();
  }
  show_remarks(session->remarks, options);
  runs->release(std::move(session));
  if (!status.ok() && status.error().code() == ErrorCode::data)
    if (const auto* x = of_unknown_category(f, inputs))
      return std::move(status).error().in(cat("input '", x->name, "'"));
  packed_weights.save();
  if (status.ok()) MOKA_TRY(kernel_cache.save());
  if (status.ok()) tell_changes();
  return status;
}

void Model::predict(const Features& inputs, Features& outputs, const PredictionOptions& options) const {
  api::unwrap(impl_->predict(inputs, outputs, options, nullptr, nullptr));
}

Features Model::predict(const Features& inputs, const PredictionOptions& options) const {
  Features outputs;
  predict(inputs, outputs, options);
  return outputs;
}

std::future<Features> Model::predict_async(Features inputs) const {
  return std::async(std::launch::async, [model = *this, inputs = std::move(inputs)] { return model.predict(inputs); });
}

State Model::new_state() const {
  auto impl = std::make_shared<State::Impl>();
  for (const auto& v : impl_->model->ir().body().inputs())
    if (v->type.is_state()) {
      const ir::Type& t = v->type.element();
      size_t bytes = api::unwrap(ir::storage_bytes(t.dtype(), t.shape())), limit = impl_->configuration.memory_budget;
      if (limit > 0 && bytes > limit)
        throw Exception(ErrorKind::out_of_budget,
                        cat("state '", v->name, "' needs ", bytes, " bytes; the memory budget is ", limit));
      impl->buffers.emplace_back(v->name, runtime::StateValue(api::unwrap(ir::Tensor::zeros(t.dtype(), t.shape()))));
    }
  return State(std::move(impl));
}
}  // namespace moka
