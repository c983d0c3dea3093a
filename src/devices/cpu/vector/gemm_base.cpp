#define MOKA_GEMM gemm_base
#define MOKA_LANES 4
#define MOKA_ROWS 6
#define MOKA_WIDE_ROWS 4
#define MOKA_DEPTH 256
#include "devices/cpu/vector/gemm.inc"
