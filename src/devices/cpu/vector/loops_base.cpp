#define MOKA_LOOPS loops_base
#include "devices/cpu/vector/loops.inc"
