#define MOKA_DOUBLE_LOOPS double_loops_base
#include "devices/cpu/vector/doubles.inc"
