// SPDX-License-Identifier: Apache-2.0
#include "ops/operation_util.h"

namespace moka::test {

using namespace ir;

Result<std::vector<RuntimeValue>> evaluate(std::string_view op, std::vector<NamedArg> args, uint64_t stream) {
  Function f("main", Opset::ios18);
  Builder b(ops::table(), f.body());
  OpSpec spec{op, std::move(args), "op", {}, {}};
  Op* made = MOKA_TRY(b.append(std::move(spec)));
  std::vector<Value*> outputs;
  for (size_t i = 0; i < made->output_count(); i++) outputs.push_back(made->output(i));
  f.body().set_outputs(outputs);
  RandomSource random{stream};
  EvaluateOptions options;
  options.random = &random;
  return ir::evaluate(f, {}, options);
}

Tensor call(std::string_view op, std::vector<NamedArg> args, uint64_t stream) {
  auto out = evaluate(op, std::move(args), stream);
  if (!out) {
    ADD_FAILURE() << out.error().to_string();
    return {};
  }
  return (*out)[0].tensor;
}

testing::AssertionResult refuses(std::string_view op, std::vector<NamedArg> args, std::string_view about) {
  auto out = evaluate(op, std::move(args));
  if (out) return testing::AssertionFailure() << op << " did not fail";
  const std::string message = out.error().to_string();
  if (message.find(about) == std::string::npos) return testing::AssertionFailure() << "message: " << message;
  return testing::AssertionSuccess();
}

}  // namespace moka::test
