// SPDX-License-Identifier: Apache-2.0
#include "ir/permutation.h"
#include "passes/pass.h"
#include "passes/rewrite.h"

/// Turns a transpose of flattened pixels, between [N, C, H * W] and [N, H * W, C], into a transpose of the image. Then
/// no reshape is left between it and a convolution, so it can read or write the convolution's layout.
namespace moka::passes {

namespace {

using namespace ir;

bool is_swap(const Op& op) {
  if (op.type_name() != "transpose" || !op.epilogue.empty()) return false;
  return ir::permutation_of(op) == std::vector<int64_t>{0, 2, 1};
}

/// Whether `op` reshapes between `image` [N, C, H, W] and `flat` [N, C, H * W].
bool flattens(const Op& op, const Type& image, const Type& flat) {
  if (!op.has_trait(Trait::alias) || !op.epilogue.empty() || checks_while_running(op)) return false;
  if (!image.is_concrete() || !flat.is_concrete()) return false;
  const Shape &a = image.shape(), &b = flat.shape();
  return a.rank() == 4 && b.rank() == 3 && a.count() > 0 && a[0] == b[0] && a[1] == b[1] && a[1] > 1 && b[2] > 1;
}

bool moves(const Op& op) {
  return op.output_count() == 1 && op.input("x") != nullptr && (op.has_trait(Trait::alias) || is_swap(op));
}

Result<Value*> reshape(Builder& b, Value* x, std::vector<int64_t> shape, const std::string& name) {
  return b.op("reshape", {{"x", x}, {"shape", Tensor::i32(shape)}}, name);
}

Result<Value*> transpose(Builder& b, Value* x, std::vector<int64_t> perm, const std::string& name) {
  return b.op("transpose", {{"x", x}, {"perm", Tensor::i32(perm)}}, name);
}

/// The value of `op`, a transpose of a reshape or a reshape of a transpose, computed over the image; nullptr: it is
/// neither.
Result<Value*> over_image(PassContext& c, Op& op) {
  if (!moves(op)) return nullptr;
  Value* between = op.input("x");
  if (between->producer() == nullptr || !moves(*between->producer()) || !has_one_use(*between)) return nullptr;
  Op& first = *between->producer();
  Value* x = first.input("x");
  Builder before = Builder::before(c.table, op);
  if (is_swap(op) && flattens(first, x->type, between->type)) {
    const Shape s = x->type.shape();
    Value* y = MOKA_TRY(transpose(before, x, {0, 2, 3, 1}, cat(op.name, "_image")));
    return reshape(before, y, {s[0], s[2] * s[3], s[1]}, op.name);
  }
  if (is_swap(first) && flattens(op, op.output()->type, between->type)) {
    const Shape s = op.output()->type.shape();
    Value* y = MOKA_TRY(reshape(before, x, {s[0], s[2], s[3], s[1]}, cat(op.name, "_image")));
    return transpose(before, y, {0, 3, 1, 2}, op.name);
  }
  return nullptr;
}

Status transpose_images(PassContext& c) {
  Status status;
  for_each_op(c.function.body(), [&](Op& op) {
    if (!status.ok()) return;
    auto y = over_image(c, op);
    if (!y.ok()) {
      status = std::move(y).error();
      return;
    }
    if (*y == nullptr) return;
    c.remark(cat(op.name, " (", op.type_name(), ") over the image"));
    take_name(**y, *op.output());
    replace_and_erase(op, *y);
  });
  return status;
}

}  // namespace

Pass pass_transpose_images() { return {"transpose_images", transpose_images}; }

}  // namespace moka::passes
