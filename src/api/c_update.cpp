// SPDX-License-Identifier: Apache-2.0
#include <iterator>
#include <memory>
#include <optional>
#include <tuple>

#include "api/c_support.h"
#include "moka/update.h"

using namespace moka::api;
using moka::cat;

struct moka_update {
  std::unique_ptr<moka::UpdateTask> task;
  moka_read_example read = nullptr;
  void* read_context = nullptr;
  moka_update_progress progress = nullptr;
  void* progress_context = nullptr;
  const moka::UpdateContext* now = nullptr;  ///< in a handler
  std::optional<moka::UpdateContext> last;   ///< of the last run
};

namespace {

const moka::UpdateDescription* description_of(const moka_model* model) {
  if (model == nullptr) return nullptr;
  const auto& update = model->model.description().update;
  return update ? &*update : nullptr;
}

/// The element of a list of the description at an index, which is checked.
template <class T>
const T& element(const moka_model* model, std::vector<T> moka::UpdateDescription::*list, size_t index) {
  need(model, "model");
  const moka::UpdateDescription* update = description_of(model);
  const size_t count = update == nullptr ? 0 : (update->*list).size();
  if (index >= count) wrong(cat("expected an index below ", count, ", got ", index));
  return (update->*list)[index];
}

moka::UpdateParameters parameters_of(const moka_features* features) {
  moka::UpdateParameters out;
  if (features == nullptr) return out;
  for (const auto& [name, value] : features->values) {
    if (const auto* integer = std::get_if<int64_t>(&value))
      out[name] = *integer;
    else if (const auto* number = std::get_if<double>(&value))
      out[name] = *number;
    else
      wrong(cat(name, ": expected a number, got ", moka::describe(value)));
  }
  return out;
}

moka_update_metrics metrics_of(const moka::UpdateContext& context) {
  const moka::UpdateMetrics& m = context.metrics;
  return {static_cast<moka_update_event>(context.event),
          m.loss,
          m.epoch,
          m.mini_batch,
          m.mini_batches,
          context.is_cancelled ? 1 : 0};
}

/// `why`: what a callback returned.
void check_callback(const char* why, const std::string& of) {
  if (why != nullptr) throw moka::Exception(moka::ErrorKind::data, cat(of, why));
}

moka::Features read_example(const moka_update& update, size_t index) {
  moka_features example;
  example.copies = true;
  check_callback(update.read(update.read_context, index, &example), cat("example ", index, ": "));
  return std::move(example.values);
}

void report(moka_update& update, const moka::UpdateContext& context) {
  struct Showing {
    moka_update& update;
    ~Showing() { update.now = nullptr; }
  };
  const Showing showing{update};
  update.now = &context;
  const moka_update_metrics metrics = metrics_of(context);
  check_callback(update.progress(update.progress_context, &update, &metrics), "");
}

moka::UpdateOptions options_of(const moka_update_options* given, moka_update& update) {
  moka::UpdateOptions out;
  const auto o = moka::api::options_from<moka_update_options>(given, MOKA_UPDATE_OPTIONS_INIT, "options");
  out.configuration = configuration_of(o.configuration);
  out.configuration.key = nullptr;  // it refers to texts that the caller may free
  out.parameters = parameters_of(o.parameters);
  out.kept_bytes = o.kept_bytes;
  update.progress = o.progress;
  update.progress_context = o.context;
  if (o.progress != nullptr) out.progress = [&update](const moka::UpdateContext& context) { report(update, context); };
  return out;
}

const moka::UpdateContext& context_of(const moka_update* update) {
  const moka_update& u = need(update, "update");
  if (u.now != nullptr) return *u.now;
  if (!u.last) wrong("update: expected a task that has run");
  return *u.last;
}

}  // namespace

