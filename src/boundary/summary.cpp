// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "boundary/arrays.h"
#include "boundary/errors.h"
#include "ir/array_view.h"
#include "moka/capture.h"

namespace moka {

ValueSummary summary_of(const MultiArray& array) {
  ValueSummary out;
  out.count = array.count();
  const ir::ArrayView view = boundary::view_of(array);
  ir::TensorView elements;
  elements.dtype = view.dtype;
  elements.shape = boundary::unwrap(ir::Shape::make(array.shape()));
  elements.data = const_cast<void*>(view.data);
  ir::Tensor plain;
  if (!view.strides.empty()) {
    plain = boundary::unwrap(ir::Tensor::uninitialized(view.dtype, elements.shape));
    elements = plain.view();
    ir::copy_array(view, elements);
  }
  double sum = 0;
  int64_t finite = 0;
  for (int64_t i = 0; i < out.count; i++) {
    const double v = ir::load_f64(elements, i);
    if (std::isnan(v)) {
      out.nan_count++;
    } else if (std::isinf(v)) {
      out.infinite_count++;
    } else {
      out.minimum = finite == 0 ? v : std::min(out.minimum, v);
      out.maximum = finite == 0 ? v : std::max(out.maximum, v);
      sum += v;
      finite++;
    }
  }
  if (finite > 0) out.mean = sum / static_cast<double>(finite);
  return out;
}

}  // namespace moka
