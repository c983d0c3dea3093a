#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>

#include "base/budget.h"
#include "import/description.h"
#include "ir/program.h"

namespace moka::format {
class ModelFile;
}
namespace moka::proto {
class Model;
}

namespace moka::import {

/// A model in the form in which all importers deliver it.
///
/// Features cross the boundary of a function as these IR types, by feature name:
///   int64 -> tensor<int64, []>;  float64 -> tensor<fp64, []>;  string -> tensor<string, []>;
///   dictionary -> dict<tensor<string|int64, []>, tensor<fp64, []>>;  sequence -> tensor<string|int64, [?]>;
///   multi_array -> a tensor of the description's shape (flexible dimensions unknown; see ImportOptions for rank 5), of
///     the element type that the program computes with: ML programs as the program says, neural networks fp32, classic
///     models as declared;
///   image -> tensor<fp32 or fp16, [1, C, H, W]> with values 0..255, planes in the order of the colour space.
/// The runtime converts between the caller's values, these types and the declared ones. Outputs may have any numeric
/// element type. State inputs are function inputs of type state<tensor<...>>.
struct ImportedModel {
  ir::Program program;
  ModelDescription description;
  bool sequences = false;  ///< imported as if ImportOptions::sequences were set
};

struct ImportOptions {
  std::shared_ptr<MemoryBudget> budget;
  /// With either, inputs that take rank 5 enter as [sequence, batch, C, H, W]: of unknown length with `sequences`, of
  /// unknown batch with `batches`, the other one being 1.
  bool sequences = false, batches = false;
  /// Classic models alone: inputs have an axis of rows in front, of unknown count, and outputs likewise. A classifier's
  /// probabilities are a matrix, columns in the order of the class labels. Error unsupported where a model of the file
  /// has no such form.
  bool rows = false;
};

/// A neural network that makes sense for sequences only (a dense layer over all steps of a padded sequence, say) is
/// imported for sequences, whatever `options` say.
Result<ImportedModel> import_model(const format::ModelFile& file, const ImportOptions& options);

/// Values by feature name. An importer of one model reads its inputs here and adds its outputs, so that a pipeline is
/// a sequence of calls on the same Features.
using Features = std::map<std::string, ir::Value*>;

struct ImportContext {
  const format::ModelFile& file;
  const ImportOptions& options;
  std::string prefix;  ///< of the names of operations and values of this model, unique within a pipeline
  int depth = 0;       ///< of nested pipelines; limited
};

/// What a file <folder>/importer_<name>.cpp defines: the members of Model.Type (by field number) it takes, and how.
struct ModelImporter {
  std::span<const int> types;
  Status (*import)(const proto::Model& model, const ImportContext& context, ir::Builder& builder, Features& features);
  bool rows = false;  ///< knows ImportOptions::rows
};

/// Imports `model` into `builder`, whatever its type; what pipelines call for each of their models.
Status import_into(const proto::Model& model, const ImportContext& context, ir::Builder& builder, Features& features);

/// The description of any model, also of one that cannot be imported; class labels where they can be read.
Result<ModelDescription> describe_model(const format::ModelFile& file);

/// What a user should know about a file that can be read.
std::vector<std::string> remarks_of(const format::ModelFile& file);

/// The type of one row of a tensor that has an axis of rows (ImportOptions::rows).
ir::Type without_rows(const ir::Type& rows);

/// Decodes ModelDescription of a specification, which is `file`'s or part of it (import/description.cpp).
Result<ModelDescription> describe(const proto::Model& model, const format::ModelFile& file);
/// The same without class labels, of a model that may be malformed: features that cannot be read are left out, and
/// `faults` says why.
ModelDescription describe_readable(const proto::Model& model, const format::ModelFile& file,
                                   std::vector<std::string>& faults);
/// The IR type of a feature at the boundary of a function (see ImportedModel).
Result<ir::Type> boundary_type(const FeatureDescription& feature, bool classic);

}  // namespace moka::import
