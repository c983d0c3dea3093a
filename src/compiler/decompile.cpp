// SPDX-License-Identifier: Apache-2.0
#include "compiler/decompile.h"

#include <protozero/pbf_writer.hpp>
#include <set>

#include "compiler/program_message.h"
#include "format/mlmodelc/coremldata.h"
#include "format/mlmodelc/write.h"
#include "format/proto/model.pb.h"
#include "import/importer.h"
#include "import/mlprogram/program.h"

namespace moka::compiler {
namespace {

std::string field(uint32_t number, const std::string& bytes) {
  std::string out;
  protozero::pbf_writer(out).add_message(number, bytes);
  return out;
}

/// The version and the description, which every kind of model has.
proto::Model head_of(const format::ModelFile& file) {
  proto::Model head;
  head.set_specificationversion(file.spec().specificationversion());
  head.set_isupdatable(file.spec().isupdatable());
  *head.mutable_description() = file.spec().description();
  return head;
}

class Decompiler {
 public:
  Decompiled out;

  /// `prefix`: added to weight files whose names are used by other models of the pipeline.
  Result<std::string> specification(const format::ModelFile& file, const std::string& prefix) {
    if (!file.mil_text().empty()) return program(file, prefix);
    if (file.compiled()->target == "spec")
      return std::string(MOKA_TRY(format::parse_coremldata(file.raw())).spec.text());
    if (file.children().empty()) return file.complete_specification(format::serialize(file.spec()));
    std::string pipeline;
    size_t i = 0;
    for (const format::ModelFile& child : file.children())
      pipeline += field(1, MOKA_TRY(specification(child, cat(prefix, i++, "-"))));
    for (const std::string& name : format::pipeline_of(file.spec())->names())
      protozero::pbf_writer(pipeline).add_string(2, name);
    const auto type = static_cast<uint32_t>(file.spec().Type_case());
    const proto::Model head = head_of(file);
    constexpr uint32_t plain_pipeline = 202;
    return format::serialize(head) + field(type, type == plain_pipeline ? pipeline : field(1, pipeline));
  }

 private:
  Result<std::string> program(const format::ModelFile& file, const std::string& prefix) {
    out.has_program = true;
    const import::ModelDescription description = MOKA_TRY(import::describe_model(file));
    const ir::Program program =
        MOKA_TRY(import::import_program(file, import::ImportOptions::for_writing(), description));
    proto::Model model = head_of(file);
    std::map<std::string, std::string> names;
    MessageOptions options;
    options.place = [&](const ir::Constant& constant) -> std::optional<BlobPlace> {
      const std::string& path = constant.blob_path;
      if (path.empty()) return std::nullopt;
      auto [it, is_new] = names.emplace(path, path);
      if (is_new && !taken_.insert(path).second) it->second.insert(path.rfind('/') + 1, prefix);
      return BlobPlace{it->second, constant.blob_offset};
    };
    write_message(program, *model.mutable_mlprogram(), options);
    for (const auto& [path, name] : names)
      out.weights[MOKA_TRY(format::weight_file_name(name))] = MOKA_TRY(file.weights().file(path));
    return format::serialize(model);
  }

  std::set<std::string> taken_;  ///< paths of weight files in use
};

}  // namespace

Result<Decompiled> decompile(const format::ModelFile& file) {
  Decompiler d;
  d.out.specification = MOKA_TRY(d.specification(file, ""));
  return std::move(d.out);
}

}  // namespace moka::compiler
