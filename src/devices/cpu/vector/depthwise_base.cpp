#define MOKA_DEPTHWISE depthwise_base
#define MOKA_LANES 4
#define MOKA_BLOCK 8
#define MOKA_PIXELS 8
#include "devices/cpu/vector/depthwise.inc"
