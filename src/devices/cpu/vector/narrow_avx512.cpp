#if defined(__x86_64__)
#define MOKA_NARROW narrow_avx512
#define MOKA_LANES 16
#define MOKA_BLOCK 16
#define MOKA_SUMS 24
#include "devices/cpu/vector/narrow.inc"
#endif
