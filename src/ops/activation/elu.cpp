#include "base/scalar_math.h"
#include "ops/common/unary.h"

namespace moka::ops {

OpDef define_elu() {
  return unary_with_param("elu", "x, or alpha * (e^x - 1) where x is negative, elementwise.", "alpha",
                          [](auto x, auto alpha) { return scalar::elu(x, alpha); })
      .at(Opset::ios17, [](OpVersion& v) { own_float_type(v, {"alpha"}); })
      .note("Computed as alpha * expm1(x), which is accurate for small negative x.",
            "coremltools' definition; torch.nn.functional.elu")
      .build();
}

}  // namespace moka::ops
