#if defined(__x86_64__)
#define MOKA_GEMM gemm_avx2
#define MOKA_LANES 8
#define MOKA_ROWS 6
#define MOKA_WIDE_ROWS 4
#define MOKA_DEPTH 256
#include "devices/cpu/vector/gemm.inc"
#endif
