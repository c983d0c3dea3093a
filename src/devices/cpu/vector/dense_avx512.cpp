#if defined(__x86_64__)
#define MOKA_DENSE dense_avx512
#define MOKA_LANES 16
#define MOKA_BLOCK 16
#define MOKA_NARROW_PIXELS 10
#define MOKA_PIXELS 10
#define MOKA_WIDE_PIXELS 9
#include "devices/cpu/vector/dense.inc"
#endif
