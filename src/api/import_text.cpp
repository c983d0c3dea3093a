// SPDX-License-Identifier: Apache-2.0
#include "api/internal.h"
#include "import/hints.h"
#include "import/mlprogram/value.h"
#include "ir/text_reader.h"

namespace moka::api {

namespace {

Result<import::FeatureDescription> describe_value(const std::string& name, const ir::Type& type) {
  import::FeatureDescription f;
  f.name = name;
  const ir::Type& t = type.is_state() ? type.element() : type;
  if (t.is_dict()) {
    f.kind = import::FeatureKind::dictionary;
    f.string_keys = t.element(0).dtype() == ir::DType::string;
    return f;
  }
  if (!t.is_tensor()) return fail(ErrorCode::unsupported, "'", name, "': a ", t, " as an input or output");
  if (t.dtype() == ir::DType::string) {
    f.kind = t.rank() == 0 ? import::FeatureKind::string : import::FeatureKind::sequence;
    f.string_keys = true;
    return f;
  }
  f.kind = type.is_state() ? import::FeatureKind::state : import::FeatureKind::multi_array;
  f.array.dtype = t.dtype();
  if (!t.is_ranked()) return f;
  for (int64_t d : t.shape()) f.array.shape.push_back(d < 0 ? 1 : d);
  if (!t.is_concrete())
    for (int64_t d : t.shape()) f.array.ranges.push_back({d < 0 ? 0 : d, d < 0 ? -1 : d});
  return f;
}

}  // namespace

Result<import::ImportedModel> import_text(const std::string& text, const std::map<std::string, Bytes>& weights,
                                          const std::shared_ptr<MemoryBudget>& budget) {
  format::WeightStore store = format::WeightStore::in_memory(weights);
  ir::TextOptions options;
  options.budget = budget.get();
  options.blob = [&](std::string_view path, uint64_t offset, const ir::Type& type) {
    return import::import_blob(store, path, offset, type);
  };
  import::ImportedModel m;
  m.program = MOKA_TRY(ir::read_text(text, ops::table(), options));
  if (m.program.functions.empty()) return fail(ErrorCode::malformed, "the program has no function");
  m.description.type_name = "mlProgram";
  m.description.typed = true;
  int opset = 0;
  for (const auto& f : m.program.functions) {
    import::FunctionDescription d;
    d.name = f->name;
    for (const auto& v : f->body().inputs())
      (v->type.is_state() ? d.states : d.inputs).push_back(MOKA_TRY_IN(describe_value(v->name, v->type), "input"));
    for (const ir::Value* v : f->body().outputs())
      d.outputs.push_back(MOKA_TRY_IN(describe_value(v->name, v->type), "output"));
    import::find_hints(*f, d);
    m.description.functions.push_back(std::move(d));
    opset = std::max(opset, static_cast<int>(f->opset));
  }
  m.description.default_function = m.program.find("main") != nullptr ? "main" : m.program.functions[0]->name;
  m.description.specification_version = opset >= 26 ? 10 : std::max(opset - 9, 6);
  return m;
}

}  // namespace moka::api
