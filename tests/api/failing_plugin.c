/* SPDX-License-Identifier: Apache-2.0 */
/* A plug-in whose only layer lacks a function. */
#include "moka/plugin.h"

moka_status moka_plugin(const moka_host* host) {
  const moka_layer_type type = {sizeof type, 0};
  return host->register_layer("Broken", &type, 0);
}
