#if defined(__x86_64__)
#define MOKA_SMALL_CHANNELS small_channels_avx512
#define MOKA_LANES 16
#define MOKA_BLOCK 16
#define MOKA_PIXELS 14
#include "devices/cpu/vector/small_channels.inc"
#endif
