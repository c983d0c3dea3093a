#define MOKA_AVERAGE average_base
#define MOKA_LANES 4
#define MOKA_BLOCK 8
#include "devices/cpu/vector/average.inc"
