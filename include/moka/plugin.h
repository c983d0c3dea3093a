/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MOKA_PLUGIN_H
#define MOKA_PLUGIN_H

/* Custom layers, operations and models in C99, and plug-ins: shared libraries that `moka predict --plugin layers.so`,
 * moka_load_plugin and moka.load_plugin of Python load. docs/custom-layers.md has an example.
 *
 *   static const char* evaluate(void* layer, const moka_layer_call* call) {
 *     const float* x = call->inputs[0].data;
 *     float* y = call->outputs[0].data;
 *     for (int64_t i = 0; i < call->outputs[0].shape[0]; i++) y[i] = x[i] / (1 + expf(-x[i]));
 *     return NULL;
 *   }
 *   moka_status moka_plugin(const moka_host* host) {
 *     const moka_layer_type type = {sizeof type, .elementwise = 1, .evaluate = evaluate};
 *     return host->register_layer("Swish", &type, NULL);
 *   }
 *
 * A plug-in needs only this header. It calls Moka through the functions in moka_host, so it works with every program
 * that contains Moka. moka/custom.h is the same for C++ programs. */

#include "moka/moka.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct moka_parameter {
  const char* name;
  moka_feature_type type; /* MOKA_TYPE_INT64, _DOUBLE, _STRING, _MULTI_ARRAY; booleans are integers */
  int64_t int64;
  double number; /* also set for integers */
  const char* string;
  moka_array array;
} moka_parameter;

/* A layer as the model describes it. */
typedef struct moka_layer_info {
  const char *name, *class_name, *description;
  size_t parameter_count;
  const moka_parameter* parameters;
  size_t input_count, output_count;
} moka_layer_info;

#define MOKA_MAX_RANK 8
typedef struct moka_shape {
  size_t rank;
  int64_t sizes[MOKA_MAX_RANK];
} moka_shape;

/* One evaluation, or the tiles [begin, end) of it. Everything is borrowed. Arrays are dense and row-major. */
typedef struct moka_layer_call {
  size_t struct_size;
  size_t input_count, output_count;
  const moka_array* inputs;
  const moka_array* outputs;
  int64_t begin, end;
  int thread;
} moka_layer_call;

/* A compute shader in one of the forms that devices take. Vulkan takes the kinds "spirv" and "glsl". */
typedef struct moka_shader_code {
  const char* kind;
  const void* bytes; /* the source, or words in the byte order of the machine */
  size_t size;       /* in bytes */
} moka_shader_code;

/* A compute shader that computes the same as evaluate; moka::LayerShader in moka/custom.h documents its rules.
 * Everything is borrowed until the thread's next call. */
typedef struct moka_layer_shader {
  size_t struct_size; /* set by Moka */
  size_t code_count;  /* the same shader in several kinds; a device takes the first that it can */
  const moka_shader_code* code;
  size_t constant_count; /* specialization constants 0, 1, ... */
  const uint32_t* constants;
  size_t parameter_bytes; /* push constants, at most 128 bytes */
  const void* parameters;
  uint32_t groups[3];  /* workgroups; set to 1 by Moka */
  size_t buffer_count; /* bound behind the inputs and outputs */
  const moka_array* buffers;
  double seconds; /* estimated time; 0: not known */
} moka_layer_shader;

/* A class of layers. Functions return NULL for success, or an error message, which must live until the thread's next
 * call. Set struct_size and evaluate; the other members may be 0. */
typedef struct moka_layer_type {
  size_t struct_size;
  int elementwise; /* each element of the one output depends on the same element of the inputs; evaluate gets runs [n]
                    */
  /* Makes the object `layer` of the functions below. `context` is that of the registration. NULL: `layer` is `context`.
   */
  const char* (*create)(void* context, const moka_layer_info* info, void** layer);
  void (*destroy)(void* layer);
  /* The arrays live as long as the layer. NULL: weights are ignored. */
  const char* (*set_weights)(void* layer, size_t count, const moka_array* weights);
  /* NULL: one output with the shape of input 0. */
  const char* (*output_shapes)(void* layer, size_t input_count, const moka_shape* inputs, size_t output_count,
                               moka_shape* outputs);
  const char* (*evaluate)(void* layer, const moka_layer_call* call);
  /* How many tiles threads may compute at the same time; NULL: 1. */
  int64_t (*tiles)(void* layer, size_t input_count, const moka_shape* inputs, int threads);
  /* Fills in a shader for these shapes, or leaves code_count 0 if there is none. */
  const char* (*shader)(void* layer, size_t input_count, const moka_shape* inputs, moka_layer_shader* shader);
} moka_layer_type;

