#if defined(__x86_64__)
#define MOKA_GEMM gemm_avx2
#define MOKA_LANES 8
#define MOKA_ROWS 6
#include "devices/cpu/vector/gemm.inc"
#endif
