#include "devices/cpu/kernels/gemm_work.h"

namespace moka::devices::cpu {

namespace {

std::optional<ConstantProduct> of_linear(const MatchCall& m, std::string& refusal) {
  refusal = require_fp32(m, {"x", "weight", "bias"});
  if (refusal.empty() && !m.is_constant("weight")) refusal = "weights that are not constant";
  if (!refusal.empty()) return std::nullopt;
  const ir::Shape& w = m.call.shape("weight");
  ConstantProduct p;
  p.made = w[0];
  p.depth = w[1];
  p.row_step = 1;
  p.column_step = w[1];
  p.x = m.call.arg_index("x");
  p.weights = m.call.arg_index("weight");
  p.bias = m.call.arg_index("bias");
  return p;
}

std::optional<ConstantProduct> of_matmul(const MatchCall& m, std::string& refusal) {
  refusal = require_fp32(m, {"x", "y"});
  if (!refusal.empty()) return std::nullopt;
  auto tx = m.call.flag("transpose_x"), ty = m.call.flag("transpose_y");
  const ir::Shape& y = m.call.shape("y");
  if (!m.is_constant("y") || y.rank() != 2) refusal = "a y that is no constant matrix";
  if (refusal.empty() && (!tx.ok() || !ty.ok() || *tx)) refusal = "a transposed x";
  if (!refusal.empty()) return std::nullopt;
  ConstantProduct p;
  p.made = y[*ty ? 0 : 1];
  p.depth = y[*ty ? 1 : 0];
  p.row_step = *ty ? 1 : y[1];
  p.column_step = *ty ? y[1] : 1;
  p.x = m.call.arg_index("x");
  p.weights = m.call.arg_index("y");
  return p;
}

}  // namespace

std::optional<ConstantProduct> constant_product(const MatchCall& m, std::string& refusal) {
  auto p = m.call.version().param_index("weight") >= 0 ? of_linear(m, refusal) : of_matmul(m, refusal);
  if (!p) return p;
  if (p->made == 0 || p->depth == 0) {
    refusal = "an empty tensor";
    return std::nullopt;
  }
  p->rows = m.outputs[0].shape().count() / p->made;
  p->addend = m.call.arg_index("addend");
  return p;
}

}  // namespace moka::devices::cpu
