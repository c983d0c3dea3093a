// SPDX-License-Identifier: Apache-2.0
#include "api/c_support.h"
#include "api/internal.h"

using moka::api::guarded;
using moka::api::need;
using moka::api::wrong;

namespace {

moka::PredictionOptions prediction_options_of(const moka_prediction_options* given) {
  const moka_prediction_options o =
      moka::api::options_from<moka_prediction_options>(given, MOKA_PREDICTION_OPTIONS_INIT, "options");
  moka::PredictionOptions out;
  if (o.state != nullptr) out.state = &o.state->state;
  if (o.output_count > 0) need(o.outputs, "options.outputs");
  for (size_t i = 0; i < o.output_count; i++)
    out.outputs.emplace_back(moka::api::need_text(o.outputs[i], "options.outputs"));
  if (o.cancellation != nullptr) out.stop = o.cancellation->source.get_token();
  out.deadline = moka::api::deadline_of(o.timeout);
  return out;
}

moka_features& outputs_beside(const moka_features& inputs, moka_features* outputs) {
  moka_features& out = need(outputs, "outputs");
  if (&inputs == &out) wrong("inputs and outputs: expected different handles");
  return out;
}

void predict(const moka_model* model, const moka_features* inputs, moka_features* outputs,
             const moka::PredictionOptions& options) {
  const moka_model& m = need(model, "model");
  const moka_features& in = need(inputs, "inputs");
  moka_features& out = outputs_beside(in, outputs);
  out.views.clear();
  m.model.predict(in.values, out.values, options);
}

}  // namespace

extern "C" {

moka_status moka_model_predict(const moka_model* model, const moka_features* inputs, moka_features* outputs,
                               moka_state* state) {
  return guarded([&] { predict(model, inputs, outputs, {state == nullptr ? nullptr : &state->state}); });
}

moka_status moka_model_predict_with(const moka_model* model, const moka_features* inputs, moka_features* outputs,
                                    const moka_prediction_options* options) {
  return guarded([&] { predict(model, inputs, outputs, prediction_options_of(options)); });
}

moka_status moka_model_predict_batch(const moka_model* model, const moka_features* const* inputs,
                                     moka_features* const* outputs, size_t count,
                                     const moka_prediction_options* options) {
  return guarded([&] {
    const moka_model& m = need(model, "model");
    if (count > 0) {
      need(inputs, "inputs");
      need(outputs, "outputs");
    }
    std::vector<moka::Features> items;
    for (size_t i = 0; i < count; i++) {
      const moka_features& in = need(inputs[i], "inputs");
      outputs_beside(in, outputs[i]);
      items.push_back(in.values);
    }
    std::vector<moka::Features> results = m.model.predict_batch(items, prediction_options_of(options));
    for (size_t i = 0; i < count; i++) {
      outputs[i]->views.clear();
      outputs[i]->values = std::move(results[i]);
    }
  });
}

moka_status moka_model_predict_async(const moka_model* model, const moka_features* inputs, moka_features* outputs,
                                     const moka_prediction_options* options, moka_prediction_done done, void* context) {
  return guarded([&] {
    const moka::Model m = need(model, "model").model;
    const moka_features& in = need(inputs, "inputs");
    moka_features& out = outputs_beside(in, outputs);
    if (done == nullptr) wrong("argument 'done': expected a function, got NULL");
    moka::queue_prediction(
        prediction_options_of(options),
        [m, values = in.values, &out, done, context](const moka::PredictionOptions& with, std::exception_ptr refusal) {
          const moka_status result = guarded([&] {
            if (refusal != nullptr) std::rethrow_exception(refusal);
            out.views.clear();
            m.predict(values, out.values, with);
          });
          done(context, result, result == MOKA_OK ? nullptr : moka_last_error());
        });
  });
}

moka_status moka_model_predict_rows(const moka_model* model, const moka_features* columns, moka_features* outputs) {
  return moka_model_predict_rows_with(model, columns, outputs, nullptr);
}

moka_status moka_model_predict_rows_with(const moka_model* model, const moka_features* columns, moka_features* outputs,
                                         const moka_prediction_options* options) {
  return guarded([&] {
    const moka_model& m = need(model, "model");
    const moka_features& in = need(columns, "columns");
    moka_features& out = need(outputs, "outputs");
    if (&in == &out) wrong("columns and outputs: expected different handles");
    moka::Features results = m.model.predict_rows(in.values, prediction_options_of(options));
    out.views.clear();
    out.values = std::move(results);
  });
}

moka_status moka_cancellation_new(moka_cancellation** cancellation) {
  return guarded([&] {
    need(cancellation, "cancellation");
    *cancellation = new moka_cancellation;
  });
}

void moka_cancellation_free(moka_cancellation* cancellation) { delete cancellation; }

moka_status moka_cancellation_cancel(moka_cancellation* cancellation) {
  return guarded([&] { need(cancellation, "cancellation").source.request_stop(); });
}

int moka_cancellation_is_cancelled(const moka_cancellation* cancellation) {
  return cancellation != nullptr && cancellation->source.stop_requested() ? 1 : 0;
}

}  // extern "C"
