#ifndef MOKA_MOKA_H
#define MOKA_MOKA_H

/* The C interface of Moka (C99). It loads Core ML models and predicts. moka/model.h is the larger C++ interface.
 *
 * Ownership: a handle made by a function with a `moka_<thing> **` argument is released with moka_<thing>_free, which
 * accepts NULL. Strings and arrays that a function returns belong to the handle that was passed to it, and live until
 * that handle is changed or freed. Strings are UTF-8 and end with a zero byte.
 *
 * Failures: functions return a moka_status; anything but MOKA_OK leaves a message in moka_last_error, and
 * results untouched; only a prediction that fails may have changed the outputs that it was to set. No function throws
 * or aborts on wrong arguments: a NULL where a value is needed is MOKA_INVALID_ARGUMENT.
 *
 * Threads: a moka_model may be used by many threads at once. moka_features and moka_state belong to one thread at a
 * time. */

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
  MOKA_INVALID_ARGUMENT = 1, /* an argument's value, name, shape or type does not fit */
  MOKA_MALFORMED = 2,        /* the model's bytes contradict themselves or their format */
  MOKA_UNSUPPORTED = 3,      /* valid model, but Moka cannot run it; the message names the feature */
  MOKA_NOT_FOUND = 4,        /* a file, function, feature or weight that does not exist */
  MOKA_IO = 5,               /* the operating system reported a failure */
  MOKA_OUT_OF_BUDGET = 6,    /* would exceed memory_budget, or memory ran out */
  MOKA_DATA = 7,             /* a value in a prediction violates a rule of an operation */
  MOKA_INTERNAL = 8,         /* a bug in Moka */
  MOKA_DEVICE_LOST = 9       /* a device failed during a computation */
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
  MOKA_GRAY_FLOAT32 = 4
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

/* ---- The library ---- */

MOKA_API const char* moka_version(void);                   /* "0.1.0" */
MOKA_API const char* moka_status_name(moka_status status); /* "unsupported" */
/* The message of this thread's last failing call; "" if none has failed. Valid until the thread's next failing call. */
MOKA_API const char* moka_last_error(void);

/* ---- Loading ---- */

/* Which operations have their kernels timed during planning. */
typedef enum moka_measure_kernels MOKA_INT {
  MOKA_MEASURE_NO = 0,
  MOKA_MEASURE_MISSING = 1, /* shapes that are not in the kernel cache */
  MOKA_MEASURE_ALL = 2      /* all shapes, once each */
} moka_measure_kernels;

/* Start from MOKA_CONFIGURATION_INIT and change fields. */
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
} moka_configuration;
#define MOKA_CONFIGURATION_INIT                                                                                        \
  {                                                                                                                    \
    sizeof(moka_configuration), MOKA_ALL, 0, 0, 1, 1, 0, 1000000, 8, NULL, NULL, NULL, MOKA_MEASURE_NO, NULL, NULL, 0, \
        NULL, 0, NULL, NULL, NULL, 0, 0, NULL                                                                          \
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

typedef enum moka_role MOKA_INT { MOKA_INPUT = 0, MOKA_OUTPUT = 1, MOKA_STATE = 2 } moka_role;

/* Allowed sizes of one dimension; upper is -1 when unbounded. */
typedef struct moka_size_range {
  int64_t lower, upper;
} moka_size_range;

/* One input, output or state of the loaded function. */
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
  MOKA_PREDICTED_PROBABILITIES_NAME = 7
} moka_text;

/* "" when the model does not say, NULL for a NULL model. */
MOKA_API const char* moka_model_text(const moka_model* model, moka_text text);
/* User-defined metadata; NULL when there is none with this name. */
MOKA_API const char* moka_model_metadata(const moka_model* model, const char* key);
MOKA_API size_t moka_model_class_label_count(const moka_model* model);
/* NULL when out of range; int64 labels as text. */
MOKA_API const char* moka_model_class_label(const moka_model* model, size_t index);

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

/* Predicts every row of a table. Each input is an array whose first axis counts the rows, [rows] for numbers and
 * [rows, ...] for arrays of the described shape, or a sequence of strings or integers. Sets every output in `outputs`
 * to a column of the same form; a classifier's probabilities are a matrix of doubles whose columns follow
 * moka_model_class_label. Each row gives the result of moka_model_predict; classic models compute many rows at once. A
 * failure names the row, which counts from 0. */
MOKA_API moka_status moka_model_predict_rows(const moka_model* model, const moka_features* columns,
                                             moka_features* outputs);

/* Records what the process does with models until moka_trace_stop, for Perfetto (docs/seeing.md). One at a time. "%p"
 * in `path` stands for the number of the process. A trace at `path` is replaced, and nothing else. MOKA_IO,
 * MOKA_INVALID_ARGUMENT (a trace is being written, the path of something else). */
MOKA_API moka_status moka_trace_start(const char* path);
/* Does nothing where no trace is written. MOKA_IO: not everything could be written. */
MOKA_API moka_status moka_trace_stop(void);

/* The mutable buffers of a stateful model, filled with zeros. The model must outlive it. */
MOKA_API moka_status moka_state_new(const moka_model* model, moka_state** state);
MOKA_API void moka_state_free(moka_state* state);
/* A copy of one buffer, valid until the next moka_state_read or moka_state_free. */
MOKA_API moka_status moka_state_read(moka_state* state, const char* name, moka_array* array);
/* Copies and converts; the shape must be the buffer's. */
MOKA_API moka_status moka_state_write(moka_state* state, const char* name, const moka_array* array);

#ifdef __cplusplus
}
#endif

#endif
