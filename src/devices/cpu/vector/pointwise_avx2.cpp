#if defined(__x86_64__)
#define MOKA_POINTWISE pointwise_avx2
#define MOKA_LANES 8
#define MOKA_BLOCK 8
#define MOKA_PIXELS 6
#define MOKA_WIDE_PIXELS 4
#define MOKA_DEPTH 256
#include "devices/cpu/vector/pointwise.inc"
#endif
