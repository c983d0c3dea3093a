#if defined(__x86_64__)
#define MOKA_AVERAGE average_avx512
#define MOKA_LANES 16
#define MOKA_BLOCK 16
#include "devices/cpu/vector/average.inc"
#endif
