#if defined(__x86_64__)
#define MOKA_CHANNEL_NORM channel_norm_avx2
#include "devices/cpu/vector/channel_norm.inc"
#endif
