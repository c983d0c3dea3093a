#define MOKA_STRASSEN strassen_base
#define MOKA_LANES 4
#define MOKA_ROWS 6
#define MOKA_WIDE_ROWS 4
#include "devices/cpu/vector/strassen.inc"
