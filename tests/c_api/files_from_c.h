// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
/* Decodes an image, fits it to 2 x 2 pixels of the format MOKA_RGB8 and copies these to `rgb`, in C; returns a
 * moka_status. */
int fit_from_c(const void* bytes, size_t size, uint8_t rgb[12]);
/* Predicts with the model at `path` from an image file and writes the most probable class, with a zero byte, to
 * `label`, in C. */
int classify_from_c(const char* model, const char* image, char label[64]);
/* Predicts from a gray NV12 picture of width x height, and writes the most probable class to `label`, in C. */
int classify_frame_from_c(const char* model, const uint8_t* luma, const uint8_t* chroma, int64_t width, int64_t height,
                          char label[64]);
#ifdef __cplusplus
}
#endif
