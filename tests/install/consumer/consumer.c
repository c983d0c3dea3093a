/* SPDX-License-Identifier: Apache-2.0 */
#include <moka/moka.h>
#include <moka/moka_files.h>
#include <stdio.h>

int main(void) {
  moka_model* model = NULL;
  moka_status status = moka_model_load("absent.mlmodel", NULL, &model);
  printf("%s %s\n", moka_version(), moka_status_name(status));
  return 0;
}
