/* SPDX-License-Identifier: Apache-2.0 */
#include "c_api/files_from_c.h"

#include <moka/moka_files.h>
#include <string.h>

int fit_from_c(const void* bytes, size_t size, uint8_t rgb[12]) {
  moka_picture *decoded = NULL, *fitted = NULL, *colors = NULL;
  moka_image image;
  moka_status status = moka_picture_decode(bytes, size, "bytes in C", 0, &decoded);
  if (status == MOKA_OK) status = moka_picture_image(decoded, &image);
  if (status == MOKA_OK) status = moka_picture_fit(&image, 2, 2, MOKA_CENTER_CROP, NULL, &fitted);
  if (status == MOKA_OK) status = moka_picture_image(fitted, &image);
  if (status == MOKA_OK) status = moka_picture_convert(&image, MOKA_RGB8, &colors);
  if (status == MOKA_OK) status = moka_picture_image(colors, &image);
  if (status == MOKA_OK) {
    int y;
    for (y = 0; y < 2; y++) memcpy(rgb + 6 * y, (const char*)image.pixels + y * image.row_bytes, 6);
  }
  moka_picture_free(colors);
  moka_picture_free(fitted);
  moka_picture_free(decoded);
  return status;
}

int classify_from_c(const char* model_path, const char* image_path, char label[64]) {
  moka_model* model = NULL;
  moka_features *inputs = NULL, *outputs = NULL;
  moka_reading_options options = MOKA_READING_OPTIONS_INIT;
  const char* best = NULL;
  moka_status status = moka_model_load(model_path, NULL, &model);
  options.fit = MOKA_SCALE_FIT;
  if (status == MOKA_OK) status = moka_features_new(&inputs);
  if (status == MOKA_OK) status = moka_features_new(&outputs);
  if (status == MOKA_OK) status = moka_features_read_file(inputs, model, "image", image_path, &options);
  if (status == MOKA_OK) status = moka_model_predict(model, inputs, outputs, NULL);
  if (status == MOKA_OK) status = moka_features_get_string(outputs, "shape", &best);
  if (status == MOKA_OK) strncpy(label, best, 63);
  moka_features_free(outputs);
  moka_features_free(inputs);
  moka_model_free(model);
  return status;
}

int classify_frame_from_c(const char* model_path, const uint8_t* luma, const uint8_t* chroma, int64_t width,
                          int64_t height, char label[64]) {
  moka_model* model = NULL;
  moka_features *inputs = NULL, *outputs = NULL;
  moka_pixel_buffer frame = MOKA_PIXEL_BUFFER_INIT;
  const char* best = NULL;
  moka_status status = moka_model_load(model_path, NULL, &model);
  frame.width = width;
  frame.height = height;
  frame.format = MOKA_NV12_FULL;
  frame.planes[0] = luma;
  frame.planes[1] = chroma;
  frame.fit = MOKA_SCALE_FIT;
  if (status == MOKA_OK) status = moka_features_new(&inputs);
  if (status == MOKA_OK) status = moka_features_new(&outputs);
  if (status == MOKA_OK) status = moka_features_set_pixel_buffer(inputs, "image", &frame);
  if (status == MOKA_OK) status = moka_model_predict(model, inputs, outputs, NULL);
  if (status == MOKA_OK) status = moka_features_get_string(outputs, "shape", &best);
  if (status == MOKA_OK) strncpy(label, best, 63);
  moka_features_free(outputs);
  moka_features_free(inputs);
  moka_model_free(model);
  return status;
}