extern "C" {

int moka_model_is_updatable(const moka_model* model) { return description_of(model) == nullptr ? 0 : 1; }

const char* moka_model_update_fault(const moka_model* model) {
  const moka::UpdateDescription* update = description_of(model);
  return model == nullptr ? nullptr : update == nullptr ? "" : update->fault.c_str();
}

const char* moka_model_update_optimizer(const moka_model* model) {
  const moka::UpdateDescription* update = description_of(model);
  return model == nullptr ? nullptr : update == nullptr ? "" : update->optimizer.c_str();
}

size_t moka_model_training_input_count(const moka_model* model) {
  return moka_model_feature_count(model, MOKA_TRAINING_INPUT);
}

moka_status moka_model_training_input(const moka_model* model, size_t index, moka_feature_info* info) {
  return moka_model_feature(model, MOKA_TRAINING_INPUT, index, info);
}

size_t moka_model_update_parameter_count(const moka_model* model) {
  const moka::UpdateDescription* update = description_of(model);
  return update == nullptr ? 0 : update->parameters.size();
}

moka_status moka_model_update_parameter(const moka_model* model, size_t index, moka_update_parameter* parameter) {
  return guarded([&] {
    const moka::UpdateParameter& p = element(model, &moka::UpdateDescription::parameters, index);
    constexpr moka_parameter_kind kinds[] = {MOKA_PARAMETER_INT64, MOKA_PARAMETER_DOUBLE, MOKA_PARAMETER_BOOLEAN};
    static_assert(std::size(kinds) == std::variant_size_v<decltype(p.value)>);
    moka_update_parameter out{};
    out.name = p.name.c_str();
    out.kind = kinds[p.value.index()];
    out.value = std::visit([](auto v) { return static_cast<double>(v); }, p.value);
    out.has_range = p.range || p.bounds ? 1 : 0;
    if (p.range) std::tie(out.lower, out.upper) = *p.range;
    if (p.bounds) {
      out.lower = static_cast<double>(p.bounds->first);
      out.upper = static_cast<double>(p.bounds->second);
    }
    out.allowed_count = p.allowed.size();
    out.allowed = p.allowed.data();
    need(parameter, "parameter") = out;
  });
}

size_t moka_model_update_loss_count(const moka_model* model) {
  const moka::UpdateDescription* update = description_of(model);
  return update == nullptr ? 0 : update->losses.size();
}

moka_status moka_model_update_loss(const moka_model* model, size_t index, moka_update_loss* loss) {
  return guarded([&] {
    const moka::LossLayer& l = element(model, &moka::UpdateDescription::losses, index);
    need(loss, "loss") = {l.name.c_str(), static_cast<moka_loss_kind>(l.kind), l.input.c_str(), l.target.c_str(),
                          l.training_input.c_str()};
  });
}

size_t moka_model_update_layer_count(const moka_model* model) {
  const moka::UpdateDescription* update = description_of(model);
  return update == nullptr ? 0 : update->layers.size();
}

moka_status moka_model_update_layer(const moka_model* model, size_t index, moka_update_layer* layer) {
  return guarded([&] {
    const moka::UpdatableLayer& l = element(model, &moka::UpdateDescription::layers, index);
    need(layer, "layer") = {l.name.c_str(), l.type.c_str(), l.parameters.size(), model->layer_parameters[index].data()};
  });
}

moka_status moka_update_new(const char* path, size_t count, moka_read_example read, void* context,
                            const moka_update_options* options, moka_update** update) {
  return guarded([&] {
    need(update, "update");
    if (read == nullptr) wrong("argument 'read': expected a function, got NULL");
    auto made = std::make_unique<moka_update>();
    made->read = read;
    made->read_context = context;
    moka::UpdateExamples examples(count, [u = made.get()](size_t index) { return read_example(*u, index); });
    made->task = std::make_unique<moka::UpdateTask>(std::string(need_text(path, "path")), std::move(examples),
                                                    options_of(options, *made));
    *update = made.release();
  });
}

moka_status moka_update_new_from(const char* path, const moka_features* const* examples, size_t count,
                                 const moka_update_options* options, moka_update** update) {
  return guarded([&] {
    need(update, "update");
    if (count > 0) need(examples, "examples");
    std::vector<moka::Features> all;
    for (size_t i = 0; i < count; i++) all.push_back(need(examples[i], "an example").values);
    auto made = std::make_unique<moka_update>();
    made->task = std::make_unique<moka::UpdateTask>(std::string(need_text(path, "path")), std::move(all),
                                                    options_of(options, *made));
    *update = made.release();
  });
}

void moka_update_free(moka_update* update) { delete update; }

moka_status moka_update_run(moka_update* update, moka_update_metrics* reached) {
  return guarded([&] {
    moka_update& u = need(update, "update");
    u.last = u.task->run();
    if (reached != nullptr) *reached = metrics_of(*u.last);
  });
}

moka_status moka_update_resume(moka_update* update, const moka_features* parameters) {
  return guarded([&] {
    need(parameters, "parameters");
    need(update, "update").task->resume(parameters_of(parameters));
  });
}

moka_status moka_update_cancel(moka_update* update) {
  return guarded([&] { need(update, "update").task->cancel(); });
}

moka_status moka_update_read_parameters(const moka_update* update, moka_features* parameters) {
  return guarded([&] {
    moka_features& to = need(parameters, "parameters");
    for (const auto& [name, value] : context_of(update).parameters) {
      if (const auto* number = std::get_if<double>(&value))
        to.values[name] = *number;
      else
        to.values[name] = std::visit([](auto v) { return static_cast<int64_t>(v); }, value);
      to.views.erase(name);
    }
  });
}

moka_status moka_update_model(const moka_update* update, const moka_configuration* configuration, moka_model** model) {
  return guarded([&] {
    need(model, "model");
    *model = handle_of(context_of(update).model(configuration_of(configuration)));
  });
}

moka_status moka_update_save(const moka_update* update, const char* path) {
  return guarded([&] { context_of(update).save(std::string(need_text(path, "path"))); });
}

}  // extern "C"
