#include "devices/cpu/vector/bytes.h"

#include "devices/cpu/isa.h"

namespace moka::devices::cpu::vector {

const ByteProducts* bytes() {
#if defined(__x86_64__)
  if (!has_byte_products()) return nullptr;
  return isa() == Isa::avx512 ? &bytes_avx512vnni() : &bytes_avxvnni();
#else
  return nullptr;
#endif
}

}  // namespace moka::devices::cpu::vector
