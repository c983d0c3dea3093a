/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MOKA_MOKA_FILES_H
#define MOKA_MOKA_FILES_H

/* Files of images, sound, arrays and text, for programs in C (C99): images as moka_image, and any file as the value of
 * a model's input. moka/files.h is the same for C++. The rules of moka/moka.h hold: ownership, failures, growth of
 * structs. Messages begin with the file's name.
 *
 * What functions that read fail with. MOKA_NOT_FOUND: there is no such file, or no such array in it. MOKA_IO: it is not
 * a regular file, or cannot be read. MOKA_MALFORMED: it is damaged, cut off, or of another kind. MOKA_UNSUPPORTED: it
 * is valid, but of a kind that is not read. MOKA_OUT_OF_BUDGET: more pixels than allowed. MOKA_INVALID_ARGUMENT: its
 * contents do not fit the input, or an option is wrong. */

#include "moka/moka.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Images ---- */

/* An image that the library owns. It may be used by many threads at once. */
typedef struct moka_picture moka_picture;

/* Decodes PNG, JPEG or WebP: MOKA_GRAY8 for gray files, MOKA_RGBA8 with straight alpha for all others. JPEGs are turned
 * upright by their EXIF orientation. `most_pixels`: a limit on width times height; 0: 2^27. */
MOKA_API moka_status moka_picture_read(const char* path, int64_t most_pixels, moka_picture** picture);
/* The same for the `size` bytes of a file. `name` begins messages; NULL: "image". */
MOKA_API moka_status moka_picture_decode(const void* bytes, size_t size, const char* name, int64_t most_pixels,
                                         moka_picture** picture);
/* The region of an image (NULL: all of it) in exactly width x height pixels, in the same format. */
MOKA_API moka_status moka_picture_fit(const moka_image* image, int64_t width, int64_t height, moka_image_fit fit,
                                      const moka_image_region* region, moka_picture** picture);
/* A copy in another format. Gray is 0.299 R + 0.587 G + 0.114 B. Dropping alpha composes over black. */
MOKA_API moka_status moka_picture_convert(const moka_image* image, moka_pixel_format format, moka_picture** picture);
/* The whole picture of a buffer in colors, each rounded once, or in gray: luma in the full range. */
MOKA_API moka_status moka_picture_convert_pixel_buffer(const moka_pixel_buffer* buffer, moka_pixel_format format,
                                                       moka_picture** picture);
/* A buffer in exactly width x height pixels, by its own fit and region, as a prediction takes it. */
MOKA_API moka_status moka_picture_fit_pixel_buffer(const moka_pixel_buffer* buffer, int64_t width, int64_t height,
                                                   moka_pixel_format format, moka_picture** picture);
/* Size, format and pixels, which live as long as the picture. moka_features_set_image takes them. */
MOKA_API moka_status moka_picture_image(const moka_picture* picture, moka_image* image);
MOKA_API void moka_picture_free(moka_picture* picture);

/* ---- Inputs from files ---- */

/* Start from MOKA_READING_OPTIONS_INIT and change fields. */
typedef struct moka_reading_options {
  size_t struct_size;              /* sizeof(moka_reading_options) of the caller */
  moka_image_fit fit;              /* how an image fills the size that the model takes */
  const moka_image_region* region; /* the part of an image that is used; NULL: all of it */
  int64_t most_pixels;             /* of an image file; 0: 2^27 */
  uint32_t rate;                   /* sounds are resampled to it, in hertz; 0: the rate of the file */
  int pad;            /* 1: appends silence to sounds that are too short, cuts the end of those that are too long */
  const char* member; /* the array of an .npz file; NULL: the one of the input's name, or the only one */
} moka_reading_options;
#define MOKA_READING_OPTIONS_INIT \
  { sizeof(moka_reading_options), MOKA_SCALE_FILL, NULL, 0, 0, 0, NULL }

/* Sets an input of the model to the contents of a file, as `moka predict --input NAME=@FILE` does. The end of the path
 * tells the kind:
 *   images    .png .jpg .jpeg .webp .npy .npz; in a size and in the colors that the model takes
 *   arrays    .npy .npz .json .txt, or sound (.wav .flac .ogg .mp3 ...), which is mixed to one channel
 *   numbers   .txt .json .npy
 *   texts     .json with a string; any other file as it is
 *   others    .json
 * The features own the value. `name`: of an input or a training input; NULL for a model's only input. `options` may be
 * NULL. MOKA_NOT_FOUND also: the model has no such input. */
MOKA_API moka_status moka_features_read_file(moka_features* features, const moka_model* model, const char* name,
                                             const char* path, const moka_reading_options* options);
/* The same for the `size` bytes of a file, whose kind is told by the first of them, and otherwise by the end of
 * `file_name`, which begins messages. `file_name` may be NULL. */
MOKA_API moka_status moka_features_read_bytes(moka_features* features, const moka_model* model, const char* name,
                                              const void* bytes, size_t size, const char* file_name,
                                              const moka_reading_options* options);

/* ---- Defaults, for languages that do not see the macros ---- */

static inline moka_reading_options moka_default_reading_options(void) {
  const moka_reading_options options = MOKA_READING_OPTIONS_INIT;
  return options;
}

#ifdef __cplusplus
}
#endif

#endif
