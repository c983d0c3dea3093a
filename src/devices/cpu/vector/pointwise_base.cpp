#define MOKA_POINTWISE pointwise_base
#define MOKA_LANES 4
#define MOKA_BLOCK 8
#define MOKA_PIXELS 6
#define MOKA_WIDE_PIXELS 4
#define MOKA_DEPTH 0
#include "devices/cpu/vector/pointwise.inc"
