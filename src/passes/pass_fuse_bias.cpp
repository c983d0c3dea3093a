#include "passes/pass.h"
#include "passes/rewrite.h"

/// Makes a constant row that is added to a matrix product its bias. ONNX models hold linear layers in this form. The
/// product does not become a `linear`, whose weights would have to be transposed: kernels read them from the file as
/// they are. Only in float32, because in other types the sum would be rounded once instead of twice.
namespace moka::passes {

namespace {

using namespace ir;

constexpr size_t kMostBytes = size_t{1} << 20;

/// The operand of a sum as one number for each column; nullopt: it is not constant, or varies otherwise.
std::optional<Tensor> row_of(const Value& v, int rank, int64_t columns) {
  const Type& t = v.type;
  if (!t.is_tensor() || !t.is_concrete() || t.dtype() != DType::fp32 || t.rank() < 1 || t.rank() > rank ||
      t.shape()[t.rank() - 1] != columns || t.shape().count() != columns || columns < 2)
    return std::nullopt;
  const auto value = constant_value(v, kMostBytes);
  if (!value) return std::nullopt;
  auto row = Tensor::uninitialized(DType::fp32, Shape{columns});
  if (!row) return std::nullopt;
  const auto from = value->as<float>();
  std::copy(from.begin(), from.end(), row->mut<float>().begin());
  return std::move(*row);
}

Status fuse_bias(PassContext& c) {
  for_each_op(c.function.body(), [&](Op& add) {
    if (add.type_name() != "add" || !add.epilogue.empty()) return;
    for (const auto& [of_product, of_row] : {std::pair{"x", "y"}, std::pair{"y", "x"}}) {
      Value* product = add.input(of_product);
      Op* op = has_one_use(*product) ? product->producer() : nullptr;
      if (op == nullptr || op->type_name() != "matmul" || !op->epilogue.empty() || op->input("bias") != nullptr ||
          op->input("addend") != nullptr)
        continue;
      const Type &type = product->type, &right = op->input("y")->type;
      if (!type.is_ranked() || type.rank() < 1 || type.dtype() != DType::fp32 || !right.is_ranked() || right.rank() < 2)
        continue;
      auto row = row_of(*add.input(of_row), type.rank(), type.shape()[type.rank() - 1]);
      if (!row) continue;
      op->set_constant("bias", std::move(*row));
      c.remark(cat(add.name, " into the bias of ", op->name));
      take_name(*product, *add.output());
      replace_and_erase(add, product);
      return;
    }
  });
  return {};
}

}  // namespace

Pass pass_fuse_bias() { return {"fuse_bias", fuse_bias}; }

}  // namespace moka::passes
