#define MOKA_DENSE dense_base
#define MOKA_LANES 4
#define MOKA_BLOCK 8
#define MOKA_NARROW_PIXELS 10
#define MOKA_PIXELS 6
#define MOKA_WIDE_PIXELS 4
#include "devices/cpu/vector/dense.inc"
