/* SPDX-License-Identifier: Apache-2.0 */
/* A plug-in with a custom layer:
 *   cc -O3 -shared -fPIC swish.c -o swish.so -lm
 *   moka predict NeuralMcNeuralNet.mlmodel --plugin swish.so --input image=random */
#include <math.h>
#include <moka/plugin.h>

static const char* evaluate(void* layer, const moka_layer_call* call) {
  const float* x = call->inputs[0].data;
  float* y = call->outputs[0].data;
  int64_t i;
  (void)layer;
  for (i = 0; i < call->outputs[0].shape[0]; i++) y[i] = x[i] / (1 + expf(-x[i]));
  return NULL;
}

moka_status moka_plugin(const moka_host* host) {
  moka_layer_type type = {0};
  type.struct_size = sizeof type;
  type.elementwise = 1;
  type.evaluate = evaluate;
  return host->register_layer("Swish", &type, NULL);
}
