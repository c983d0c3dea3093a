#if defined(__x86_64__)
#define MOKA_PLANES planes_avx2
#define MOKA_LANES 8
#define MOKA_BLOCK 8
#define MOKA_PIXELS 6
#include "devices/cpu/vector/planes.inc"
#endif
