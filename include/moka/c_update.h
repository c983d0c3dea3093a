/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MOKA_C_UPDATE_H
#define MOKA_C_UPDATE_H

/* Updates of models in C: a part of moka/moka.h. */

#include "moka/c_core.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- What a model can learn (docs/updatable.md) ---- */

/* 1 for an updatable model. */
MOKA_API int moka_model_is_updatable(const moka_model* model);
/* The first rule of Core ML's updates that the file breaks; "" if it is valid or not updatable, NULL for a NULL model.
 */
MOKA_API const char* moka_model_update_fault(const moka_model* model);
/* "sgd", "adam", or "" for none; NULL for a NULL model. */
MOKA_API const char* moka_model_update_optimizer(const moka_model* model);

/* The values of an example. */
MOKA_API size_t moka_model_training_input_count(const moka_model* model);
MOKA_API moka_status moka_model_training_input(const moka_model* model, size_t index, moka_feature_info* info);

typedef enum moka_parameter_kind MOKA_INT {
  MOKA_PARAMETER_INT64 = 0,
  MOKA_PARAMETER_DOUBLE = 1,
  MOKA_PARAMETER_BOOLEAN = 2
} moka_parameter_kind;

/* A number that an update takes, with its default and what is allowed. */
typedef struct moka_update_parameter {
  const char* name; /* Core ML's key: "learningRate", "miniBatchSize", "epochs", ... */
  moka_parameter_kind kind;
  double value;  /* the default; booleans are 0 or 1 */
  int has_range; /* 1: lower and upper are set */
  double lower, upper;
  size_t allowed_count; /* of integers; 0: no set is given */
  const int64_t* allowed;
} moka_update_parameter;
MOKA_API size_t moka_model_update_parameter_count(const moka_model* model);
MOKA_API moka_status moka_model_update_parameter(const moka_model* model, size_t index,
                                                 moka_update_parameter* parameter);

typedef enum moka_loss_kind MOKA_INT { MOKA_CATEGORICAL_CROSS_ENTROPY = 0, MOKA_MEAN_SQUARED_ERROR = 1 } moka_loss_kind;

typedef struct moka_update_loss {
  const char* name;
  moka_loss_kind kind;
  const char* input;          /* the value that is compared */
  const char* target;         /* with what */
  const char* training_input; /* gives the target: the target itself, or the label of a classifier */
} moka_update_loss;
MOKA_API size_t moka_model_update_loss_count(const moka_model* model);
MOKA_API moka_status moka_model_update_loss(const moka_model* model, size_t index, moka_update_loss* loss);

/* A layer whose weights an update changes. */
typedef struct moka_update_layer {
  const char* name;
  const char* type; /* "innerProduct" */
  size_t parameter_count;
  const char* const* parameters; /* its weights, as moka_configuration.parameters names them */
} moka_update_layer;
MOKA_API size_t moka_model_update_layer_count(const moka_model* model);
MOKA_API moka_status moka_model_update_layer(const moka_model* model, size_t index, moka_update_layer* layer);

/* ---- Updating ---- */

typedef enum moka_update_event MOKA_INT {
  MOKA_TRAINING_BEGIN = 0,
  MOKA_MINI_BATCH_END = 1,
  MOKA_EPOCH_END = 2
} moka_update_event;

/* What an update has reached. */
typedef struct moka_update_metrics {
  moka_update_event event;
  double loss;          /* of the mini-batch before its step; at the end of an epoch, the mean over its examples */
  int64_t epoch;        /* from 0 */
  int64_t mini_batch;   /* in its epoch, from 0 */
  int64_t mini_batches; /* of the epoch */
  int is_cancelled;     /* 1: moka_update_cancel ended the run */
} moka_update_metrics;

/* Sets the values of an example. Arrays and images are copied. Returns NULL, or why there is no example. Called on the
 * thread of moka_update_run, again for each epoch unless the example is kept in memory. */
typedef const char* (*moka_read_example)(void* context, size_t index, moka_features* example);
/* Called when training begins, after each mini-batch and after each epoch, on the thread of moka_update_run. May call
 * every function of `update` but run and free. Returns NULL, or why the run ends. */
typedef const char* (*moka_update_progress)(void* context, moka_update* update, const moka_update_metrics* metrics);

/* Start from MOKA_UPDATE_OPTIONS_INIT and change fields. */
typedef struct moka_update_options {
  size_t struct_size;                      /* sizeof(moka_update_options) of the caller */
  const moka_configuration* configuration; /* threads and memory of the training; NULL: the defaults */
  const moka_features* parameters;         /* integers and doubles by Core ML's keys; NULL: the model's defaults */
  moka_update_progress progress;           /* may be NULL */
  void* context;                           /* the first argument of `progress` */
  size_t kept_bytes; /* what may be kept of what the layers in front of the updatable ones compute from examples */
} moka_update_options;
#define MOKA_UPDATE_OPTIONS_INIT \
  { sizeof(moka_update_options), NULL, NULL, NULL, NULL, (size_t)1 << 30 }

/* Prepares to train the model at `path` on `count` examples, which `read` gives. It changes no file. `options` may be
 * NULL here and below. MOKA_INVALID_ARGUMENT: the model is not updatable, or a parameter is not allowed. */
MOKA_API moka_status moka_update_new(const char* path, size_t count, moka_read_example read, void* context,
                                     const moka_update_options* options, moka_update** update);
/* The same for examples in memory. Their values are copied, but arrays and images are borrowed. */
MOKA_API moka_status moka_update_new_from(const char* path, const moka_features* const* examples, size_t count,
                                          const moka_update_options* options, moka_update** update);
MOKA_API void moka_update_free(moka_update* update);

/* Trains. After moka_update_cancel another call goes on. `reached` may be NULL. A failure of an example names it, as
 * "example 3", which counts from 0. MOKA_DATA: a number is not finite, the loss diverges, a callback failed. */
MOKA_API moka_status moka_update_run(moka_update* update, moka_update_metrics* reached);
/* Changes parameters from the next mini-batch on. */
MOKA_API moka_status moka_update_resume(moka_update* update, const moka_features* parameters);
/* The training stops before its next mini-batch. Any thread may call it. */
MOKA_API moka_status moka_update_cancel(moka_update* update);
/* Sets the parameters of the next mini-batch in `parameters`: integers, doubles, and 0 or 1 for booleans. */
MOKA_API moka_status moka_update_read_parameters(const moka_update* update, moka_features* parameters);
/* The model with its weights now: in a handler, those of the training; else those of the last run, which must have
 * been. moka_model_read_parameter gives the new weights. */
MOKA_API moka_status moka_update_model(const moka_update* update, const moka_configuration* configuration,
                                       moka_model** model);
/* Writes that model: an .mlmodel file, an .mlpackage or an .mlmodelc folder, by the end of the path. Replaces a model
 * of that kind and nothing else. */
MOKA_API moka_status moka_update_save(const moka_update* update, const char* path);

/* For languages that do not see the macro. */
static inline moka_update_options moka_default_update_options(void) {
  const moka_update_options options = MOKA_UPDATE_OPTIONS_INIT;
  return options;
}

#ifdef __cplusplus
}
#endif

#endif
