// SPDX-License-Identifier: Apache-2.0
// A pixel of the planes of a packed frame, whose words are x[] from x_at on; kernel::FrameHeader names them.

int header(uint word) { return int(x[x_at + word]); }
float number(uint word) { return uintBitsToFloat(x[x_at + word]); }

// A sample of 8 bits, or of 10 bits divided by 4, whose byte is `at`.
float sample_at(int at, bool is_word) {
  const uint word = x[x_at + 32u + uint(at) / 4u];
  const int bit = (at % 4) * 8;
  return is_word ? float(bitfieldExtract(word, bit, 16) >> 6u) * 0.25 : float(bitfieldExtract(word, bit, 8));
}

// The samples of a source of `size` that a result centered at `center` covers.
ivec2 range_of(float center, float stretch, int size) {
  const int first = clamp(int(floor(center - stretch)), 0, size - 1);
  return ivec2(first, clamp(int(ceil(center + stretch)), first + 1, size));
}

float weight_of(int at, float center, float stretch) {
  return max(0.0, 1.0 - abs(float(at) + 0.5 - center) / stretch);
}

// Red, green and blue, or gray three times.
vec3 color_of(int column, int row, bool is_planar, bool is_word) {
  const int bytes = is_word ? 2 : 1;
  const float gray = number(17u) * sample_at(row * header(3u) + column * bytes, is_word) + number(18u);
  if (kOrder == 0u) return clamp(vec3(gray), 0.0, 255.0);
  const int chroma = (row / 2) * header(4u) + (column / 2) * (is_planar ? 1 : 2 * bytes);
  const float u = sample_at(header(5u) + chroma, is_word) - 128.0, v = sample_at(header(6u) + chroma, is_word) - 128.0;
  return clamp(vec3(gray + number(19u) * v, gray + number(20u) * u + number(21u) * v, gray + number(22u) * u), 0.0, 255.0);
}

void store_frame_pixel(uint i, uint format) {
  const int width = header(7u);
  const ivec2 at = ivec2(int(i) % width, int(i) / width) - ivec2(header(9u), header(10u));
  const ivec2 placed = ivec2(header(11u), header(12u)), size = ivec2(header(1u), header(2u));
  const bool is_planar = format == 2u || format == 3u, is_word = format >= 4u;
  vec3 sum = vec3(0.0);
  float sum_x = 0.0, sum_y = 0.0;
  if (all(greaterThanEqual(at, ivec2(0))) && all(lessThan(at, placed))) {
    const vec2 steps = vec2(number(15u), number(16u)), stretch = max(vec2(1.0), steps);
    const vec2 center = vec2(number(13u), number(14u)) + (vec2(at) + 0.5) * steps;
    const ivec2 columns = range_of(center.x, stretch.x, size.x), rows = range_of(center.y, stretch.y, size.y);
    for (int column = columns.x; column < columns.y; column++) sum_x += weight_of(column, center.x, stretch.x);
    for (int row = rows.x; row < rows.y; row++) {
      const float w = weight_of(row, center.y, stretch.y);
      sum_y += w;
      vec3 line = vec3(0.0);
      for (int column = columns.x; w > 0.0 && column < columns.y; column++)
        line += weight_of(column, center.x, stretch.x) * color_of(column, row, is_planar, is_word);
      sum += w * line;
    }
    sum /= sum_x * sum_y;
  }
  if (kOrder == 2u) sum = sum.bgr;
  y[y_at + i] = T(sum.r);
  if (kOrder == 0u) return;
  y[y_at + count + i] = T(sum.g);
  y[y_at + 2u * count + i] = T(sum.b);
}
