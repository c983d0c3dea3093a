#if defined(__x86_64__)
#define MOKA_INT8_GEMM int8_gemm_avx512vnni
#define MOKA_LANES 16
#define MOKA_VECTORS 2
#define MOKA_ROWS 12
#include "devices/cpu/vector/int8.inc"
#endif
