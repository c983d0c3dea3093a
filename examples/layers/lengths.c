/* SPDX-License-Identifier: Apache-2.0 */
/* A plug-in with a custom model: the length of a text, times the parameter "scale".
 *   cc -O3 -shared -fPIC lengths.c -o lengths.so */
#include <moka/plugin.h>
#include <stdlib.h>
#include <string.h>

static const moka_host* host;

static const char* create(void* context, const moka_model_info* info, void** model) {
  double* scale = malloc(sizeof *scale);
  size_t i;
  (void)context;
  if (scale == NULL) return "no memory is left";
  *scale = 1;
  for (i = 0; i < info->parameter_count; i++)
    if (strcmp(info->parameters[i].name, "scale") == 0) *scale = info->parameters[i].number;
  *model = scale;
  return NULL;
}

static const char* predict(void* model, const moka_features* inputs, moka_features* outputs) {
  const char* text;
  if (host->get_string(inputs, "text", &text) != MOKA_OK) return host->last_error();
  if (host->set_double(outputs, "length", *(double*)model * (double)strlen(text)) != MOKA_OK) return host->last_error();
  return NULL;
}

moka_status moka_plugin(const moka_host* given) {
  moka_model_code code = {0};
  host = given;
  code.struct_size = sizeof code;
  code.create = create;
  code.destroy = free;
  code.predict = predict;
  return host->register_model("Lengths", &code, NULL);
}
