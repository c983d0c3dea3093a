// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "ir/fixed.h"
#include "passes/pass.h"
#include "passes/rewrite.h"

/// Makes a fixed row that is added to a matrix product its bias. ONNX models hold linear layers in this form. The
/// product does not become a `linear`, whose weights would have to be transposed: kernels read them from the file as
/// they are. Only in float32, because in other types the sum would be rounded once instead of twice.
namespace moka::passes {

namespace {

using namespace ir;

constexpr size_t kMostBytes = size_t{1} << 20;

/// Whether the operand of a sum is fixed and has one number for each column.
bool is_row(const Value& v, int rank, int64_t columns) {
  const Type& t = v.type;
  return t.is_tensor() && t.is_concrete() && t.dtype() == DType::fp32 && t.rank() >= 1 && t.rank() <= rank &&
         t.shape()[t.rank() - 1] == columns && t.shape().count() == columns && columns >= 2 && is_fixed(v);
}

/// Makes the numbers of `row` the bias of `product`. Returns false where they are too many to compute now.
Result<bool> set_bias(PassContext& c, Op& product, Value& row) {
  const int64_t columns[] = {row.type.shape().count()};
  if (is_from_parameter(row)) {
    Builder before = Builder::before(c.table, product);
    Value* bias = MOKA_TRY(before.op("reshape", {{"x", &row}, {"shape", Tensor::i32(columns)}}, row.name));
    product.set_input("bias", {bias});
    return true;
  }
  const auto value = constant_value(row, kMostBytes);
  if (!value) return false;
  Tensor bias = MOKA_TRY(Tensor::uninitialized(DType::fp32, Shape{columns[0]}));
  const auto from = value->as<float>();
  std::copy(from.begin(), from.end(), bias.mut<float>().begin());
  product.set_constant("bias", std::move(bias));
  return true;
}

Status fuse_bias(PassContext& c) {
  return try_each_op(c.function.body(), [&](Op& add) -> Status {
    if (add.type_name() != "add" || !add.epilogue.empty()) return {};
    for (const auto& [of_product, of_row] : {std::pair{"x", "y"}, std::pair{"y", "x"}}) {
      Value* product = add.input(of_product);
      Op* op = has_one_use(*product) ? product->producer() : nullptr;
      if (op == nullptr || op->type_name() != "matmul" || !op->epilogue.empty() || op->input("bias") != nullptr ||
          op->input("addend") != nullptr)
        continue;
      const Type &type = product->type, &right = op->input("y")->type;
      if (!type.is_ranked() || type.rank() < 1 || type.dtype() != DType::fp32 || !right.is_ranked() || right.rank() < 2)
        continue;
      Value* row = add.input(of_row);
      if (!is_row(*row, type.rank(), type.shape()[type.rank() - 1]) || !MOKA_TRY(set_bias(c, *op, *row))) continue;
      c.remark(cat(add.name, " into the bias of ", op->name));
      take_name(*product, *add.output());
      replace_and_erase(add, product);
      break;
    }
    return {};
  });
}

}  // namespace

Pass pass_fuse_bias() { return {"fuse_bias", fuse_bias}; }

}  // namespace moka::passes
