#include "linting/lint.h"

namespace moka::linting {
namespace {

/// Whether a transpose of x may as well come after the operation.
bool is_elementwise(const ir::Op& op) {
  if (!op.has_trait(ir::Trait::elementwise) || op.output_count() != 1 || op.input("x") == nullptr) return false;
  for (const ir::Operand& operand : op.operands())
    for (const ir::Value* value : operand.values) {
      const ir::Constant* constant = value->constant();
      const bool is_text = constant != nullptr && constant->tensor.dtype() == ir::DType::string;
      if (value != op.input("x") && !is_text && !uniform_constant(value)) return false;
    }
  return true;
}

/// The transpose that `second` undoes, where only elementwise operations stand between them; nullptr: none.
const ir::Op* undone_by(const ir::Op& second) {
  const ir::Op* op = second.input("x")->producer();
  int between = 0;
  for (; op != nullptr && is_elementwise(*op); op = op->input("x")->producer(), ++between)
    if (op->output()->users().size() != 1 || !op->output()->returned_by().empty()) return nullptr;
  // The rule idle-operation names two transposes in a row.
  if (between == 0 || !is_op(op, "transpose") || op->output()->users().size() != 1) return nullptr;
  return op->output()->returned_by().empty() && undoes(*op, second) ? op : nullptr;
}

void check_transpose_pair(const Subject& subject, Report& report) {
  if (subject.is_network()) return;  // its importer adds operations of its own
  for (const FunctionView& view : subject.functions)
    for_each_op(view, [&](const ir::Op& op) {
      const ir::Op* first = is_op(&op, "transpose") ? undone_by(op) : nullptr;
      if (first == nullptr) return;
      report.add(Level::warning, place_of(op),
                 {cat("it undoes ", place_of(*first), ", and the operations between them need neither"),
                  "each of the two is a dispatch that moves all data", ""},
                 &view);
    });
}

}  // namespace

Rule rule_transpose_pair() {
  return {"transpose-pair", Level::warning, "Transposes that undo each other around elementwise operations",
          "Compute the elementwise operations without the two transposes.", check_transpose_pair};
}

}  // namespace moka::linting
