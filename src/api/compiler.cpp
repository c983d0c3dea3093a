#include "moka/compiler.h"

#include <set>

#include "api/internal.h"
#include "format/mlmodelc/write.h"
#include "ir/text_printer.h"

namespace moka {
namespace {

/// Names of the weight files that a program's constants come from.
class WeightFiles {
 public:
  void add(const ir::Block& block) {
    for (const auto& op : block.ops()) {
      for (const ir::Operand& operand : op->operands())
        for (const ir::Value* v : operand.values) add(v->constant());
      for (size_t i = 0; i < op->output_count(); ++i) add(op->output(i)->constant());
      for (size_t i = 0; i < op->block_count(); ++i) add(*op->block(i));
    }
  }
  std::map<std::string, Bytes> take(const format::WeightStore& store) {
    std::map<std::string, Bytes> out;
    for (const std::string& path : paths_)
      out.emplace(format::WeightStore::relative_name(path), api::unwrap(store.file(path)));
    return out;
  }

 private:
  void add(const ir::Constant* c) {
    if (c == nullptr) return;
    if (!c->blob_path.empty()) paths_.insert(c->blob_path);
    for (const ir::Constant& part : c->parts) add(&part);
  }
  std::set<std::string> paths_;
};

void compile(const format::ModelFile& file, const std::string& destination) {
  // Also checks models whose text is not needed: what cannot be imported cannot be loaded once compiled.
  import::ImportedModel m = api::unwrap(import::import_model(file, {}));
  m.program.version = "1.0";
  for (const auto& f : m.program.functions)
    if (f->opset >= ir::Opset::ios18) m.program.version = "1.3";
  WeightFiles weights;
  for (const auto& f : m.program.functions) weights.add(f->body());
  const bool program = m.description.type_name == "mlProgram";
  api::unwrap(format::write_mlmodelc(file, program ? ir::print_text(m.program) : std::string(),
                                     m.program.functions.size(), weights.take(file.weights()), destination));
}

}  // namespace

void compile_model(const std::string& path, const std::string& destination) {
  compile(api::unwrap(format::open_model(path)), destination);
}

void compile_model(const ModelAsset& asset, const std::string& destination) {
  auto view = [](const std::vector<std::byte>& v) { return Bytes{v, nullptr}; };
  std::map<std::string, Bytes> blobs;
  for (const auto& [name, data] : asset.blobs) blobs.emplace(name, view(data));
  compile(api::unwrap(format::open_model_bytes(view(asset.specification), blobs)), destination);
}

}  // namespace moka
