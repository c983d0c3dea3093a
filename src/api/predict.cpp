// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <atomic>
#include <future>

#include "api/internal.h"
#include "base/stop.h"
#include "base/watch.h"
#include "base/whole.h"
#include "kernel/thread_pool.h"
#include "runtime/async_queue.h"

namespace moka {

namespace {

bool has_value(const FeatureValue* value) {
  return value != nullptr && !std::holds_alternative<std::monostate>(*value);
}

struct Extent {
  const std::byte *first = nullptr, *last = nullptr;
  bool is_known = true;
};

inline Extent extent(const FeatureValue& value) {
  if (const auto* a = std::get_if<MultiArray>(&value)) {
    const auto* first = static_cast<const std::byte*>(a->data());
    return {first, first + static_cast<size_t>(a->count()) * size_of(a->type()), a->is_contiguous()};
  }
  if (const auto* image = std::get_if<Image>(&value)) {
    const auto* first = reinterpret_cast<const std::byte*>(image->pixels.get());
    return {first, first + image->height * image->row_bytes};
  }
  return {};
}

/// Whether `memory` is also that of an input or another output, so that the prediction must not write to it early.
bool overlaps(const FeatureValue& memory, const Features& inputs, const Features& outputs) {
  const Extent own = extent(memory);
  const auto shares = [&](const FeatureValue& value) {
    const Extent other = extent(value);
    return !other.is_known || (own.first < other.last && other.first < own.last);
  };
  for (const auto& [name, value] : inputs)
    if (shares(value)) return true;
  if (outputs.size() == 1) return false;  // only `memory`
  for (const auto& [name, value] : outputs)
    if (&value != &memory && shares(value)) return true;
  return false;
}

/// Where the planes of half floats that are an image should be computed.
runtime::OutputMemory memory_for_image(const FeatureValue* value, const Features& inputs, const Features& outputs,
                                       std::array<int64_t, 2>& shape) {
  using Kind = runtime::OutputMemory::Kind;
  if (!has_value(value)) return {Kind::own};
  const auto* image = std::get_if<Image>(value);
  if (image == nullptr || image->pixels == nullptr ||
      kernel::plane_of(api::pixels_of(*image), kernel::PlaneOrder::gray, ir::DType::fp16) == nullptr ||
      overlaps(*value, inputs, outputs))
    return {Kind::session};
  shape = {image->height, image->width};
  return {Kind::given, image->pixels.get(), shape};
}

/// Where an output should be computed: in the caller's array, or in memory for a new one.
/// `shape`: room for that of an image.
runtime::OutputMemory memory_for(const import::FeatureDescription& f, const Features& inputs, Features& outputs,
                                 std::array<int64_t, 2>& shape) {
  using Kind = runtime::OutputMemory::Kind;
  FeatureValue* value = outputs.find(f.name);
  if (f.kind == import::FeatureKind::image && f.image.color == import::ColorSpace::grayscale_float16)
    return memory_for_image(value, inputs, outputs, shape);
  if (f.kind != import::FeatureKind::multi_array) return {Kind::session};
  if (!has_value(value)) return {Kind::own};
  auto* array = std::get_if<MultiArray>(value);
  if (array == nullptr || array->data() == nullptr || !array->is_contiguous() ||
      api::to_ir(array->type()) != f.array.dtype || overlaps(*value, inputs, outputs))
    return {Kind::session};
  return {Kind::given, array->data(), array->shape()};
}

}  // namespace

Status Model::Impl::ask(const Features& inputs, Asked& asked) const {
  const import::FunctionDescription& f = model->function();
  asked.given.assign(f.inputs.size(), nullptr);
  asked.leading = {};
  for (size_t i = 0; const auto& [name, value] : inputs) {
    // Callers usually pass the inputs in the order of the description.
    auto x = f.inputs.begin() + static_cast<std::ptrdiff_t>(std::min(i++, f.inputs.size()));
    if (x == f.inputs.end() || x->name != name)
      x = std::find_if(f.inputs.begin(), f.inputs.end(), [&n = name](const auto& of) { return of.name == n; });
    if (x == f.inputs.end()) {
      std::string all;
      for (const auto& of : f.inputs) all += cat(all.empty() ? "'" : ", '", of.name, "'");
      return fail(ErrorCode::invalid_argument, "input '", name, "': not an input of the model; expected ", all);
    }
    asked.given[static_cast<size_t>(x - f.inputs.begin())] = has_value(&value) ? &value : nullptr;
    if (!x->array.takes_rank5) continue;
    const api::Leading own = api::leading_of(*x, value);
    asked.leading = {std::max(asked.leading.sequence, own.sequence), std::max(asked.leading.batch, own.batch)};
  }
  asked.sizes.clear();
  for (size_t i = 0; !sized.empty() && i < f.inputs.size(); i++) {
    const auto it = sized.find(f.inputs[i].name);
    if (it == sized.end()) continue;
    const FeatureValue* value = asked.given[i];
    asked.sizes.emplace(it->first, value == nullptr
                                       ? it->second.size
                                       : MOKA_TRY(api::input_type(f.inputs[i], it->second.flexible, *value)).shape());
  }
  return {};
}

Status Model::Impl::input_types(const ir::Block& body, std::span<const size_t> features, const Asked& asked,
                                std::vector<ir::Type>& types) const {
  const import::FunctionDescription& f = model->function();
  types.clear();
  for (const auto& v : body.inputs()) {
    if (v->type.is_state()) {
      types.push_back(v->type);
      continue;
    }
    const size_t at = features[types.size()];
    types.push_back(MOKA_TRY(api::given_type(f.inputs[at], v->type, asked.given[at], asked.leading.batch)));
  }
  return {};
}

Result<std::shared_ptr<const runtime::Model>> Model::Impl::choose(const Features& inputs,
                                                                  const std::vector<std::string>& outputs, Asked& asked,
                                                                  std::vector<ir::Type>& types) const {
  MOKA_TRY(ask(inputs, asked));
  std::shared_ptr<const runtime::Model> runs = MOKA_TRY(model_for(asked.leading, outputs, asked.sizes));
  MOKA_TRY(input_types(runs->ir().body(), runs->features(), asked, types));
  return runs;
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

namespace {

/// What a prediction needs beside its session. Each thread keeps some, so that it allocates nothing.
struct Call {
  Model::Impl::Asked asked;
  std::vector<ir::Type> types;
  std::vector<runtime::InputValue> inputs;
  std::vector<runtime::OutputMemory> outputs;
  std::vector<std::array<int64_t, 2>> image_shapes;  // that `outputs` refers to
  std::vector<boundary::InputMemory> memory;
};

/// A call for one prediction. A prediction within another one gets another call.
class LentCall {
 public:
  LentCall() : calls_(of_thread()) {
    if (calls_.lent == calls_.all.size()) calls_.all.push_back(std::make_unique<Call>());
    call_ = calls_.all[calls_.lent++].get();
  }
  ~LentCall() { calls_.lent--; }
  LentCall(const LentCall&) = delete;
  Call& operator*() const { return *call_; }

 private:
  struct Calls {
    std::vector<std::unique_ptr<Call>> all;
    size_t lent = 0;
  };
  static Calls& of_thread() {
    thread_local Calls calls;
    return calls;
  }
  Calls& calls_;
  Call* call_;
};

/// The state of the model that is about to predict, which no other prediction may use meanwhile.
class StateInUse {
 public:
  StateInUse() = default;
  ~StateInUse() {
    if (flag_ != nullptr) flag_->store(false);
  }
  StateInUse(const StateInUse&) = delete;
  Status take(State* state) {
    if (state == nullptr)
      return fail(ErrorCode::invalid_argument, "the model keeps states: predict needs one made by new_state");
    if (state->impl().in_use.exchange(true))
      return fail(ErrorCode::invalid_argument, "the state is used by another prediction at the same time");
    flag_ = &state->impl().in_use;
    return {};
  }

 private:
  std::atomic<bool>* flag_ = nullptr;
};

Result<runtime::StateValue*> state_of(State& state, const std::string& name, const ir::Type& type) {
  for (auto& [n, value] : state.impl().buffers)
    if (n == name && value.dtype() == type.dtype() && value.shape() == type.shape()) return &value;
  return fail(ErrorCode::invalid_argument, "state '", name, "': expected ", type,
              ", which the given state does not have: states are made by new_state of the same model");
}

Status set_inputs(const runtime::Model& runs, const import::FunctionDescription& f, State* state, Call& call) {
  call.inputs.clear();
  call.memory.resize(std::max(call.memory.size(), call.types.size()));
  for (size_t i = 0; i < call.types.size(); i++) {
    const ir::Type& type = call.types[i];
    if (type.is_state()) {
      call.inputs.emplace_back(MOKA_TRY(state_of(*state, runs.feature(i).name, type.element())));
      continue;
    }
    const size_t at = runs.features()[i];
    MOKA_TRY(api::set_given(f.inputs[at], type, call.asked.given[at], call.memory[i], call.inputs.emplace_back()));
  }
  return {};
}

Status store_outputs(const runtime::Model& runs, const runtime::Prediction& done, Features& outputs) {
  for (size_t i = 0; i < runs.function().outputs.size(); i++) {
    if (done.is_in_given(i)) continue;
    const import::FeatureDescription& f = runs.function().outputs[i];
    if (auto memory = done.memory(i)) {
      if (f.kind == import::FeatureKind::image)
        outputs[f.name] = api::image_in(done.output(i), std::move(memory));
      else
        outputs[f.name] = MOKA_TRY(api::array_in(done.output(i), std::move(memory)));
    } else
      MOKA_TRY(api::store_output(f, done.output_type(i), done.output(i), outputs[f.name]));
  }
  return {};
}

}  // namespace

Status Model::Impl::predict(const Features& inputs, Features& outputs, const PredictionOptions& options,
                            runtime::TraceSink* trace, Ran* ran, bool observed, runtime::CaptureSink* capture) const {
  const Stop stop(options.stop, options.deadline);
  if (stop.is_possible()) MOKA_TRY(stop.check());
  std::optional<Watch> watch;  // for plans of new shapes
  std::optional<Watch::Scope> watched;
  if (stop.is_possible()) watched.emplace(&watch.emplace(stop));
  kernel::place_workers(configuration.processors);
  const bool is_recorded = trace::is_on();
  const trace::Use use(is_recorded ? traced() : 0);
  const trace::Span span(trace::Lane::activity, "predict");
  const trace::Counted counted(trace::Counter::predictions);
  if (is_recorded) trace::count(trace::Counter::copied, 0);
  const import::FunctionDescription& f = model->function();
  const LentCall lent;
  Call& call = *lent;
  const auto checked = [&] {
    const trace::Span checking(trace::Lane::activity, "check inputs");
    return choose(inputs, options.outputs, call.asked, call.types);
  };
  const std::shared_ptr<const runtime::Model> runs = MOKA_TRY(checked());
  StateInUse in_use;
  if (!f.states.empty()) MOKA_TRY(in_use.take(options.state));
  MOKA_TRY(set_inputs(*runs, f, options.state, call));
  const auto& described = runs->function().outputs;
  call.outputs.resize(described.size());
  call.image_shapes.resize(described.size());
  for (size_t i = 0; i < described.size(); i++)
    call.outputs[i] = memory_for(described[i], inputs, outputs, call.image_shapes[i]);

  const auto compute = [&]() -> Status {
    const api::Leading& leading = call.asked.leading;
    const bool is_rank5 = sequences_only || leading.sequence != 1 || leading.batch != 1;
    runtime::Prediction done = runs->predict({call.types, call.inputs, call.outputs, is_rank5, is_recorded, trace,
                                              observed, stop.is_possible() ? &stop : nullptr, capture});
    Status status = done.take_status();
    if (!done.is_planned()) return with_fitting_sizes(std::move(status).error());
    if (ran != nullptr) *ran = {runs, done.plan()};
    show_remarks(done.remarks(), options);
    if (!status.ok()) return api::reclassified(std::move(status).error(), ErrorCode::data);
    return store_outputs(*runs, done, outputs);
  };
  Status status = compute();
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

std::future<Features> Model::predict_async(Features inputs, const PredictionOptions& options) const {
  auto promise = std::make_shared<std::promise<Features>>();
  std::future<Features> future = promise->get_future();
  predict_async(std::move(inputs), options, [promise](Features outputs, std::exception_ptr failure) {
    if (failure != nullptr)
      promise->set_exception(std::move(failure));
    else
      promise->set_value(std::move(outputs));
  });
  return future;
}

void Model::predict_async(Features inputs, const PredictionOptions& options,
                          std::function<void(Features, std::exception_ptr)> done) const {
  queue_prediction(options, [model = *this, inputs = std::move(inputs), done = std::move(done)](
                                const PredictionOptions& with, std::exception_ptr failure) mutable {
    Features outputs;
    if (failure == nullptr) try {
        model.predict(inputs, outputs, with);
      } catch (...) {
        failure = std::current_exception();
        outputs = {};
      }
    inputs = {};
    done(std::move(outputs), std::move(failure));
  });
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

void queue_prediction(const PredictionOptions& options,
                      std::function<void(const PredictionOptions&, std::exception_ptr)> work) {
  const auto state = options.state == nullptr ? nullptr : std::make_shared<State>(*options.state);
  PredictionOptions with = options;
  with.state = state.get();
  Stop stop(with.stop, with.deadline);
  const void* key = state == nullptr ? nullptr : &state->impl();
  runtime::AsyncQueue::shared().push({[with = std::move(with), state, work = std::move(work)](Status status) {
                                        std::exception_ptr refusal;
                                        try {
                                          api::unwrap(std::move(status));
                                        } catch (const Exception&) {
                                          refusal = std::current_exception();
                                        }
                                        work(with, std::move(refusal));
                                      },
                                      std::move(stop), key});
}

}  // namespace moka
