#define MOKA_ROW_LOOPS row_loops_base
#include "devices/cpu/vector/lanes.inc"
#include "devices/cpu/vector/rows.inc"
