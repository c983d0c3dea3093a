// The columns of x that kPixels neighbors of a row of y depend on. Those that neighboring taps share are read once.
// What includes this declares kPixels, and kWidth, kStride and kDilation of the kernel along rows.
const int kSpan = (kPixels - 1) * kStride + (kWidth - 1) * kDilation + 1;
int column[kSpan];  // those outside are read at the edge and count as 0
bool inside[kSpan];

void find_columns(int first, int width) {
  [[unroll]] for (int s = 0; s < kSpan; s++) {
    column[s] = clamp(first + s, 0, width - 1);
    inside[s] = column[s] == first + s;
  }
}

// What lies between the taps is not read.
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
