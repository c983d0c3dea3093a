// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/budget.h"
#include "base/bytes.h"
#include "base/error.h"
#include "format/keys.h"
#include "format/mlmodel/sample_runs.h"
#include "format/weights/weight_store.h"

namespace moka::proto {
class Model;
class NearestNeighborsIndex;
class Pipeline;
class WeightParams;
namespace MILSpec {
class TensorValue;
}
}  // namespace moka::proto

/// Decodes .mlmodel, .mlpackage and .mlmodelc into a ModelFile. "format/proto/<name>.pb.h" (target moka_proto) declares
/// the messages, with Core ML's names and numbers.
namespace moka::format {

/// The pipeline in a model of any of the three pipeline types; nullptr for other models.
const proto::Pipeline* pipeline_of(const proto::Model& model);

enum class Container { mlmodel, mlpackage, mlmodelc };
std::string_view to_string(Container container);

struct OpenOptions {
  /// Charged for memory that decoding allocates, but not for mapped files. Null: no limit.
  std::shared_ptr<MemoryBudget> budget;
  /// Also opens models that Moka cannot import: models of an unknown kind and compiled neural networks.
  bool any_kind = false;
  /// Opens encrypted models. Null: the default source or the environment (format/keys.h).
  KeySource keys = nullptr;
  /// Keeps the text "--", which Xcode writes into packages for a missing text, as Apple's compiler does.
  bool verbatim_texts = false;
};

/// The numbers of a neural network's weight. `bytes` is little-endian and may be unaligned.
struct WeightData {
  enum class Kind { none, float32, float16, raw, int8_raw };
  Kind kind = Kind::none;
  Bytes bytes;
};

/// The elements of an immediate tensor of an ML program. `bytes` is little-endian and may be unaligned. It holds float,
/// int32_t, bool (one byte each), int64_t or double, or for `raw` the packed elements of the value's type. Strings stay
/// in the message.
struct TensorData {
  enum class Kind { none, floats, ints, bools, strings, long_ints, doubles, raw };
  Kind kind = Kind::none;
  Bytes bytes;
  size_t count = 0;  ///< elements; for `raw`, bytes
};

/// The samples of a nearest-neighbors classifier.
struct SampleData {
  size_t count = 0;
  size_t length = 0;            ///< numbers of the first sample
  std::optional<size_t> other;  ///< the first sample of another length
  size_t other_length = 0;
  std::shared_ptr<const SampleRuns> runs;  ///< null: there are no samples, or their lengths differ
};

/// Samples to add to a nearest-neighbors classifier.
struct AddedSamples {
  Bytes numbers;  ///< float32, as many for each sample as the classifier has dimensions
  std::variant<std::vector<std::string>, std::vector<int64_t>> labels;  ///< one for each sample
  std::optional<int64_t> neighbors;                                     ///< replaces the model's number of neighbors
};

/// An entry of an .mlpackage's manifest.
struct PackageItem {
  std::string identifier, name, author, description;
  std::string path;  ///< relative to the package's Data folder, as written
};

/// Information that only compiled models have.
struct CompiledInfo {
  uint32_t type = 0;  ///< field number in Model.Type
  uint64_t version[3] = {};
  std::string target;
  Bytes metadata_json;  ///< empty when the file is absent
};

/// A decoded model on disk or in memory. Immutable, cheap to copy, safe to share between threads.
class ModelFile {
 public:
  /// A model and the file that resolves its weights.
  struct Stage;

  Container container() const;
  /// The path as given, without trailing '/'; empty for a model from memory.
  const std::string& path() const;
  /// The specification. Payloads above 4 KiB stay in the file; weight_data and tensor_data read them. A compiled ML
  /// program has no mlProgram member; mil_text() is its program. A compiled pipeline has a pipeline member without
  /// models; children() are its models.
  const proto::Model& spec() const;
  /// The bytes of the specification file (coremldata.bin for a compiled model).
  const Bytes& raw() const;
  /// The program of a compiled ML program as MIL text; empty for other models.
  const Bytes& mil_text() const;
  const WeightStore& weights() const;
  /// The stages of a compiled pipeline, in order; empty for other models.
  std::span<const ModelFile> children() const;
  std::span<const PackageItem> package_items() const;
  /// The name of a package's specification file without the extension, usually "model"; empty for other models.
  const std::string& specification_name() const;
  /// The bytes of the specification, with the texts that a package keeps beside it.
  Result<Bytes> described_raw() const;
  /// A note about the file for the user; usually empty.
  const std::string& remark() const;
  /// Whether the model is in an encrypted file. Its parts must not be written to disk.
  bool encrypted() const;
  ModelFile as_encrypted() const;
  /// This model with more samples, in memory: its raw() is empty. Precondition: spec() is a nearest-neighbors
  /// classifier, which the labels fit. Errors: those of sample_data; unsupported (it was opened as a model of any kind,
  /// and Moka cannot import it).
  Result<ModelFile> with_samples(const AddedSamples& added) const;
  /// Null unless compiled.
  const CompiledInfo* compiled() const;

  /// The models of a pipeline, pipelineClassifier or pipelineRegressor, in either container. `model` is spec() or a
  /// model inside it. Empty for other models.
  std::vector<Stage> stages(const proto::Model& model) const;

  /// The numbers of a weight in this file's spec(), including those that stayed in the file. The returned value keeps
  /// them alive. Errors: malformed (more than one of the payload fields is set).
  Result<WeightData> weight_data(const proto::WeightParams& weight) const;
  Result<TensorData> tensor_data(const proto::MILSpec::TensorValue& tensor) const;
  /// The samples of an index in this file's spec(). The returned value keeps them alive. Errors: malformed (samples are
  /// given twice).
  Result<SampleData> sample_data(const proto::NearestNeighborsIndex& index) const;

  /// A serialized message of this file's spec(), completed with the weights that stayed in the file.
  Result<std::string> complete_specification(std::string_view serialized) const;

  struct Rep;
  explicit ModelFile(std::shared_ptr<const Rep> rep) : rep_(std::move(rep)) {}

 private:
  std::shared_ptr<const Rep> rep_;
};

struct ModelFile::Stage {
  const proto::Model* model;
  ModelFile file;
};

/// Opens a model by path: an .mlmodel file, an .mlpackage or .mlmodelc folder (a trailing '/' is allowed), or one of
/// them in a tar archive or in a file that age encrypted. The content decides which. Errors: not_found, io, malformed,
/// unsupported (what and which), out_of_budget, invalid_argument (the key is missing or wrong).
Result<ModelFile> open_model(const std::string& path, const OpenOptions& options = {});

/// Opens a model from memory: an .mlmodel's bytes and its weight files by name relative to it, e.g.
/// "weights/weight.bin", or the bytes of a tar archive or encrypted file without further files.
Result<ModelFile> open_model_bytes(Bytes spec, std::map<std::string, Bytes> blobs, const OpenOptions& options = {});

/// Error invalid_argument if the model is encrypted: `what` would write it to disk as plain files.
Status refuse_encrypted(const ModelFile& file, std::string_view what);

}  // namespace moka::format
