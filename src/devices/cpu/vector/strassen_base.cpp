#define MOKA_STRASSEN strassen_base
#define MOKA_LANES 4
#define MOKA_ROWS 6
#include "devices/cpu/vector/strassen.inc"
