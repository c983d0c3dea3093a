#include "devices/cpu/vector/strassen.h"

#include "devices/cpu/vector/choose.h"

namespace moka::devices::cpu::vector {

const Strassen& strassen(int64_t panel) {
  static const Strassen &two = MOKA_FOR_ISA(strassen)(false), &three = MOKA_FOR_ISA(strassen)(true);
  return panel == three.panel ? three : two;
}

}  // namespace moka::devices::cpu::vector
