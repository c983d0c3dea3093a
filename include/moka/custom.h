#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "moka/description.h"
#include "moka/feature.h"
#include "moka/multi_array.h"

/// What a program adds to Moka: custom layers of neural networks, operations of ML programs, and models.
/// docs/custom-layers.md tells the whole story.
///
///   class Swish : public moka::CustomLayer {
///    public:
///     bool elementwise() const override { return true; }
///     void evaluate(const moka::LayerCall& call) const override {
///       const auto x = call.inputs[0].as<const float>();
///       const auto y = call.outputs[0].as<float>();
///       for (size_t i = 0; i < x.size(); i++) y[i] = x[i] / (1 + std::exp(-x[i]));
///     }
///   };
///   moka::register_layer("Swish", [](const moka::LayerInfo&) { return std::make_unique<Swish>(); });
namespace moka {

/// A number, text or array that a model gives a layer. Arrays of constants share the file's memory.
using ParameterValue = std::variant<bool, int64_t, double, std::string, std::vector<std::string>, MultiArray>;

/// What a model says of one layer or operation.
struct LayerInfo {
  std::string name;         ///< in the model
  std::string class_name;   ///< by which it is registered
  std::string description;  ///< of what it does, for people
  std::map<std::string, ParameterValue> parameters;
  std::vector<std::string> input_names;  ///< of operations, one for each input; empty for layers of neural networks
  size_t inputs = 1, outputs = 1;
};

/// The elements of one input or output during a call, dense. Float16 values arrive as float32.
struct ArrayView {
  void* data = nullptr;
  DataType type = DataType::float32;
  std::span<const int64_t> shape;
  int64_t count = 0;

  template <class T>
  std::span<T> as() const {
    return {static_cast<T*>(data), static_cast<size_t>(count)};
  }
};

/// One evaluation, or a part of it. Everything is borrowed until evaluate returns.
struct LayerCall {
  std::span<const ArrayView> inputs;  ///< not to be written, but for LayerPlan::in_place
  std::span<const ArrayView> outputs;
  std::span<std::byte> scratch;         ///< LayerPlan::scratch bytes, shared by the threads, 64-byte aligned
  std::span<std::byte> thread_scratch;  ///< LayerPlan::thread_scratch bytes of this thread
  int64_t begin = 0, end = 1;           ///< the tiles to compute
  int thread = 0;
};

/// How a layer wants to run on arrays of given shapes.
struct LayerPlan {
  int64_t tiles = 1;                       ///< above 1: threads call evaluate for disjoint ranges of [0, tiles)
  size_t scratch = 0, thread_scratch = 0;  ///< bytes
  int in_place = -1;                       ///< an input whose memory output 0 may have: same type and shape
  double seconds = 0;                      ///< estimated time on one thread, where the layer knows it
};

/// A Vulkan compute shader that does what evaluate does, for layers between operations that run on a GPU.
///
/// Its storage buffers, in set 0, are the inputs, the outputs and `buffers`, with bindings from 0 on and at most 8.
/// Arrays are dense and row-major, with elements of float32 or int32; booleans are bytes. The entry point is "main". A
/// shader is trusted like the layer's own code: what it reads and writes outside of its buffers is not checked.
struct LayerShader {
  std::vector<uint32_t> spirv;  ///< SPIR-V for Vulkan 1.1
  /// GLSL instead, which the program glslangValidator compiles. Without the program the layer has no shader.
  std::string glsl;
  std::vector<uint32_t> constants;             ///< specialization constants 0, 1, ...; 32 bits each
  std::vector<std::byte> parameters;           ///< push constants, at most 128 bytes
  std::array<uint32_t, 3> groups = {1, 1, 1};  ///< workgroups along x, y and z
  std::vector<MultiArray> buffers;             ///< constants, such as weights, which are uploaded once
  double seconds = 0;                          ///< estimated time, where the layer knows it
};

enum class LayerOrder : uint8_t {
  row_major,
  channels_last,  ///< elements of arrays of rank 3 and more: axis 1 is the innermost; shapes stay logical
};

/// Core ML's MLCustomLayer. One object serves one layer of one loaded model; its const functions are called by many
/// threads at once. Exceptions become moka::Exception of kind data where the model is loaded or predicts.
///
/// Arrays have the blob's shape: [sequence, batch, channels, height, width] in networks with Core ML's legacy mapping,
/// else the exact shape. Elements are float32 in networks; integers and booleans of programs stay what they are.
class MOKA_EXPORT CustomLayer {
 public:
  virtual ~CustomLayer();
  /// Called once, before everything else: float32 or float16 arrays of rank 1 in networks (quantized ones arrive as
  /// float32, raw bytes as uint8), tensors in programs. They share the file's memory and must not be written.
  virtual void set_weights(const std::vector<MultiArray>& weights);
  /// The shape of each output. The default: each has the shape of input 0.
  virtual std::vector<std::vector<int64_t>> output_shapes(const std::vector<std::vector<int64_t>>& inputs) const;
  virtual void evaluate(const LayerCall& call) const = 0;

