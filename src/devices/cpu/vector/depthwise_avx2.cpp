#if defined(__x86_64__)
#define MOKA_DEPTHWISE depthwise_avx2
#define MOKA_LANES 8
#define MOKA_BLOCK 8
#define MOKA_PIXELS 8
#include "devices/cpu/vector/depthwise.inc"
#endif
