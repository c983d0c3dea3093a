#include "conformance/case_util.h"
#include "ir/op_def.h"
#include "ir/text_printer.h"
#include "ir/text_reader.h"

namespace moka::conformance {

using namespace ir;

namespace {

Result<std::vector<Tensor>> interpret(const Case& c, const Program& program) {
  const Function& f = *program.functions[0];
  EvaluateOptions options;
  options.table = &ops::table();
  std::vector<Tensor> out;
  for (RuntimeValue& v : MOKA_TRY(evaluate(f, MOKA_TRY(ordered_inputs(c, f)), options))) out.push_back(std::move(v.tensor));
  return out;
}

Result<std::vector<Tensor>> reference(const Case& c) { return interpret(c, MOKA_TRY(read_program(c))); }

/// Printed and read again; printing that must give the same text.
Result<std::vector<Tensor>> text(const Case& c) {
  const std::string first = print_text(MOKA_TRY(read_program(c)));
  const Program again = MOKA_TRY_IN(read_text(first, ops::table()), "printed text");
  if (const std::string second = print_text(again); first != second)
    return fail(ErrorCode::internal, "printing again gives another text:\n", first, "\n", second);
  return interpret(c, again);
}

}  // namespace

std::vector<Column> columns() { return {{"reference", reference}, {"text", text, true}}; }

}  // namespace moka::conformance
