// SPDX-License-Identifier: Apache-2.0
// The columns of x that kPixels adjacent pixels of a row of y depend on. Columns that adjacent taps share are read once.
// The including shader declares kPixels, and kWidth, kStride and kDilation of the kernel along rows.
const int kSpan = (kPixels - 1) * kStride + (kWidth - 1) * kDilation + 1;
int column[kSpan];  // columns outside x are read at its edge and count as 0
bool inside[kSpan];

void find_columns(int first, int width) {
  [[unroll]] for (int s = 0; s < kSpan; s++) {
    column[s] = clamp(first + s, 0, width - 1);
    inside[s] = column[s] == first + s;
  }
}

// Whether a tap reads column s. The columns between taps are not read.
bool is_used(int s) {
  bool used = false;
  [[unroll]] for (int e = 0; e < kWidth; e++) {
    const int n = s - e * kDilation;
    used = used || (n >= 0 && n % kStride == 0 && n / kStride < kPixels);
  }
  return used;
}

void read_columns(uint from, out float v[kSpan]) {
  [[unroll]] for (int s = 0; s < kSpan; s++) {
    if (!is_used(s)) continue;
    const float read = float(x[from + uint(column[s])]);
    v[s] = inside[s] ? read : 0.0;
  }
}
