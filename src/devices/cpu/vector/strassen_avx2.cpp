#if defined(__x86_64__)
#define MOKA_STRASSEN strassen_avx2
#define MOKA_LANES 8
#define MOKA_ROWS 6
#define MOKA_WIDE_ROWS 4
#include "devices/cpu/vector/strassen.inc"
#endif
