/* SPDX-License-Identifier: Apache-2.0 */
#include "c_api/predict_from_c.h"

#include <moka/moka.h>

int add_from_c(const float x[2], float y, float result[2]) {
  static const char program[] =
      "program(1.0)\n{\n  func main<ios15>(tensor<fp32, [2]> x, tensor<fp32, [1]> y) {\n"
      "    tensor<fp32, [2]> z = add(x = x, y = y)[name = tensor<string, []>(\"z\")];\n  } -> (z);\n}";
  moka_configuration configuration = MOKA_CONFIGURATION_INIT;
  moka_model* model = NULL;
  moka_features *inputs = NULL, *outputs = NULL;
  const int64_t two = 2, one = 1;
  moka_array a = {(void*)x, MOKA_FLOAT32, 1, &two, NULL};
  moka_array b = {&y, MOKA_FLOAT32, 1, &one, NULL};
  moka_array c = {result, MOKA_FLOAT32, 1, &two, NULL};
  moka_status status = moka_model_load_mil(program, &configuration, &model);
  if (status == MOKA_OK) status = moka_features_new(&inputs);
  if (status == MOKA_OK) status = moka_features_new(&outputs);
  if (status == MOKA_OK) status = moka_features_set_array(inputs, "x", &a);
  if (status == MOKA_OK) status = moka_features_set_array(inputs, "y", &b);
  if (status == MOKA_OK) status = moka_features_set_array(outputs, "z", &c);
  if (status == MOKA_OK) status = moka_model_predict(model, inputs, outputs, NULL);
  moka_features_free(outputs);
  moka_features_free(inputs);
  moka_model_free(model);
  return status;
}
