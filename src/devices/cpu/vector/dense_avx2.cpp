#if defined(__x86_64__)
#define MOKA_DENSE dense_avx2
#define MOKA_LANES 8
#define MOKA_BLOCK 8
#define MOKA_NARROW_PIXELS 10
#define MOKA_PIXELS 6
#define MOKA_WIDE_PIXELS 4
#include "devices/cpu/vector/dense.inc"
#endif
