// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdint.h>

/// Loops of fitting a picture, compiled for each instruction set. All give the same numbers.
///
/// Colors are words with 6 bits after the point, to which kBias is added: a sum that saturates is then a color that is
/// cut off at 255. Weights are words with 15 bits after the point.
namespace moka::pictures {

inline constexpr int kColorBits = 6, kWeightBits = 15;
inline constexpr int16_t kBias = INT16_MAX - (255 << kColorBits);

/// Where the samples of a picture lie.
enum class Storage : uint8_t { biplanar, planar, words };  // of 8, 8 and 10 bits

/// 32-bit words of two equal weights, which registers take without a shuffle.
typedef int32_t PairOfWeights;

/// Words by which samples are multiplied, and what is added to the products.
struct ColorWords {
  int16_t luma, red_v, green_u, green_v, blue_u, offset;
};

/// Adjacent rows of a picture, which belong to the end of one row of the result and to the beginning of the next one.
struct RowsToAdd {
  const uint8_t* luma;                  ///< of the first row, at an even column
  const uint8_t* chroma[2];             ///< of the first row, at the same place; one plane if biplanar
  int64_t luma_bytes, chroma_bytes[2];  ///< from row to row
  int64_t rows;
  bool is_odd;                              ///< the first row is the second one of its row of chroma
  int64_t columns;                          ///< of luma
  const PairOfWeights *ending, *beginning;  ///< of each row
  int16_t* line;                            ///< [channel][stride]: receives the row that ends
  int16_t* carry;  ///< [channel][stride]: what was added to that row so far; receives the row that begins
  int64_t stride;  ///< a multiple of kTile
  const ColorWords* words;
};

/// Results of a row of the picture from words of a line.
struct LineToMix {
  const int16_t* line;
  int64_t count;           ///< of results
  const int32_t* first;    ///< of each result, padded to a multiple of kGroup
  const int16_t* weights;  ///< [result][taps], padded to a multiple of kGroup results
  int64_t taps;            ///< a multiple of kTapsOfStep
  float* to;
};

inline constexpr int64_t kTile = 32, kGroup = 8, kTapsOfStep = 16;

struct Sampler {
  void (*add_rows[3][2])(const RowsToAdd&);  ///< by Storage; of luma alone, of colors
  void (*mix)(const LineToMix&);
};

/// The table for this processor.
const Sampler& sampler();

const Sampler& sampler_base();
const Sampler& sampler_avx2();
const Sampler& sampler_avx512();

}  // namespace moka::pictures
