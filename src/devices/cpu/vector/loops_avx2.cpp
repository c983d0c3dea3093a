#if defined(__x86_64__)
#define MOKA_LOOPS loops_avx2
#include "devices/cpu/vector/loops.inc"
#endif
