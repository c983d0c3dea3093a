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
 * A plug-in needs only this header: it calls Moka through the table that it is given, so it fits every program that
 * contains Moka. moka/custom.h is the same for C++ programs. */

#include "moka/moka.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct moka_parameter {
  const char* name;
  moka_feature_type type; /* MOKA_TYPE_INT64, _DOUBLE, _STRING, _MULTI_ARRAY; booleans are integers */
  int64_t int64;
  double number; /* of integers, too */
  const char* string;
  moka_array array;
} moka_parameter;

/* What a model says of one layer. */
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

/* A Vulkan compute shader that does what evaluate does; moka::LayerShader of moka/custom.h has its rules. Everything is
 * borrowed until the thread's next call. */
typedef struct moka_layer_shader {
  size_t struct_size; /* set by Moka */
  size_t spirv_words; /* SPIR-V for Vulkan 1.1, */
  const uint32_t* spirv;
  const char* glsl;      /* or GLSL, for the program glslangValidator */
  size_t constant_count; /* specialization constants 0, 1, ... */
  const uint32_t* constants;
  size_t parameter_bytes; /* push constants, at most 128 bytes */
  const void* parameters;
  uint32_t groups[3];  /* workgroups; set to 1 by Moka */
  size_t buffer_count; /* bound behind the inputs and outputs */
  const moka_array* buffers;
  double seconds; /* estimated time; 0: not known */
} moka_layer_shader;

/* A class of layers. Functions return NULL, or what went wrong: a text that lives until the thread's next call. Set
 * struct_size, evaluate, and what else is needed. */
typedef struct moka_layer_type {
  size_t struct_size;
  int elementwise; /* each element of the one output depends on the same element of the inputs; evaluate gets runs [n]
                    */
  /* `context` is that of the registration. NULL: no object is made, and `layer` below is `context`. */
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
  /* Fills in a shader for these shapes, or leaves spirv and glsl NULL. NULL: there is none. */
  const char* (*shader)(void* layer, size_t input_count, const moka_shape* inputs, moka_layer_shader* shader);
} moka_layer_type;

/* Models loaded from now on use it for custom layers of that class. `type` is copied. */
MOKA_API moka_status moka_register_layer(const char* class_name, const moka_layer_type* type, void* context);
/* An operation of ML programs that Moka does not know. Inputs come in the order of their names; constants are
 * parameters. */
MOKA_API moka_status moka_register_operation(const char* name, const moka_layer_type* type, void* context);
/* MOKA_NOT_FOUND when there is none. Models that are loaded keep theirs. */
MOKA_API moka_status moka_unregister_layer(const char* class_name);
MOKA_API moka_status moka_unregister_operation(const char* name);

/* What a file says of a custom model, or of a part of Apple's systems. */
typedef struct moka_model_info {
  const char *name, *description;
  size_t parameter_count;
  const moka_parameter* parameters; /* bytes are arrays of uint8 */
  size_t input_count;
  const char* const* inputs; /* names */
  size_t output_count;
  const char* const* outputs;
} moka_model_info;

/* The code of a custom model. Functions return NULL, or what went wrong, as those of layers do. Many threads call
 * predict at once. Set struct_size, predict, and what else is needed. */
typedef struct moka_model_code {
  size_t struct_size;
  /* `context` is that of the registration. NULL: no object is made, and `model` below is `context`. */
  const char* (*create)(void* context, const moka_model_info* info, void** model);
  void (*destroy)(void* model);
  /* Sets every output by name, with moka_features_set_array and the like, which copy here. `inputs` is borrowed. */
  const char* (*predict)(void* model, const moka_features* inputs, moka_features* outputs);
} moka_model_code;

/* Models loaded from now on use it for custom models of that class name, or in the place of a part of Apple's systems:
 * "visionFeaturePrint.scene.1" and the other names in docs/custom-layers.md. `code` is copied. */
MOKA_API moka_status moka_register_model(const char* name, const moka_model_code* code, void* context);
/* The same with a model file. */
MOKA_API moka_status moka_register_model_file(const char* name, const char* path);
/* MOKA_NOT_FOUND when there is none. Models that are loaded keep theirs. */
MOKA_API moka_status moka_unregister_model(const char* name);

/* The folders in which files of linked models may lie, also below; none at first. */
MOKA_API moka_status moka_set_linked_model_folders(const char* const* folders, size_t count);

/* What a plug-in is given. It lives as long as the process. Members after last_error exist if struct_size says so. */
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