/* Models loaded from now on use it for custom layers of that class. `type` is copied. */
MOKA_API moka_status moka_register_layer(const char* class_name, const moka_layer_type* type, void* context);
/* An operation of ML programs that Moka does not know. Inputs come in the order of their names; constants are
 * parameters. */
MOKA_API moka_status moka_register_operation(const char* name, const moka_layer_type* type, void* context);
/* MOKA_NOT_FOUND if nothing is registered under this name. Loaded models keep using it. */
MOKA_API moka_status moka_unregister_layer(const char* class_name);
MOKA_API moka_status moka_unregister_operation(const char* name);

/* A custom model, or a part of Apple's systems, as the model file describes it. */
typedef struct moka_model_info {
  const char *name, *description;
  size_t parameter_count;
  const moka_parameter* parameters; /* bytes are arrays of uint8 */
  size_t input_count;
  const char* const* inputs; /* names */
  size_t output_count;
  const char* const* outputs;
} moka_model_info;

/* The code of a custom model. Functions return NULL or an error message, as those of layers do. Several threads can
 * call predict at the same time. Set struct_size and predict; the other members may be 0. */
typedef struct moka_model_code {
  size_t struct_size;
  /* Makes the object `model` of the functions below. `context` is that of the registration. NULL: `model` is `context`.
   */
  const char* (*create)(void* context, const moka_model_info* info, void** model);
  void (*destroy)(void* model);
  /* Sets every output by name with moka_features_set_array and the like, which copy the value. `inputs` is borrowed. */
  const char* (*predict)(void* model, const moka_features* inputs, moka_features* outputs);
} moka_model_code;

/* Models loaded from now on use `code` for custom models of that class name. `name` can also be a part of Apple's
 * systems, such as "visionFeaturePrint.scene.1"; docs/custom-layers.md lists these names. `code` is copied. */
MOKA_API moka_status moka_register_model(const char* name, const moka_model_code* code, void* context);
/* The same, but the model file at `path` takes the place of code. */
MOKA_API moka_status moka_register_model_file(const char* name, const char* path);
/* MOKA_NOT_FOUND if nothing is registered under this name. Loaded models keep using it. */
MOKA_API moka_status moka_unregister_model(const char* name);

/* Allows linked models to open files in these folders and their subfolders. By default, no folder is allowed. */
MOKA_API moka_status moka_set_linked_model_folders(const char* const* folders, size_t count);

/* Moka's functions for a plug-in. The table lives as long as the process. Check struct_size before you use a member
 * after last_error. */
typedef struct moka_host {
  size_t struct_size;
  moka_status (*register_layer)(const char* class_name, const moka_layer_type* type, void* context);
  moka_status (*register_operation)(const char* name, const moka_layer_type* type, void* context);
  const char* (*last_error)(void);
  moka_status (*register_model)(const char* name, const moka_model_code* code, void* context);
  /* For predict: the functions moka_features_... of moka/moka.h. */
  moka_feature_type (*type)(const moka_features* features, const char* name);
  moka_status (*get_array)(const moka_features* features, const char* name, moka_array* array);
  moka_status (*get_int64)(const moka_features* features, const char* name, int64_t* value);
  moka_status (*get_double)(const moka_features* features, const char* name, double* value);
  moka_status (*get_string)(const moka_features* features, const char* name, const char** value);
  moka_status (*get_dictionary)(const moka_features* features, const char* name, moka_dictionary* dictionary);
  moka_status (*get_sequence)(const moka_features* features, const char* name, moka_sequence* sequence);
  moka_status (*get_image)(const moka_features* features, const char* name, moka_image* image);
  moka_status (*set_array)(moka_features* features, const char* name, const moka_array* array);
  moka_status (*set_int64)(moka_features* features, const char* name, int64_t value);
  moka_status (*set_double)(moka_features* features, const char* name, double value);
  moka_status (*set_string)(moka_features* features, const char* name, const char* value);
  moka_status (*set_dictionary)(moka_features* features, const char* name, const moka_dictionary* dictionary);
  moka_status (*set_sequence)(moka_features* features, const char* name, const moka_sequence* sequence);
  moka_status (*set_image)(moka_features* features, const char* name, const moka_image* image);
} moka_host;

/* A plug-in defines this function. */
#if defined(__GNUC__)
__attribute__((visibility("default")))
#endif
moka_status
moka_plugin(const moka_host* host);

/* Loads a shared library and calls its moka_plugin. It stays loaded. */
MOKA_API moka_status moka_load_plugin(const char* path);

#ifdef __cplusplus
}
#endif

#endif
