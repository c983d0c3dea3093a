#if defined(__x86_64__)
#define MOKA_SMALL_CHANNELS small_channels_avx2
#define MOKA_LANES 8
#define MOKA_BLOCK 8
#define MOKA_PIXELS 6
#include "devices/cpu/vector/small_channels.inc"
#endif
