#if defined(__x86_64__)
#define MOKA_CHANNEL_NORM channel_norm_avx512
#include "devices/cpu/vector/channel_norm.inc"
#endif
