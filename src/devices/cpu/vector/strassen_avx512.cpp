#if defined(__x86_64__)
#define MOKA_STRASSEN strassen_avx512
#define MOKA_LANES 16
#define MOKA_ROWS 14
#include "devices/cpu/vector/strassen.inc"
#endif
