#if defined(__x86_64__)
#define MOKA_NARROW narrow_avx2
#define MOKA_LANES 8
#define MOKA_BLOCK 8
#define MOKA_SUMS 12
#include "devices/cpu/vector/narrow.inc"
#endif
