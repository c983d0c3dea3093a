#define MOKA_WINOGRADS winograds_base
#define MOKA_LANES 4
#define MOKA_BLOCK 8
#include "devices/cpu/vector/winograd.inc"
