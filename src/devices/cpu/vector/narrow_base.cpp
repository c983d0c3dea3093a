#define MOKA_NARROW narrow_base
#define MOKA_LANES 4
#define MOKA_BLOCK 8
#define MOKA_SUMS 12
#include "devices/cpu/vector/narrow.inc"
