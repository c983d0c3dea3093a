#if defined(__x86_64__)
#define MOKA_POINTWISE pointwise_avx512
#define MOKA_LANES 16
#define MOKA_BLOCK 16
#define MOKA_PIXELS 14
#define MOKA_WIDE_PIXELS 9
#define MOKA_DEPTH 0
#include "devices/cpu/vector/pointwise.inc"
#endif
