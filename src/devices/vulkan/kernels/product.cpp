#include "devices/vulkan/kernels/product.h"

namespace moka::devices::vulkan {

namespace {

struct ProductParams {
  AfterParams after;
  Product product;
};

}  // namespace

std::array<int64_t, 3> ProductKernel::groups() const {
  const Product& p = product;
  if (is_narrow()) {
    const int64_t outputs = p.b_k == 1 ? 8 : 32;
    return {(p.columns + outputs - 1) / outputs, p.rows, entries};
  }
  return {(p.columns + 63) / 64, (p.rows + 63) / 64, entries};
}

std::string ProductKernel::refusal() const { return refusal_of_groups(groups()); }

double ProductKernel::multiply_adds() const {
  return static_cast<double>(product.rows) * product.columns * product.depth * static_cast<double>(entries);
}

Status ProductKernel::record(Recorder& recorder, ProductUses uses) const {
  const Product& p = product;
  const bool bias = uses.bias.buffer != nullptr, addend = uses.addend.buffer != nullptr;
  if (!bias) uses.bias = uses.a;
  if (!addend) uses.addend = uses.a;
  const std::string shader = cat(is_narrow() ? "gemv_" : "matmul_", name_of(floats),
                                 weights != floats ? cat("_", name_of(weights)) : std::string());
  return recorder_of(recorder).dispatch(shader, after.constants({bias, addend, p.a_k == 1, p.b_k == 1}),
                                        {uses.a, uses.b, uses.bias, uses.addend, uses.c},
                                        ProductParams{AfterParams(after), p}, groups_of(groups()));
}

}  // namespace moka::devices::vulkan
