#include "base/checksum.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace moka {

uint64_t checksum(std::span<const std::byte> bytes) { return XXH3_64bits(bytes.data(), bytes.size()); }

}  // namespace moka