  /// Each element of the one output depends on the same element of the inputs alone, which all have its shape. Then
  /// evaluate is given runs of elements, of shape [n], on any thread, in the layout in which they lie and in place.
  virtual bool elementwise() const;
  /// With channels_last, layers of networks with the legacy mapping get [sequence * batch, channels, height, width].
  virtual LayerOrder order() const;
  /// Asked once for each set of shapes.
  virtual LayerPlan plan(const std::vector<std::vector<int64_t>>& inputs, int threads) const;
  /// Asked for concrete shapes while a plan is made in which a GPU may run the layer. The default: nullopt, which
  /// leaves it to the CPU.
  virtual std::optional<LayerShader> shader(const std::vector<std::vector<int64_t>>& inputs) const;
};

/// Makes the layer that a model names. Throws when its parameters make no sense.
using LayerFactory = std::function<std::unique_ptr<CustomLayer>(const LayerInfo& info)>;

/// Models loaded from now on use it for custom layers of that class name. Replaces an earlier one; models that are
/// loaded keep theirs. Throws invalid_argument (no name, no factory).
MOKA_EXPORT void register_layer(const std::string& class_name, LayerFactory factory);
/// Returns whether there was one. Models that are loaded keep it.
MOKA_EXPORT bool unregister_layer(const std::string& class_name);

/// How the parameters of an operation of an ML program reach its layer.
struct OperationSignature {
  /// In this order. Both empty: constants are LayerInfo::parameters, everything else is an input, in order of the
  /// names.
  std::vector<std::string> inputs, weights;
};

/// An operation of ML programs that Moka does not know, by the name that programs call it. Outputs have the element
/// types that the program declares.
MOKA_EXPORT void register_operation(const std::string& name, LayerFactory factory, OperationSignature signature = {});
MOKA_EXPORT bool unregister_operation(const std::string& name);

/// Names of what is registered, sorted.
MOKA_EXPORT std::vector<std::string> registered_layers();
MOKA_EXPORT std::vector<std::string> registered_operations();

/// What a model says of a part of it that a program registers.
struct CustomModelInfo {
  std::string name;         ///< by which it is registered: a class name, "visionFeaturePrint.scene.1"
  std::string description;  ///< of what it does, for people
  std::map<std::string, ParameterValue> parameters;  ///< bytes are arrays of uint8
  FunctionDescription function;                      ///< the inputs that have values, and the outputs
};

/// Core ML's MLCustomModel: typed features in and out. One object serves one model of one file; predict is called by
/// many threads at once. Exceptions become moka::Exception of kind data.
class MOKA_EXPORT CustomModel {
 public:
  virtual ~CustomModel();
  /// A value for every output of the description. The inputs are the callee's to keep.
  virtual Features predict(const Features& inputs) const = 0;
};

using ModelFactory = std::function<std::unique_ptr<CustomModel>(const CustomModelInfo& info)>;

/// Models loaded from now on use it for custom models of that class name, or in the place of a part of Apple's systems:
/// "visionFeaturePrint.scene.1", "visionFeaturePrint.objects.1", "audioFeaturePrint.sound.1", "textClassifier.1",
/// "wordTagger.1", "gazetteer.1", "wordEmbedding.1", "soundAnalysisPreprocessing.vggish"; without the version: for all.
MOKA_EXPORT void register_model(const std::string& name, ModelFactory factory);
/// The same with a model file, whose inputs and outputs are matched by name, or by order where the names differ. Their
/// elements must be as many as those of what it stands for.
MOKA_EXPORT void register_model_file(const std::string& name, const std::string& path);
/// Returns whether there was one. Models that are loaded keep it.
MOKA_EXPORT bool unregister_model(const std::string& name);
MOKA_EXPORT std::vector<std::string> registered_models();

/// The folders in which files of linked models may lie, also below; none at first. Links are followed before a path is
/// compared with them.
MOKA_EXPORT void set_linked_model_folders(std::vector<std::string> folders);

/// While on, every evaluation gets outputs in memory of their own between pages that cannot be touched, and inputs that
/// are checked to be unchanged. A layer that writes elsewhere gets an error that names it, or ends the process where
/// it did. For testing layers: it is slow. The environment variable MOKA_CHECK_LAYERS=1 turns it on.
MOKA_EXPORT void set_check_layers(bool on);

/// Loads a shared library that registers what it has: see moka/plugin.h. It stays loaded. Throws not_found where there
/// is none, unsupported where it has no function moka_plugin, and what the plug-in fails with.
MOKA_EXPORT void load_plugin(const std::string& path);

}  // namespace moka
