#define MOKA_SMALL_CHANNELS small_channels_base
#define MOKA_LANES 4
#define MOKA_BLOCK 8
#define MOKA_PIXELS 6
#include "devices/cpu/vector/small_channels.inc"
