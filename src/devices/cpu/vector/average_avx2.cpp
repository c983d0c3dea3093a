#if defined(__x86_64__)
#define MOKA_AVERAGE average_avx2
#define MOKA_LANES 8
#define MOKA_BLOCK 8
#include "devices/cpu/vector/average.inc"
#endif
