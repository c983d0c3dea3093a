/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MOKA_C_CORE_H
#define MOKA_C_CORE_H

/* The library, loading, descriptions, values, predictions and compiling in C: a part of moka/moka.h. */

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define MOKA_API __attribute__((visibility("default")))
#else
#define MOKA_API
#endif

/* Callers in C may pass any number as an enumerator; it is checked. */
#ifdef __cplusplus
#define MOKA_INT : int
extern "C" {
#else
#define MOKA_INT
#endif

/* Numbers of moka::ErrorKind; docs/errors.md describes each. */
typedef enum moka_status MOKA_INT {
  MOKA_OK = 0,
  MOKA_INVALID_ARGUMENT = 1,  /* an argument's value, name, shape or type does not fit */
  MOKA_MALFORMED = 2,         /* the bytes of a model or file contradict themselves or their format */
  MOKA_UNSUPPORTED = 3,       /* valid model, but Moka cannot run it; the message names the feature */
  MOKA_NOT_FOUND = 4,         /* a file, function, feature or weight that does not exist */
  MOKA_IO = 5,                /* the operating system reported a failure */
  MOKA_OUT_OF_BUDGET = 6,     /* would exceed a limit such as memory_budget, or memory ran out */
  MOKA_DATA = 7,              /* a value in a prediction violates a rule of an operation */
  MOKA_INTERNAL = 8,          /* a bug in Moka */
  MOKA_DEVICE_LOST = 9,       /* a device failed during a computation */
  MOKA_CANCELLED = 10,        /* the caller asked to stop */
  MOKA_DEADLINE_EXCEEDED = 11 /* it was not done at the time that the caller gave */
} moka_status;

typedef enum moka_data_type MOKA_INT {
  MOKA_FLOAT16 = 0, /* IEEE half, as uint16_t */
  MOKA_FLOAT32 = 1,
  MOKA_FLOAT64 = 2,
  MOKA_INT8 = 3,
  MOKA_INT16 = 4,
  MOKA_INT32 = 5,
  MOKA_INT64 = 6,
  MOKA_UINT8 = 7,
  MOKA_UINT16 = 8,
  MOKA_UINT32 = 9,
  MOKA_UINT64 = 10,
  MOKA_BOOLEAN = 11 /* one byte, 0 or 1 */
} moka_data_type;

typedef enum moka_pixel_format MOKA_INT {
  MOKA_GRAY8 = 0,
  MOKA_RGB8 = 1,
  MOKA_RGBA8 = 2,
  MOKA_BGRA8 = 3,
  MOKA_GRAY_FLOAT32 = 4,
  MOKA_GRAY_FLOAT16 = 5 /* Core ML's OneComponent16Half */
} moka_pixel_format;

typedef enum moka_feature_type MOKA_INT {
  MOKA_TYPE_INT64 = 0,
  MOKA_TYPE_DOUBLE = 1,
  MOKA_TYPE_STRING = 2,
  MOKA_TYPE_MULTI_ARRAY = 3,
  MOKA_TYPE_IMAGE = 4,
  MOKA_TYPE_DICTIONARY = 5,
  MOKA_TYPE_SEQUENCE = 6,
  MOKA_TYPE_STATE = 7,
  MOKA_TYPE_NONE = -1 /* type of a missing value */
} moka_feature_type;

/* A driver that computes on the CPU is not a GPU: naming its device uses it (moka_configuration.device, pins). */
typedef enum moka_compute_units MOKA_INT {
  MOKA_ALL = 0,
  MOKA_CPU_ONLY = 1,
  MOKA_CPU_AND_GPU = 2,
  MOKA_CPU_AND_NEURAL_ENGINE = 3
} moka_compute_units;

typedef struct moka_model moka_model;
typedef struct moka_features moka_features;
typedef struct moka_state moka_state;
typedef struct moka_update moka_update;
typedef struct moka_cancellation moka_cancellation;
typedef struct moka_description moka_description;
typedef struct moka_compute_plan moka_compute_plan;

/* ---- The library ---- */

MOKA_API const char* moka_version(void);                   /* such as "1.2.0" */
MOKA_API const char* moka_status_name(moka_status status); /* "unsupported" */
/* The message of this thread's last failing call; "" if none has failed. Valid until the thread's next failing call. */
MOKA_API const char* moka_last_error(void);

/* Receives a warning, for example that a cache cannot be used. `text` is valid during the call. */
typedef void (*moka_warning_handler)(void* context, const char* text);
/* Sets the function that receives warnings: each text once, on the thread that loads or predicts. Several threads may
 * call it at once, and those that report a warning now may still call the handler before. NULL: warnings go to standard
 * error. */
MOKA_API moka_status moka_set_warning_handler(moka_warning_handler handler, void* context);

/* ---- Loading ---- */

/* Which operations have their kernels timed during planning. */
typedef enum moka_measure_kernels MOKA_INT {
  MOKA_MEASURE_NO = 0,
  MOKA_MEASURE_MISSING = 1, /* shapes that are not in the kernel cache */
  MOKA_MEASURE_ALL = 2      /* all shapes, once each */
} moka_measure_kernels;

/* Called on the loading thread while it goes on, with a stage ("import", "passes", "plan", "pack") and how many of its
 * parts are done. `stage` is valid during the call. */
typedef void (*moka_load_progress)(void* context, const char* stage, size_t done, size_t total);

/* Start from MOKA_CONFIGURATION_INIT and change fields. Programs that were compiled with an older version of this
 * header have a smaller struct_size: what it lacks has its default. The same holds for the other structs of options. */
typedef struct moka_configuration {
  size_t struct_size; /* sizeof(moka_configuration) of the caller */
  moka_compute_units compute_units;
  int exact_precision;       /* 0: float16 values may be kept in float32; 1: every value is rounded to its type */
  int threads;               /* threads per prediction, at most 1024; 0: one per core */
  int optimize;              /* run the passes */
  int reuse_buffers;         /* 0: values never share memory; for debugging */
  size_t memory_budget;      /* limit in bytes on what a model can make Moka allocate; 0: no limit */
  int64_t loop_limit;        /* limit on the iterations of one loop */
  size_t cached_shapes;      /* number of input shapes whose plans are kept */
  const char* function_name; /* NULL: the default function */
  const char* device;        /* use only this device and "reference"; NULL: compute_units decides */
  const char* kernel_cache; /* measured times that choose kernels: a path, "default", "off"; NULL: $MOKA_KERNEL_CACHE */
  moka_measure_kernels measure_kernels; /* new measurements are written to the kernel cache */
  const char* cache;      /* folder that keeps packed weights: a path, "default", "off"; NULL: $MOKA_CACHE, else off */
  const int* processors;  /* processor numbers for worker threads; copied */
  size_t processor_count; /* 0: workers run where the calling thread may run */
  const char* pins;       /* devices for operations, one "conv_*=cpu" or "type:conv=cpu" per line; NULL: none */
  int strict;             /* 1: a pin that matches nothing or is refused, or a lost device is an error, not a warning */
  const char* rates;      /* measured rates of the units: a path, "default", "off"; NULL: $MOKA_RATES, else default */
  const char* identity;   /* text of age identities that open an encrypted model; NULL: $MOKA_IDENTITY */
  const char* passphrase; /* of an encrypted model; NULL: $MOKA_PASSPHRASE, $MOKA_PASSPHRASE_FILE */
  int low_memory;         /* 1: weights stay as the file stores them and are expanded in every prediction */
  int pack_while_loading; /* 1: loading packs all weights, so that all predictions take equally long */
  const char* parameters; /* weights that may be replaced: names, one per line, * is any text; NULL: none */
  const moka_cancellation* cancellation; /* ends loading with MOKA_CANCELLED; NULL: none */
  double timeout;              /* seconds from the call on after which loading is MOKA_DEADLINE_EXCEEDED; 0: none */
  moka_load_progress progress; /* may be NULL */
  void* progress_context;      /* the first argument of `progress` */
} moka_configuration;
#define MOKA_CONFIGURATION_INIT                                                                                        \
  {                                                                                                                    \
    sizeof(moka_configuration), MOKA_ALL, 0, 0, 1, 1, 0, 1000000, 8, NULL, NULL, NULL, MOKA_MEASURE_NO, NULL, NULL, 0, \
        NULL, 0, NULL, NULL, NULL, 0, 0, NULL, NULL, 0, NULL, NULL                                                     \
  }

/* A file with a path relative to the specification: "weights/weight.bin". */
typedef struct moka_blob {
  const char* name;
  const void* data;
  size_t size;
} moka_blob;

/* An .mlmodel file, an .mlpackage or an .mlmodelc folder, or one that is encrypted. `configuration` may be NULL here
 * and below. */
MOKA_API moka_status moka_model_load(const char* path, const moka_configuration* configuration, moka_model** model);
/* The bytes of an .mlmodel and of its `blob_count` weight files. They are copied. */
MOKA_API moka_status moka_model_load_memory(const void* specification, size_t size, const moka_blob* blobs,
                                            size_t blob_count, const moka_configuration* configuration,
                                            moka_model** model);
/* The same without a copy: the bytes must outlive the model. */
MOKA_API moka_status moka_model_load_borrowed(const void* specification, size_t size, const moka_blob* blobs,
                                              size_t blob_count, const moka_configuration* configuration,
                                              moka_model** model);
/* A program in the text form of MIL (docs/mil-text.md) without weight files. */
MOKA_API moka_status moka_model_load_mil(const char* text, const moka_configuration* configuration, moka_model** model);
/* The same model under another configuration, such as another function. Uses the file as it was first opened. Replaced
 * parameters stay, unless it loads another function. */
MOKA_API moka_status moka_model_configured(const moka_model* model, const moka_configuration* configuration,
                                           moka_model** configured);
MOKA_API void moka_model_free(moka_model* model);

/* ---- Parameters ---- */

/* The weights that moka_configuration.parameters names and the function reads. */
MOKA_API size_t moka_model_parameter_count(const moka_model* model);
/* NULL when out of range. */
MOKA_API const char* moka_model_parameter_name(const moka_model* model, size_t index);
/* Sets the value of the parameter `name` in `values` to a copy, an array of MOKA_FLOAT16 or MOKA_FLOAT32. */
MOKA_API moka_status moka_model_read_parameter(const moka_model* model, const char* name, moka_features* values);
/* The same model with the arrays in `values` instead of these parameters. Both models share what kernels made from
 * weights that stay. The arrays are copied. MOKA_NOT_FOUND for another name, MOKA_INVALID_ARGUMENT for another shape.
 */
MOKA_API moka_status moka_model_with_parameters(const moka_model* model, const moka_features* values,
                                                moka_model** replaced);

/* ---- Description ---- */

typedef enum moka_role MOKA_INT {
  MOKA_INPUT = 0,
  MOKA_OUTPUT = 1,
  MOKA_STATE = 2,
  MOKA_TRAINING_INPUT = 3 /* of an updatable model */
} moka_role;

/* Allowed sizes of one dimension; upper is -1 when unbounded. */
typedef struct moka_size_range {
  int64_t lower, upper;
} moka_size_range;

/* One input, output or state. moka_description_constraints gives what else restricts it. */
typedef struct moka_feature_info {
  const char* name;
  const char* description;
  const char* type_text; /* "MultiArray (Float32 1 x 10)", "Image (RGB 224 x 224)" */
  moka_feature_type type;
  int optional;
  moka_data_type data_type;      /* set for multi-arrays and states */
  size_t rank;                   /* number of entries in shape */
  const int64_t* shape;          /* the default shape */
  size_t range_count;            /* 0, or one range per dimension */
  const moka_size_range* ranges; /* allowed sizes of each dimension */
  int64_t width, height;         /* default size of images */
  int is_gray;                   /* set for images */
  int string_keys;               /* dictionaries and sequences: 1 for strings, 0 for int64 */
} moka_feature_info;

MOKA_API size_t moka_model_feature_count(const moka_model* model, moka_role role);
MOKA_API moka_status moka_model_feature(const moka_model* model, moka_role role, size_t index, moka_feature_info* info);

typedef enum moka_text MOKA_INT {
  MOKA_MODEL_TYPE = 0,    /* "mlProgram", "neuralNetwork", "pipelineClassifier", ... */
  MOKA_FUNCTION_NAME = 1, /* name of the loaded function */
  MOKA_SHORT_DESCRIPTION = 2,
  MOKA_AUTHOR = 3,
  MOKA_LICENSE = 4,
  MOKA_MODEL_VERSION = 5,
  MOKA_PREDICTED_FEATURE_NAME = 6, /* set for classifiers */
  MOKA_PREDICTED_PROBABILITIES_NAME = 7,
  MOKA_DEFAULT_FUNCTION_NAME = 8
} moka_text;

/* "" when the model does not say, NULL for a NULL model. */
MOKA_API const char* moka_model_text(const moka_model* model, moka_text text);
/* User-defined metadata; NULL when there is none with this name. */
MOKA_API const char* moka_model_metadata(const moka_model* model, const char* key);
MOKA_API size_t moka_model_class_label_count(const moka_model* model);
/* NULL when out of range; int64 labels as text. */
MOKA_API const char* moka_model_class_label(const moka_model* model, size_t index);

/* The description in a model's file, without loading the model. Also works for models that Moka refuses to run. */
MOKA_API moka_status moka_describe(const char* path, moka_description** description);
/* Not for those of moka_model_description. */
MOKA_API void moka_description_free(moka_description* description);
/* The description of a loaded model, which belongs to the model. NULL for a NULL model. */
MOKA_API const moka_description* moka_model_description(const moka_model* model);

/* Where nothing is loaded, the texts are those of the default function. "" when the model does not say, NULL for a NULL
 * description. */
MOKA_API const char* moka_description_text(const moka_description* description, moka_text text);
/* The version of the specification, from 1 on; 0 for a NULL description. */
MOKA_API int moka_description_specification_version(const moka_description* description);
/* 1 for an updatable model. */
MOKA_API int moka_description_is_updatable(const moka_description* description);
/* User-defined metadata, sorted by key: a key by its index, a value by its key. NULL when there is none. */
MOKA_API size_t moka_description_metadata_count(const moka_description* description);
MOKA_API const char* moka_description_metadata_key(const moka_description* description, size_t index);
MOKA_API const char* moka_description_metadata(const moka_description* description, const char* key);
/* MOKA_TYPE_STRING or MOKA_TYPE_INT64; MOKA_TYPE_NONE when there are no class labels. */
MOKA_API moka_feature_type moka_description_class_label_type(const moka_description* description);
MOKA_API size_t moka_description_class_label_count(const moka_description* description);
/* NULL when out of range; int64 labels as text. */
MOKA_API const char* moka_description_class_label(const moka_description* description, size_t index);
/* Notes for the user about a model that runs. NULL when out of range. */
MOKA_API size_t moka_description_remark_count(const moka_description* description);
MOKA_API const char* moka_description_remark(const moka_description* description, size_t index);

/* The functions of the model. NULL when out of range. */
MOKA_API size_t moka_description_function_count(const moka_description* description);
MOKA_API const char* moka_description_function_name(const moka_description* description, size_t index);
/* The features of a function. `function`: its name; NULL: the loaded function, or the default one where nothing is
 * loaded. Training inputs are the same for all. A function that the model does not have has 0 features, and is
 * MOKA_NOT_FOUND below. */
MOKA_API size_t moka_description_feature_count(const moka_description* description, const char* function,
                                               moka_role role);
MOKA_API moka_status moka_description_feature(const moka_description* description, const char* function, moka_role role,
                                              size_t index, moka_feature_info* info);

typedef enum moka_color_space MOKA_INT {
  MOKA_COLOR_GRAYSCALE = 0,
  MOKA_COLOR_RGB = 1,
  MOKA_COLOR_BGR = 2,
  MOKA_COLOR_GRAYSCALE_FLOAT16 = 3
} moka_color_space;

typedef struct moka_allowed_shape {
  size_t rank;
  const int64_t* sizes;
} moka_allowed_shape;

typedef struct moka_image_size {
  int64_t width, height;
} moka_image_size;

/* What restricts a feature, beside moka_feature_info. Start from MOKA_FEATURE_CONSTRAINTS_INIT. */
typedef struct moka_feature_constraints {
  size_t struct_size;               /* sizeof(moka_feature_constraints) of the caller */
  size_t shape_count;               /* multi-arrays and states: how many shapes are listed; 0: there is no list */
  const moka_allowed_shape* shapes; /* the allowed ones */
  moka_color_space color_space;     /* set for images */
  size_t image_size_count;          /* images: how many sizes are listed; 0: the ranges below hold */
  const moka_image_size* image_sizes;
  moka_size_range width_range, height_range; /* lower and upper are equal for a fixed size */
  moka_size_range sequence_length;           /* set for sequences */
  int has_default_value;                     /* 1: default_value is set */
  double default_value;                      /* the number that an optional input takes when it has no value */
  /* The values that a loaded model distinguishes, such as the categories of an encoder: strings, integers as text, keys
   * or elements. Very long lists are truncated. */
  size_t category_count;
  const char* const* categories;
  int has_index_range;         /* 1: index_range is set; only loaded models have it */
  moka_size_range index_range; /* of the numbers that index a table, such as tokens */
} moka_feature_constraints;
#define MOKA_FEATURE_CONSTRAINTS_INIT                                                                               \
  {                                                                                                                 \
    sizeof(moka_feature_constraints), 0, NULL, MOKA_COLOR_RGB, 0, NULL, {0, 0}, {0, 0}, {0, 0}, 0, 0, 0, NULL, 0, { \
      0, 0                                                                                                          \
    }                                                                                                               \
  }
MOKA_API moka_status moka_description_constraints(const moka_description* description, const char* function,
                                                  moka_role role, size_t index, moka_feature_constraints* constraints);

/* ---- Values ---- */

/* An n-dimensional array. `strides` count elements; NULL means row-major. */
typedef struct moka_array {
  void* data;
  moka_data_type type;
  size_t rank;
  const int64_t* shape;
  const int64_t* strides;
} moka_array;

/* Rows from top to bottom, `row_bytes` apart; 0 means without gaps. */
typedef struct moka_image {
  void* pixels;
  int64_t width, height, row_bytes;
  moka_pixel_format format;
} moka_image;

/* `count` entries; one of the key arrays is NULL. */
typedef struct moka_dictionary {
  size_t count;
  const char* const* string_keys;
  const int64_t* int64_keys;
  const double* values;
} moka_dictionary;

/* `count` strings or integers; the other pointer is NULL. */
typedef struct moka_sequence {
  size_t count;
  const char* const* strings;
  const int64_t* int64s;
} moka_sequence;

/* Named values: the inputs or the outputs of a prediction. */
MOKA_API moka_status moka_features_new(moka_features** features);
MOKA_API void moka_features_free(moka_features* features);
MOKA_API void moka_features_clear(moka_features* features);

/* Setting a name again replaces its value. Arrays and images are borrowed: their memory must outlive the predictions
 * that use it. Everything else is copied, including shape and strides. An array may have any type, but one for integers
 * must hold whole numbers that the described type has: else the prediction is MOKA_INVALID_ARGUMENT.
 * In the features that receive outputs, an array or image that was set before the prediction is an output backing: the
 * prediction writes into its memory, which must have the type and shape of the output. */
MOKA_API moka_status moka_features_set_array(moka_features* features, const char* name, const moka_array* array);
MOKA_API moka_status moka_features_set_image(moka_features* features, const char* name, const moka_image* image);
MOKA_API moka_status moka_features_set_int64(moka_features* features, const char* name, int64_t value);
MOKA_API moka_status moka_features_set_double(moka_features* features, const char* name, double value);
MOKA_API moka_status moka_features_set_string(moka_features* features, const char* name, const char* value);
MOKA_API moka_status moka_features_set_dictionary(moka_features* features, const char* name,
                                                  const moka_dictionary* dictionary);
MOKA_API moka_status moka_features_set_sequence(moka_features* features, const char* name,
                                                const moka_sequence* sequence);
/* Sets every input of the model without a default value to reproducible values, in shapes that the model can run. The
   error is that of a prediction when no such shapes are found. */
MOKA_API moka_status moka_features_set_random(moka_features* features, const moka_model* model, uint64_t seed);

MOKA_API size_t moka_features_count(const moka_features* features);
/* NULL when out of range. */
MOKA_API const char* moka_features_name(const moka_features* features, size_t index);
/* MOKA_TYPE_NONE when there is no value with this name. */
MOKA_API moka_feature_type moka_features_type(const moka_features* features, const char* name);

/* MOKA_NOT_FOUND when there is no value with this name, MOKA_INVALID_ARGUMENT when it has another kind. */
MOKA_API moka_status moka_features_get_array(const moka_features* features, const char* name, moka_array* array);
MOKA_API moka_status moka_features_get_image(const moka_features* features, const char* name, moka_image* image);
MOKA_API moka_status moka_features_get_int64(const moka_features* features, const char* name, int64_t* value);
MOKA_API moka_status moka_features_get_double(const moka_features* features, const char* name, double* value);
MOKA_API moka_status moka_features_get_string(const moka_features* features, const char* name, const char** value);
MOKA_API moka_status moka_features_get_dictionary(const moka_features* features, const char* name,
                                                  moka_dictionary* dictionary);
MOKA_API moka_status moka_features_get_sequence(const moka_features* features, const char* name,
                                                moka_sequence* sequence);

/* ---- Predicting ---- */

/* Reads every input of the function from `inputs` and sets every output in `outputs`; the two handles must differ.
 * Results of an earlier prediction in `outputs` are overwritten in place. When shapes change from one prediction to the
 * next, call moka_features_clear in between. `state`: NULL, unless the model keeps states. */
MOKA_API moka_status moka_model_predict(const moka_model* model, const moka_features* inputs, moka_features* outputs,
                                        moka_state* state);

/* A request to stop, for any number of predictions. It may be freed before they end. */
MOKA_API moka_status moka_cancellation_new(moka_cancellation** cancellation);
MOKA_API void moka_cancellation_free(moka_cancellation* cancellation);
/* Predictions that run or wait end with MOKA_CANCELLED, and so do all later ones. Any thread may call it. */
MOKA_API moka_status moka_cancellation_cancel(moka_cancellation* cancellation);
/* 1 after moka_cancellation_cancel. */
MOKA_API int moka_cancellation_is_cancelled(const moka_cancellation* cancellation);

/* Start from MOKA_PREDICTION_OPTIONS_INIT and change fields. Cancellations and timeouts are looked at between
 * operations on the CPU and before each submission to a GPU. A prediction that they end leaves the state as it was
 * before. */
typedef struct moka_prediction_options {
  size_t struct_size;                    /* sizeof(moka_prediction_options) of the caller */
  moka_state* state;                     /* NULL, unless the model keeps states */
  const char* const* outputs;            /* computes only these outputs */
  size_t output_count;                   /* 0: all */
  const moka_cancellation* cancellation; /* NULL: none */
  double timeout; /* seconds from the call on after which the prediction is MOKA_DEADLINE_EXCEEDED; 0: none */
} moka_prediction_options;
#define MOKA_PREDICTION_OPTIONS_INIT \
  { sizeof(moka_prediction_options), NULL, NULL, 0, NULL, 0 }

/* moka_model_predict with options, which may be NULL. */
MOKA_API moka_status moka_model_predict_with(const moka_model* model, const moka_features* inputs,
                                             moka_features* outputs, const moka_prediction_options* options);
/* Predicts `count` items, several at a time when there are threads. A failure names the first item that fails, which
 * counts from 0, and leaves the outputs as they were. Outputs are not written into backings. */
MOKA_API moka_status moka_model_predict_batch(const moka_model* model, const moka_features* const* inputs,
                                              moka_features* const* outputs, size_t count,
                                              const moka_prediction_options* options);

/* Receives the status of a prediction and the message of its failure, else NULL. Called once, on the thread that
 * computed. */
typedef void (*moka_prediction_done)(void* context, moka_status status, const char* message);
/* Queues a prediction, which a thread of the library computes, and returns. Predictions with the same state run one
 * after another. `inputs` may be changed or freed at once, but not what their arrays and images borrow; `outputs` and
 * the state may be used again in `done`. The model may be freed. Anything but MOKA_OK: nothing was queued, and `done`
 * is not called. */
MOKA_API moka_status moka_model_predict_async(const moka_model* model, const moka_features* inputs,
                                              moka_features* outputs, const moka_prediction_options* options,
                                              moka_prediction_done done, void* context);

/* Predicts every row of a table. Each input is an array whose first axis counts the rows, [rows] for numbers and
 * [rows, ...] for arrays of the described shape, or a sequence of strings or integers. Sets every output in `outputs`
 * to a column of the same form; a classifier's probabilities are a matrix of doubles whose columns follow
 * moka_model_class_label. Each row gives the result of moka_model_predict; classic models compute many rows at once. A
 * failure names the row, which counts from 0. */
MOKA_API moka_status moka_model_predict_rows(const moka_model* model, const moka_features* columns,
                                             moka_features* outputs);
/* The same with options, which may be NULL and apply to all rows. Rows that share a state run one after another. */
MOKA_API moka_status moka_model_predict_rows_with(const moka_model* model, const moka_features* columns,
                                                  moka_features* outputs, const moka_prediction_options* options);

/* Records what the process does with models until moka_trace_stop, for Perfetto (docs/seeing.md). One at a time. "%p"
 * in `path` stands for the number of the process. A trace at `path` is replaced, and nothing else. MOKA_IO,
 * MOKA_INVALID_ARGUMENT (a trace is being written, the path of something else). */
MOKA_API moka_status moka_trace_start(const char* path);
/* Does nothing where no trace is written. MOKA_IO: not everything could be written. */
MOKA_API moka_status moka_trace_stop(void);
/* Lets other processes of the same user record this one with moka trace --pid. `where`: the path of a socket, or a
 * folder; NULL or "": the user's own folder. MOKA_IO, MOKA_INVALID_ARGUMENT (the path is too long for a socket). */
MOKA_API moka_status moka_trace_allow(const char* where);

/* The mutable buffers of a stateful model, filled with zeros. The model must outlive it. */
MOKA_API moka_status moka_state_new(const moka_model* model, moka_state** state);
/* A state with new buffers and the same elements. */
MOKA_API moka_status moka_state_copy(const moka_state* state, moka_state** copy);
MOKA_API void moka_state_free(moka_state* state);
/* The buffers. NULL when out of range. */
MOKA_API size_t moka_state_count(const moka_state* state);
MOKA_API const char* moka_state_name(const moka_state* state, size_t index);
/* A copy of one buffer, valid until the next moka_state_read or moka_state_free. */
MOKA_API moka_status moka_state_read(moka_state* state, const char* name, moka_array* array);
/* Copies and converts; the shape must be the buffer's. */
MOKA_API moka_status moka_state_write(moka_state* state, const char* name, const moka_array* array);
/* ---- Compiling (docs/compiled-models.md) ---- */

/* A neural network that keeps its specification in the compiled model, because no compiled form of one of its parts is
 * known. Only Moka reads this form. */
typedef struct moka_embedded_network {
  const char* model;  /* its folder in the compiled model ("model0"); "": the model itself */
  const char* layer;  /* name of the layer; "": the reason is not about one layer */
  const char* type;   /* the layer's type by Core ML's name: "uniDirectionalLSTM" */
  const char* reason; /* what has no known form: "layers of this type" */
  const char* text;   /* all of that in a sentence */
} moka_embedded_network;

/* Start from MOKA_COMPILATION_OPTIONS_INIT and change fields. */
typedef struct moka_compilation_options {
  size_t struct_size;      /* sizeof(moka_compilation_options) of the caller */
  int embed_specification; /* 1: keep the specifications of all neural networks; none is reported */
  int strict;              /* 1: MOKA_UNSUPPORTED, and nothing is written, if a network must keep its specification */
  int overwrite;           /* 1: also replaces other files and models; never a folder that is not a model */
  /* Called for each network that keeps its specification, after the model is written. May be NULL. */
  void (*embedded)(void* context, const moka_embedded_network* network);
  void* context; /* the first argument of `embedded` */
} moka_compilation_options;
#define MOKA_COMPILATION_OPTIONS_INIT \
  { sizeof(moka_compilation_options), 0, 0, 0, NULL, NULL }
/* Compiles the model at `path` as coremlc does: writes the folder `folder` (X.mlmodelc), which is complete in itself.
 * The same model always gives the same bytes. `options` may be NULL. The errors are those of loading, MOKA_UNSUPPORTED
 * (strict), MOKA_INVALID_ARGUMENT (`folder`), MOKA_IO. */
MOKA_API moka_status moka_compile_model(const char* path, const char* folder, const moka_compilation_options* options);
/* ---- Defaults, for languages that do not see the macros ---- */

static inline moka_configuration moka_default_configuration(void) {
  const moka_configuration options = MOKA_CONFIGURATION_INIT;
  return options;
}
static inline moka_prediction_options moka_default_prediction_options(void) {
  const moka_prediction_options options = MOKA_PREDICTION_OPTIONS_INIT;
  return options;
}
static inline moka_compilation_options moka_default_compilation_options(void) {
  const moka_compilation_options options = MOKA_COMPILATION_OPTIONS_INIT;
  return options;
}

#ifdef __cplusplus
}
#endif

#endif
