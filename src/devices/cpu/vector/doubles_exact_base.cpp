#define MOKA_DOUBLE_LOOPS exact_double_loops_base
#include "devices/cpu/vector/doubles.inc"
