// SPDX-License-Identifier: Apache-2.0
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
class FeatureDescription;
class Model;
}  // namespace moka::proto

namespace moka::import {

/// The result of every importer.
///
/// Features cross the boundary of a function as these IR types, by feature name:
///   int64 -> tensor<int64, []>;  float64 -> tensor<fp64, []>;  string -> tensor<string, []>;
///   dictionary -> dict<tensor<string|int64, []>, tensor<fp64, []>>;  sequence -> tensor<string|int64, [?]>;
///   multi_array -> a tensor of the description's shape (flexible dimensions unknown; see ImportOptions for rank 5), of
///     the element type that the program computes with: ML programs as the program says, neural networks fp32, classic
///     models as declared;
///   image -> tensor<fp32 or fp16, [1, C, H, W]> with values 0..255, planes in the order of the color space.
/// The runtime converts between the caller's values, these types and the declared ones. Outputs may have any numeric
/// element type. State inputs are function inputs of type state<tensor<...>>.
struct ImportedModel {
  ir::Program program;
  ModelDescription description;
  bool sequences = false;  ///< imported as with ImportOptions::sequences
  /// A flexible input of a program that is for one size of it.
  struct Sized {
    ir::Type flexible;  ///< its type for all allowed sizes
    ir::Shape size;     ///< the described dimensions
  };
  /// By name. Empty: the program takes all allowed sizes.
  std::map<std::string, Sized> sized;
};

struct ImportOptions {
  std::shared_ptr<MemoryBudget> budget;
  /// Inputs that accept rank 5 enter as [sequence, batch, C, H, W]. `sequences` makes the length unknown, `batches` the
  /// batch; the other one is 1.
  bool sequences = false, batches = false;
  /// Only for classic models: inputs and outputs have a leading axis of rows, of unknown size. A classifier's
  /// probabilities are a matrix with columns in the order of the class labels. Error unsupported when a model in the
  /// file does not support this form.
  bool rows = false;
  /// The sizes of flexible inputs, by name: the program is for these. Empty: for all allowed sizes, if that is
  /// possible.
  std::map<std::string, ir::Shape> sizes;
  /// The model is checked or written, and never run: custom layers, custom and linked models, and models of Apple's
  /// systems become placeholders, whatever the process has registered.
  bool placeholders = false;
  /// Only for updatable neural networks: inputs that have a place for it have an axis of examples, of unknown size, and
  /// the only output is what the loss reads.
  bool examples = false;
  /// For a program that is written, not run.
  static ImportOptions for_writing() {
    ImportOptions out;
    out.placeholders = true;
    return out;
  }
};

/// Neural networks that only make sense for sequences (e.g. with a dense layer over all steps of a padded sequence) are
/// imported for sequences regardless of `options`. Models with flexible inputs that can only be imported for known
/// sizes are imported for those in `options`, or else for the default sizes.
Result<ImportedModel> import_model(const format::ModelFile& file, const ImportOptions& options);

/// Completes the description of a program: class labels, and the values that its inputs distinguish.
void describe_values(ImportedModel& model);

/// Values by feature name. An importer reads the inputs of its model here and adds its outputs. A pipeline is therefore
/// a sequence of calls on the same Features.
using Features = std::map<std::string, ir::Value*>;

struct ImportContext {
  const format::ModelFile& file;
  const ImportOptions& options;
  std::string prefix;  ///< prefix of this model's operation and value names, unique within a pipeline
  int depth = 0;       ///< nesting depth of pipelines, which is limited
  const UpdateDescription* update = nullptr;  ///< of a whole model that can learn; its weights' names are taken already
};

/// Defined by each file <folder>/importer_<name>.cpp: the members of Model.Type (by field number) that it imports, and
/// how.
struct ModelImporter {
  std::span<const int> types;
  Status (*import)(const proto::Model& model, const ImportContext& context, ir::Builder& builder, Features& features);
  bool rows = false;  ///< supports ImportOptions::rows
};

/// Whether models of that type, a member of Model.Type, can be imported.
bool is_imported(int type);

/// Imports a model of any type into `builder`. Pipelines call it for each of their models.
Status import_into(const proto::Model& model, const ImportContext& context, ir::Builder& builder, Features& features);

/// The description of any model, even one that cannot be imported, with class labels where they can be read.
Result<ModelDescription> describe_model(const format::ModelFile& file);

/// Notes for the user about a file that can be read.
std::vector<std::string> remarks_of(const format::ModelFile& file);

/// The type of one row of a tensor that has an axis of rows (ImportOptions::rows).
ir::Type without_rows(const ir::Type& rows);

/// Decodes the ModelDescription of a specification, which is that of `file` or part of it (import/description.cpp).
Result<ModelDescription> describe(const proto::Model& model, const format::ModelFile& file);
/// Decodes one feature.
Result<FeatureDescription> read_feature(const proto::FeatureDescription& feature);
/// Error malformed: an array of the description has no data type, which only those between models may lack.
Status check_dtypes(const ModelDescription& description);
/// The same without class labels, for a model that may be malformed. Skips features that cannot be read and records the
/// reason in `faults`.
ModelDescription describe_readable(const proto::Model& model, const format::ModelFile& file,
                                   std::vector<std::string>& faults);
/// The IR type of a feature at the boundary of a function (see ImportedModel).
Result<ir::Type> boundary_type(const FeatureDescription& feature, bool classic);

}  // namespace moka::import
