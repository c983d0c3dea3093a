/* SPDX-License-Identifier: Apache-2.0 */
/* Loads a model, predicts on reproducible numbers and prints the outputs: predict MODEL [SEED] */
#include <inttypes.h>
#include <moka/moka.h>
#include <stdio.h>
#include <stdlib.h>

static int report(const char* what) {
  fprintf(stderr, "%s: %s\n", what, moka_last_error());
  return 3;
}

static void print_array(const char* name, const moka_array* a) {
  int64_t count = 1;
  printf("%s: array", name);
  for (size_t d = 0; d < a->rank; d++) {
    printf("%s%" PRId64, d == 0 ? " " : " x ", a->shape[d]);
    count *= a->shape[d];
  }
  if (a->type == MOKA_FLOAT32)
    for (int64_t i = 0; i < count && i < 4; i++) printf("%s %g", i == 0 ? ":" : "", ((const float*)a->data)[i]);
  printf("%s\n", count > 4 ? " ..." : "");
}

static int print_output(const moka_features* outputs, const char* name) {
  moka_array array;
  moka_image image;
  moka_dictionary dictionary;
  const char* text;
  double number;
  int64_t integer;
  switch (moka_features_type(outputs, name)) {
    case MOKA_TYPE_MULTI_ARRAY:
      if (moka_features_get_array(outputs, name, &array) != MOKA_OK) return report(name);
      print_array(name, &array);
      break;
    case MOKA_TYPE_IMAGE:
      if (moka_features_get_image(outputs, name, &image) != MOKA_OK) return report(name);
      printf("%s: image %" PRId64 " x %" PRId64 "\n", name, image.width, image.height);
      break;
    case MOKA_TYPE_DICTIONARY:
      if (moka_features_get_dictionary(outputs, name, &dictionary) != MOKA_OK) return report(name);
      printf("%s: %zu entries\n", name, dictionary.count);
      for (size_t i = 0; i < dictionary.count && i < 5; i++) {
        if (dictionary.string_keys != NULL)
          printf("  %s %g\n", dictionary.string_keys[i], dictionary.values[i]);
        else
          printf("  %" PRId64 " %g\n", dictionary.int64_keys[i], dictionary.values[i]);
      }
      break;
    case MOKA_TYPE_STRING:
      if (moka_features_get_string(outputs, name, &text) != MOKA_OK) return report(name);
      printf("%s: '%s'\n", name, text);
      break;
    case MOKA_TYPE_DOUBLE:
      if (moka_features_get_double(outputs, name, &number) != MOKA_OK) return report(name);
      printf("%s: %g\n", name, number);
      break;
    case MOKA_TYPE_INT64:
      if (moka_features_get_int64(outputs, name, &integer) != MOKA_OK) return report(name);
      printf("%s: %" PRId64 "\n", name, integer);
      break;
    default: printf("%s\n", name);
  }
  return 0;
}

int main(int argc, char** argv) {
  moka_configuration configuration = MOKA_CONFIGURATION_INIT;
  moka_model* model = NULL;
  moka_features *inputs = NULL, *outputs = NULL;
  moka_state* state = NULL;
  int result = 0;
  if (argc < 2) {
    fprintf(stderr, "usage: %s MODEL [SEED]\n", argv[0]);
    return 2;
  }
  configuration.memory_budget = (size_t)4 << 30;
  if (moka_model_load(argv[1], &configuration, &model) != MOKA_OK) return report(argv[1]);
  printf("%s, function '%s'\n", moka_model_text(model, MOKA_MODEL_TYPE), moka_model_text(model, MOKA_FUNCTION_NAME));
  for (size_t i = 0; i < moka_model_feature_count(model, MOKA_INPUT); i++) {
    moka_feature_info info;
    if (moka_model_feature(model, MOKA_INPUT, i, &info) != MOKA_OK) return report(argv[1]);
    printf("input %s: %s\n", info.name, info.type_text);
  }
  if (moka_model_feature_count(model, MOKA_STATE) > 0 && moka_state_new(model, &state) != MOKA_OK)
    result = report("state");
  if (result == 0 && (moka_features_new(&inputs) != MOKA_OK || moka_features_new(&outputs) != MOKA_OK ||
                      moka_features_set_random(inputs, model, argc > 2 ? strtoull(argv[2], NULL, 10) : 1) != MOKA_OK))
    result = report("inputs");
  if (result == 0 && moka_model_predict(model, inputs, outputs, state) != MOKA_OK) result = report("predict");
  for (size_t i = 0; result == 0 && i < moka_features_count(outputs); i++)
    result = print_output(outputs, moka_features_name(outputs, i));
  moka_state_free(state);
  moka_features_free(inputs);
  moka_features_free(outputs);
  moka_model_free(model);
  return result;
}
