#if defined(__x86_64__)
#define MOKA_ROW_LOOPS row_loops_avx512
#include "devices/cpu/vector/lanes.inc"
#include "devices/cpu/vector/rows.inc"
#endif
