// SPDX-License-Identifier: Apache-2.0
#include "moka/onnx_import.h"

#include "api/build.h"
#include "api/internal.h"
#include "api/program_arguments.h"
#include "api/program_impl.h"
#include "boundary/path.h"
#include "import/onnx/import.h"
#include "passes/pass.h"

namespace moka {

namespace onnx = import::onnx;

namespace {

using OnnxModel = format::onnx::Model;

bool needs_ios18(const format::onnx::Graph& graph) {
  for (const format::onnx::Tensor& t : graph.initializers)
    if (const unsigned bits = format::onnx::bits_of(t.type); bits > 0 && bits < 8) return true;
  return false;
}

onnx::Options options_of(const OnnxImportOptions& given, const OnnxModel& model) {
  onnx::Options out;
  out.opset = needs_ios18(model.graph) ? ir::Opset::ios18 : ir::Opset::ios17;
  if (!given.opset.empty()) {
    const auto opset = ir::opset_from_string(given.opset);
    if (!opset || *opset < ir::Opset::ios17)
      throw Exception(ErrorKind::invalid_argument, cat("opset: expected ios17 to ios26, got '", given.opset, "'"));
    out.opset = *opset;
  }
  out.dimensions = given.dimensions;
  out.shapes = given.shapes;
  out.lengths = given.lengths;
  out.absent = given.absent;
  for (const auto& [name, array] : given.constants) {
    if (api::lacks_data(array))
      throw Exception(ErrorKind::invalid_argument,
                      cat("constant '", name, "': expected values, got a MultiArray without data"));
    // The program outlives the caller's array.
    ir::Tensor own =
        api::unwrap(ir::Tensor::uninitialized(api::to_ir(array.type()), api::unwrap(ir::Shape::make(array.shape()))));
    ir::copy_array(api::view_of(array), own.view());
    out.constants[name] = std::move(own);
  }
  for (const auto& [name, size] : given.dimensions)
    if (size < 1)
      throw Exception(ErrorKind::invalid_argument, cat("dimension '", name, "': expected 1 or more, got ", size));
  return out;
}

FeatureDescription described(const onnx::Feature& feature) {
  FeatureDescription f = api::output_feature(feature.value->type);
  f.name = feature.value->name;
  const ir::Type& type = feature.value->type;
  if (!type.is_tensor() || !type.is_ranked() || type.is_concrete()) return f;
  f.array.shape.clear();
  for (const int64_t d : type.shape()) {
    f.array.shape.push_back(d < 0 ? 1 : d);
    f.array.ranges.push_back({d < 0 ? 1 : d, d < 0 ? -1 : d});
  }
  return f;
}

ModelDescription texts_of(const OnnxModel& model) {
  ModelDescription out;
  out.short_description = model.doc_string.empty() ? model.graph.doc_string : model.doc_string;
  for (const auto& [key, value] : model.metadata) out.user_defined[key] = value;
  if (!model.producer_name.empty())
    out.user_defined["onnx.producer"] =
        cat(model.producer_name, model.producer_version.empty() ? "" : " ", model.producer_version);
  return out;
}

/// Operations of Core ML in place of those that exporters compose of several.
void simplify(onnx::Imported& m) {
  ir::Function& f = *m.program.functions[0];
  std::vector<passes::Remark> remarks;
  for (const std::string_view pass : {"fuse_gelu", "remove_dead_code"})
    api::unwrap(passes::run_pass(f, pass, ops::table(), remarks));
  for (size_t i = 0; i < m.outputs.size(); i++) m.outputs[i].value = f.body().outputs()[i];
}

OnnxImport imported(const format::onnx::ModelFile& file, const OnnxImportOptions& given) {
  const onnx::Options options = options_of(given, file.model);
  onnx::Imported m = api::unwrap(onnx::import_model(file, options));
  simplify(m);
  auto impl = std::make_unique<ProgramBuilder::Impl>(options.opset);
  impl->program = std::move(m.program);
  ProgramBuilder::Impl::Part part{impl->program.functions[0].get(), nullptr, {}, {}};
  part.described.name = part.function->name;
  std::vector<OnnxFeature> inputs, outputs;
  const auto named = [](const onnx::Feature& f) {
    return OnnxFeature{f.name, f.value->name, format::onnx::to_string(f.type), f.element};
  };
  for (const onnx::Feature& f : m.inputs) {
    part.described.inputs.push_back(described(f));
    inputs.push_back(named(f));
  }
  for (const onnx::Feature& f : m.outputs) {
    part.outputs.push_back(f.value);
    FeatureDescription d = described(f);
    d.array.ranges.clear();
    if (!f.value->type.is_tensor() || !f.value->type.is_concrete()) d.array.shape.clear();
    if (m.label && part.described.outputs.size() == *m.label) {
      d.type = f.value->type.dtype() == ir::DType::string ? FeatureType::string : FeatureType::int64;
      part.described.predicted_feature_name = d.name;
    }
    if (m.probabilities && part.described.outputs.size() == *m.probabilities)
      part.described.predicted_probabilities_name = d.name;
    part.described.outputs.push_back(std::move(d));
    outputs.push_back(named(f));
  }
  impl->parts.push_back(std::move(part));
  impl->texts = texts_of(file.model);
  impl->described = true;
  return {ModelSource(std::make_shared<ModelSource::Impl>(std::move(impl))), std::move(inputs), std::move(outputs),
          std::move(m.remarks)};
}

}  // namespace

OnnxImport import_onnx(const std::filesystem::path& path, const OnnxImportOptions& options) {
  return imported(api::unwrap(format::onnx::open_model(boundary::native(path))), options);
}

OnnxImport import_onnx(std::span<const std::byte> model, const OnnxImportOptions& options) {
  const Bytes bytes = Bytes::copy_of(model);
  return imported({api::unwrap(format::onnx::read_model(bytes)), format::WeightStore()}, options);
}

std::vector<std::string> imported_onnx_operators() { return onnx::operators(); }

}  // namespace moka
