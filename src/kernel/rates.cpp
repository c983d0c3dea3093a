// SPDX-License-Identifier: Apache-2.0
#include "kernel/rates.h"

#include <algorithm>

namespace moka::kernel {

bool is_product(std::string_view op) {
  constexpr std::string_view kProducts[] = {
      "conv", "conv_transpose", "einsum", "gru", "linear", "lstm", "matmul", "rnn", "scaled_dot_product_attention"};
  return std::binary_search(std::begin(kProducts), std::end(kProducts), op);
}

}  // namespace moka::kernel
