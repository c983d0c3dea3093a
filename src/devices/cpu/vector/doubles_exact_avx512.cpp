#if defined(__x86_64__)
#define MOKA_DOUBLE_LOOPS exact_double_loops_avx512
#include "devices/cpu/vector/doubles.inc"
#endif
