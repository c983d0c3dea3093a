#define MOKA_PLANES planes_base
#define MOKA_LANES 4
#define MOKA_BLOCK 8
#define MOKA_PIXELS 6
#include "devices/cpu/vector/planes.inc"
