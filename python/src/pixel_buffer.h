// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "values.h"

namespace moka::python {

/// moka.PixelBuffer: a picture in planes whose memory it borrows from the objects that it was made of.
struct HeldPixelBuffer {
  PixelBuffer buffer;
  std::unique_ptr<Borrowed> borrowed;
};

/// Whether the value is a moka.PixelBuffer.
bool is_pixel_buffer(nb::handle value);
/// Its buffer, for as long as `borrowed` lives.
PixelBuffer to_pixel_buffer(nb::handle value, Borrowed& borrowed);

}  // namespace moka::python
