// SPDX-License-Identifier: Apache-2.0
#include "compiler/compiler.h"

#include <set>

#include "compiler/class_name.h"
#include "compiler/espresso/writer.h"
#include "compiler/metadata.h"
#include "compiler/network_facts.h"
#include "compiler/text_form.h"
#include "format/mlmodelc/coremldata.h"
#include "format/mlmodelc/layer_names.h"
#include "format/mlmodelc/write.h"
#include "format/proto/model.pb.h"
#include "import/importer.h"
#include "import/mlprogram/program.h"
#include "import/model_type.h"
#include "import/update/update.h"
#include "ir/text_printer.h"

namespace moka::compiler {
namespace {

using format::Analytics;
using format::CoreMLData;
using import::ImportOptions;
using import::ModelDescription;

constexpr int max_pipeline_depth = 16;

/// A model during compilation: the whole model, or one model of a pipeline.
struct Part {
  const proto::Model& model;
  const format::ModelFile& file;
  Bytes specification;             ///< the model's own bytes
  ir::Program* program = nullptr;  ///< set for an ML program that is already imported
  const Options& options;
  std::vector<Embedded>& embedded;  ///< receives the networks that keep their specification
  std::string folder;               ///< of the compiled model
};

struct Compiled {
  CoreMLData data;
  Files files;  ///< without coremldata.bin
  ModelFacts facts;
  Analytics analytics;
};

/// Collects the names of the weight files that a program's constants come from.
void find_weight_files(const ir::Constant* c, std::set<std::string>& paths) {
  if (c == nullptr) return;
  if (!c->blob_path.empty()) paths.insert(c->blob_path);
  for (const ir::Constant& part : c->parts) find_weight_files(&part, paths);
}

void find_weight_files(const ir::Block& block, std::set<std::string>& paths) {
  for (const auto& op : block.ops()) {
    for (const ir::Operand& operand : op->operands())
      for (const ir::Value* v : operand.values) find_weight_files(v->constant(), paths);
    for (size_t i = 0; i < op->output_count(); ++i) find_weight_files(op->output(i)->constant(), paths);
    for (size_t i = 0; i < op->block_count(); ++i) find_weight_files(*op->block(i), paths);
  }
}

nlohmann::json model_type_json(int type) { return {{"name", cat("MLModelType_", import::model_type_name(type))}}; }

void add_program_facts(const ir::Program& program, const import::ModelDescription& description, bool lists_functions,
                       ModelFacts& facts) {
  facts.has_program = true;
  for (const auto& f : program.functions) {
    ProgramFacts own = facts_of(*f);
    if (f->name == description.default_function) facts.program.add(own);
    if (lists_functions) facts.functions.emplace_back(f->name, std::move(own));
  }
}

/// Sets the version triple that Apple's compilers write.
void set_version(CoreMLData& data) {
  const auto major = [&]() -> uint64_t {
    if (data.is_program()) return data.spec_version >= 9 ? data.spec_version : 5;
    if (!data.is_neural_network() || data.spec_version <= 2) return 1;
    return data.spec_version - 1;
  };
  data.version[0] = major();
  if (data.is_neural_network() && data.spec_version <= 2) data.version[1] = data.spec_version == 2 ? 3 : 2;
  if (data.is_neural_network() && data.spec_version == 1) data.version[2] = 1;
  if (data.is_pipeline()) data.version[2] = 1;
}

Status compile_program(const Part& part, Compiled& out) {
  import::ModelDescription description = MOKA_TRY(import::describe(part.model, part.file));
  ir::Program own;
  if (part.program == nullptr)
    own = MOKA_TRY(import::import_program(part.model, part.file, ImportOptions::for_writing(), description));
  ir::Program& program = part.program != nullptr ? *part.program : own;
  add_program_facts(program, description, part.model.description().functions_size() > 0, out.facts);
  prepare_text(program, description);
  std::set<std::string> paths;
  for (const auto& f : program.functions) find_weight_files(f->body(), paths);
  for (const std::string& path : paths)
    out.files[MOKA_TRY(format::weight_file_name(path))] = MOKA_TRY(part.file.weights().file(path));
  out.files["model.mil"] = Bytes::from(ir::print_text(program, true));
  out.data.target = "generic";
  out.data.functions = program.functions.size();
  out.analytics.push_back({"NeuralNetworkModelDetails", {{"containsCustomLayer", "0"}, {"modelDimension", "0"}}});
  return {};
}

Result<Compiled> compile_part(const Part& part, int depth);

Status compile_pipeline(const Part& part, int depth, Compiled& out) {
  if (depth >= max_pipeline_depth)
    return fail(ErrorCode::malformed, "pipelines nest deeper than ", max_pipeline_depth, " models");
  const auto stages = part.file.stages(part.model);
  const std::vector<Bytes> specifications =
      MOKA_TRY(format::stage_specifications(part.specification, static_cast<uint32_t>(part.model.Type_case())));
  if (specifications.size() != stages.size())
    return fail(ErrorCode::malformed, "a pipeline of ", stages.size(), " models in ", specifications.size(),
                " messages");
  out.data.target = "generic";
  out.data.stages = stages.size();
  nlohmann::json structure = nlohmann::json::array();
  for (size_t i = 0; i < stages.size(); ++i) {
    const std::string name = cat("model", i);
    Compiled child =
        MOKA_TRY_IN(compile_part({*stages[i].model, stages[i].file, specifications[i], nullptr, part.options,
                                  part.embedded, part.folder.empty() ? name : cat(part.folder, "/", name)},
                                 depth + 1),
                    name);
    for (auto& [file, bytes] : child.files) out.files[name + "/" + file] = std::move(bytes);
    out.files[name + "/coremldata.bin"] = Bytes::from(format::write_coremldata(child.data));
    if (!child.analytics.empty())
      out.files[name + "/analytics/coremldata.bin"] = Bytes::from(format::write_analytics(child.analytics));
    out.data.target += cat(".", name, "v", child.data.version[0], ".", child.data.version[1], ".",
                           child.data.version[2], child.data.target);
    out.facts.has_program |= child.facts.has_program;
    out.facts.program.add(child.facts.program);
    structure.push_back(child.facts.model_type);
  }
  out.facts.model_type["structure"] = std::move(structure);
  // Compilers whose newest specification was 8 wrote no names.
  if (out.data.spec_version >= 9)
    out.files["modelNames/coremldata.bin"] = Bytes::from(format::write_strings(format::stage_names(part.model)));
  out.analytics.push_back({"PipelineModelDetails", {{"modelDimension", cat(stages.size())}}});
  return {};
}

/// Inputs are optional as in the file. Importing also makes the thresholds of detectors optional.
ModelDescription as_described(const format::ModelFile& file, ModelDescription d) {
  for (const auto& input : file.spec().description().input())
    for (import::FeatureDescription& f : d.functions[0].inputs)
      if (f.name == input.name()) f.optional = input.type().isoptional();
  return d;
}

/// Writes the files of a compiled neural network. Returns false and leaves `out` unchanged when a layer has no known
/// compiled form.
Result<bool> compile_network(const Part& part, Compiled& out) {
  espresso::Missing missing;
  auto written = espresso::write(part.model, part.file, missing);
  if (!written.ok()) {
    if (written.error().code() != ErrorCode::unsupported) return std::move(written).error();
    part.embedded.push_back({part.folder, std::move(missing.layer), std::move(missing.type), std::move(missing.what)});
    return false;
  }
  espresso::Written& network = *written;
  const auto hash_of = [&](const char* name) { return format::hash(network.files.at(name)); };
  out.analytics.push_back({"NeuralNetworkModelDetails",
                           {{"containsCustomLayer", "0"},
                            {"modelDimension", cat(format::layers_of(part.model)->size())},
                            {"nnModelNetHash", hash_of("model.espresso.net")},
                            {"nnModelShapeHash", hash_of("model.espresso.shape")},
                            {"nnModelWeightsHash", hash_of("model.espresso.weights")}}});
  out.data.target = "generic";
  out.data.outputs = std::move(network.outputs);
  format::set_class_labels(part.model, out.data);
  out.files = std::move(network.files);
  return true;
}

Result<Compiled> compile_part(const Part& part, int depth) {
  Compiled out;
  out.data.type = static_cast<uint32_t>(part.model.Type_case());
  out.data.spec_version = static_cast<uint32_t>(part.model.specificationversion());
  out.facts.model_type = model_type_json(static_cast<int>(out.data.type));
  set_version(out.data);
  if (out.data.is_program()) {
    MOKA_TRY(compile_program(part, out));
  } else if (out.data.is_pipeline()) {
    MOKA_TRY(compile_pipeline(part, depth, out));
  } else if (out.data.is_neural_network() && part.options.espresso && MOKA_TRY(compile_network(part, out))) {
    add_network_facts(part.model, part.file, out.facts);
  } else {
    if (out.data.is_neural_network()) add_network_facts(part.model, part.file, out.facts);
    for (uint64_t& v : out.data.version) v = 0;
    out.data.version[0] = 1;
    out.data.target = "spec";
    out.data.spec = part.specification;
    return out;
  }
  const bool with_metadata = !out.data.is_neural_network();
  out.data.description = Bytes::from(format::serialize_description(part.model.description(), with_metadata));
  return out;
}

nlohmann::json parse(const Bytes& bytes) {
  auto text = bytes.text();
  return nlohmann::json::parse(text.begin(), text.end(), nullptr, false);
}

/// The metadata. Does not import the model, so it works for models that only Apple's systems run.
Result<nlohmann::json> described_metadata(const format::ModelFile& file, const std::string& name) {
  const import::ModelDescription description = MOKA_TRY(import::describe_model(file));
  ModelFacts facts;
  facts.class_name = class_name(name);
  facts.model_type = model_type_json(import::model_type(file.spec(), file));
  for (const auto& stage : file.stages(file.spec()))
    facts.model_type["structure"].push_back(model_type_json(import::model_type(*stage.model, stage.file)));
  add_network_facts(file.spec(), file, facts);
  if (import::model_type(file.spec(), file) == import::kMLProgram) {
    const ir::Program program = MOKA_TRY(import::import_program(file, ImportOptions::for_writing(), description));
    add_program_facts(program, description, file.spec().description().functions_size() > 0, facts);
  }
  return metadata(as_described(file, description), facts);
}

}  // namespace

std::string Embedded::text() const {
  const std::string place =
      layer.empty() ? "" : cat("layer '", layer, "'", type.empty() ? "" : cat(" (", type, ")"), ": ");
  return cat(model.empty() ? "the network" : cat("the network '", model, "'"),
             " keeps its specification, a form that only Moka reads: ", place, "no compiled form is known of ", reason);
}

Result<Files> compile(const format::ModelFile& file, const std::string& name, const Options& options) {
  if (file.compiled() != nullptr)
    return fail(ErrorCode::invalid_argument, "'", file.path(), "': expected a model to compile, got a compiled one");
  // A model that cannot be imported could not be loaded after compilation either. What only the application or Apple's
  // systems have is needed when the compiled model is loaded.
  import::ImportedModel imported = MOKA_TRY(import::import_model(file, ImportOptions::for_writing()));
  if (const auto& update = imported.description.update; update != nullptr && !update->fault.empty())
    return fail(ErrorCode::malformed, "update: ", update->fault);
  const bool program = file.spec().has_mlprogram();
  const Bytes specification = MOKA_TRY(file.described_raw());
  std::vector<Embedded> embedded;
  Compiled out = MOKA_TRY(compile_part(
      {file.spec(), file, specification, program ? &imported.program : nullptr, options, embedded, ""}, 0));
  if (options.strict && !embedded.empty()) {
    std::string all;
    for (const Embedded& network : embedded) all += cat(all.empty() ? "" : "; ", network.text());
    return fail(ErrorCode::unsupported, all);
  }
  if (options.embedded != nullptr) *options.embedded = std::move(embedded);
  out.facts.class_name = class_name(name);
  out.files["coremldata.bin"] = Bytes::from(format::write_coremldata(out.data));
  out.files["metadata.json"] = Bytes::from(metadata(as_described(file, imported.description), out.facts).dump(2));
  const std::string& inside = file.specification_name();
  out.analytics.push_back({"SpecificationDetails",
                           {{"modelHash", format::hash(file.raw())}, {"modelName", inside.empty() ? name : inside}}});
  out.files["analytics/coremldata.bin"] = Bytes::from(format::write_analytics(out.analytics));
  return std::move(out.files);
}

Result<import::ModelDescription> interface_of(const format::ModelFile& file, bool core_ml) {
  import::ModelDescription out = MOKA_TRY(import::describe_model(file));
  return core_ml ? as_described(file, std::move(out)) : std::move(out);
}

Result<nlohmann::json> metadata_of(const format::ModelFile& file, const std::string& name) {
  if (file.compiled() == nullptr) {
    if (auto files = compile(file, name); files.ok()) return parse(files->at("metadata.json"));
    return described_metadata(file, name);
  }
  if (const Bytes& own = file.compiled()->metadata_json; !own.empty()) {
    nlohmann::json parsed = parse(own);
    if (parsed.is_discarded()) return fail(ErrorCode::malformed, "metadata.json is not JSON");
    return parsed;
  }
  return described_metadata(file, name);
}

}  // namespace moka::compiler
