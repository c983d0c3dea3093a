// SPDX-License-Identifier: Apache-2.0
/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MOKA_C_PIXEL_BUFFER_H
#define MOKA_C_PIXEL_BUFFER_H

/* Pictures of cameras and video decoders as values, in C: a part of moka/moka.h. */

#include "moka/c_core.h"

#ifdef __cplusplus
extern "C" {
#endif

/* How an image fills a size, by the names of Vision. */
typedef enum moka_image_fit MOKA_INT {
  MOKA_SCALE_FILL = 0, /* stretched to the whole size */
  MOKA_SCALE_FIT = 1,  /* the whole image, aspect ratio kept, centered on black */
  MOKA_CENTER_CROP = 2 /* fills the size, aspect ratio kept, edges cut off evenly */
} moka_image_fit;

/* The part of an image that is used, as VNRequest's regionOfInterest: in fractions of the image's width and height.
 * Unlike Vision's, (x, y) is the top left corner, measured from the top left corner of the image. */
typedef struct moka_image_region {
  double x, y, width, height;
} moka_image_region;

/* Luma of every pixel, chroma of every second column and row (4:2:0). Video range has luma 16 to 235 and chroma 16 to
 * 240, or four times that with 10 bits; full range has all values. In quotes: Core Video's four letters. */
typedef enum moka_pixel_buffer_format MOKA_INT {
  MOKA_NV12 = 0,      /* luma; Cb and Cr in turns: "420v" */
  MOKA_NV12_FULL = 1, /* the same in full range: "420f" */
  MOKA_I420 = 2,      /* luma; Cb; Cr: "y420" */
  MOKA_I420_FULL = 3, /* "f420" */
  MOKA_P010 = 4,      /* as MOKA_NV12 in little-endian words, of which the high 10 bits count: "x420" */
  MOKA_P010_FULL = 5  /* "xf20" */
} moka_pixel_buffer_format;

/* The luma that colors are made of: ITU-R BT.601, BT.709 or BT.2020. */
typedef enum moka_ycbcr_matrix MOKA_INT { MOKA_BT601 = 0, MOKA_BT709 = 1, MOKA_BT2020 = 2 } moka_ycbcr_matrix;

/* A picture in planes. Start from MOKA_PIXEL_BUFFER_INIT and change fields. */
typedef struct moka_pixel_buffer {
  size_t struct_size; /* sizeof(moka_pixel_buffer) of the caller */
  int64_t width, height;
  moka_pixel_buffer_format format;
  moka_ycbcr_matrix matrix;
  const void* planes[3]; /* rows from top to bottom; the third one is that of Cr, NULL if the format has two planes */
  int64_t row_bytes[3];  /* from row to row; 0: rows have no gaps */
  /* 0, or the bytes of planes[0] where all planes lie there one after another without gaps; the others are NULL then.
   */
  size_t contiguous_bytes;
  moka_image_fit fit;              /* how it fills the size that the model takes */
  const moka_image_region* region; /* the part that is used; NULL: all of it */
} moka_pixel_buffer;
#define MOKA_PIXEL_BUFFER_INIT \
  { sizeof(moka_pixel_buffer), 0, 0, MOKA_NV12, MOKA_BT601, {NULL, NULL, NULL}, {0, 0, 0}, 0, MOKA_SCALE_FILL, NULL }

/* Sets an image input to a picture in any size. The prediction crops it, brings it to the size that the model takes and
 * converts it to the model's colors, in one pass. The samples are borrowed: they must outlive the predictions that use
 * them. The rest is copied. MOKA_INVALID_ARGUMENT: sizes not in 1 to 65536, a plane that is missing or whose rows are
 * too short; a region that does not lie in the picture is an error of the prediction. */
MOKA_API moka_status moka_features_set_pixel_buffer(moka_features* features, const char* name,
                                                    const moka_pixel_buffer* buffer);

/* The bytes of all planes without gaps; 0 for sizes not in 1 to 65536 and for unknown formats. */
MOKA_API size_t moka_pixel_buffer_bytes(int64_t width, int64_t height, moka_pixel_buffer_format format);

/* ---- Defaults, for languages that do not see the macros ---- */

static inline moka_pixel_buffer moka_default_pixel_buffer(void) {
  const moka_pixel_buffer buffer = MOKA_PIXEL_BUFFER_INIT;
  return buffer;
}

#ifdef __cplusplus
}
#endif

#endif
