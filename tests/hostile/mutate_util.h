// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

namespace moka::test {

/// The layout of a file's bytes, which decides which changes reach deep into its reader.
enum class Layout {
  protobuf,  ///< .mlmodel
  text,      ///< .json, .mil, .espresso.net
  records,   ///< weight.bin, coremldata.bin
  program,   ///< MIL text in which only numbers and element types change, so that most of it stays valid
};
Layout layout_of(const std::string& file_name);

/// A truncated, bit-flipped, spliced or structurally changed version of `bytes`; the same for the same seed.
std::string mutate(const std::string& bytes, Layout layout, uint64_t seed);

}  // namespace moka::test
