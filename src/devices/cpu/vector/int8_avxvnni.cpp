#if defined(__x86_64__)
#define MOKA_INT8_GEMM int8_gemm_avxvnni
#define MOKA_LANES 8
#define MOKA_VECTORS 2
#define MOKA_ROWS 6
#include "devices/cpu/vector/int8.inc"
#endif
