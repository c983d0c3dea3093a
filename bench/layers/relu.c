/* SPDX-License-Identifier: Apache-2.0 */
/* ReLU as a custom layer, for bench/layers/run.py. */
#include <moka/plugin.h>

static const char* evaluate(void* layer, const moka_layer_call* call) {
  const float* restrict x = call->inputs[0].data;
  float* restrict y = call->outputs[0].data;
  const int64_t n = call->outputs[0].shape[0];
  (void)layer;
  for (int64_t i = 0; i < n; i++) y[i] = x[i] > 0 ? x[i] : 0;
  return NULL;
}

moka_status moka_plugin(const moka_host* host) {
  moka_layer_type type = {0};
  type.struct_size = sizeof type;
  type.elementwise = 1;
  type.evaluate = evaluate;
  return host->register_layer("BenchRelu", &type, NULL);
}
