#define MOKA_CHANNEL_NORM channel_norm_base
#include "devices/cpu/vector/channel_norm.inc"
