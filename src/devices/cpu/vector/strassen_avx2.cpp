#if defined(__x86_64__)
#define MOKA_STRASSEN strassen_avx2
#define MOKA_LANES 8
#define MOKA_ROWS 6
#include "devices/cpu/vector/strassen.inc"
#endif
