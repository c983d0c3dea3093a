// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <concepts>
#include <cstdint>
#include <filesystem>
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

/// Registers code of the program with Moka: custom layers of neural networks, operations of ML programs, and custom
/// models. docs/custom-layers.md is the guide.
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

/// A layer or an operation as the model describes it.
struct LayerInfo {
  std::string name;         ///< in the model
  std::string class_name;   ///< the name under which it is registered
  std::string description;  ///< the author's text about what it does
  std::map<std::string, ParameterValue> parameters;
  std::vector<std::string> input_names;  ///< one for each input of an operation; empty for layers of neural networks
  size_t inputs = 1, outputs = 1;
};

/// The elements of one input or output during a call, dense. Float16 values arrive as float32.
struct ArrayView {
  void* data = nullptr;
  DataType type = DataType::float32;
  std::span<const int64_t> shape;
  int64_t count = 0;

  /// As MultiArray::as. Throws invalid_argument for another T.
  template <class T>
  std::span<T> as() const {
    check_element_type<T>(type);
    return {static_cast<T*>(data), static_cast<size_t>(count)};
  }
};

/// The arguments of evaluate. All memory is borrowed until evaluate returns.
struct LayerCall {
  std::span<const ArrayView> inputs;  ///< read-only, except the input of LayerPlan::in_place
  std::span<const ArrayView> outputs;
  std::span<std::byte> scratch;         ///< LayerPlan::scratch bytes, shared by the threads, 64-byte aligned
  std::span<std::byte> thread_scratch;  ///< LayerPlan::thread_scratch bytes of this thread
  int64_t begin = 0, end = 1;           ///< the tiles to compute
  int thread = 0;
};

/// How to run a layer on arrays of given shapes.
struct LayerPlan {
  int64_t tiles = 1;                       ///< above 1: threads call evaluate for disjoint ranges of [0, tiles)
  size_t scratch = 0, thread_scratch = 0;  ///< bytes
  int in_place = -1;                       ///< an input whose memory output 0 may reuse: same type and shape
  double seconds = 0;                      ///< estimated time on one thread; 0: not known
};

/// A compute shader in one of the forms that devices take. The device `vulkan` takes "spirv" and "glsl".
struct MOKA_EXPORT ShaderCode {
  std::string kind;
  std::string bytes;  ///< the source, or words in the byte order of the machine

  /// SPIR-V for Vulkan 1.1.
  static ShaderCode spirv(std::span<const uint32_t> words);
  /// GLSL for Vulkan 1.1, which the program glslangValidator compiles where the model runs.
  static ShaderCode glsl(std::string source);
};

/// A compute shader that computes the same as evaluate, so that a layer can run on a GPU.
///
/// For "spirv" and "glsl", its storage buffers in set 0 are the inputs, the outputs and `buffers`, bound from 0 on, at
/// most 8 in all. Arrays are dense and row-major, with elements of float32 or int32; booleans are bytes. The entry
/// point is "main". A shader is trusted like the layer's own code: accesses outside its buffers are not checked.
struct LayerShader {
  /// The same shader in one kind or several. A device compiles the first one whose kind it takes. If it takes none of
  /// them, or cannot compile it, the CPU runs the layer, and the plan says why.
  std::vector<ShaderCode> code;
  std::vector<uint32_t> constants;             ///< specialization constants 0, 1, ...; 32 bits each
  std::vector<std::byte> parameters;           ///< push constants, at most 128 bytes
  std::array<uint32_t, 3> groups = {1, 1, 1};  ///< workgroups along x, y and z
  std::vector<MultiArray> buffers;             ///< constants, such as weights, which are uploaded once
  double seconds = 0;                          ///< estimated time; 0: not known
};

enum class LayerOrder : uint8_t {
  row_major,
  channels_last,  ///< elements of arrays of rank 3 and more: axis 1 is the innermost; shapes stay logical
};

/// Core ML's MLCustomLayer. Each layer of a loaded model has its own object, whose const functions many threads call at
/// once. An exception that it throws reaches the caller of load or predict as a moka::Exception of kind data.
///
/// Arrays have the blob's shape: [sequence, batch, channels, height, width] in networks with Core ML's legacy mapping,
/// and the exact shape otherwise. Elements are float32 in networks. Programs also have integers and booleans.
class MOKA_EXPORT CustomLayer {
 public:
  virtual ~CustomLayer();
  /// Called once, before all other functions. Weights of networks are float32 or float16 arrays of rank 1 (quantized
  /// ones are expanded to float32, raw bytes are uint8), those of programs are tensors. The arrays share the file's
  /// memory and are read-only.
  virtual void set_weights(const std::vector<MultiArray>& weights);
  /// The shape of each output. By default, all have the shape of input 0.
  virtual std::vector<std::vector<int64_t>> output_shapes(const std::vector<std::vector<int64_t>>& inputs) const;
  virtual void evaluate(const LayerCall& call) const = 0;

  /// Whether the layer has one output, inputs of the same shape, and computes each element from the same element of the
  /// inputs. evaluate then gets runs of elements as arrays [n], in any layout, on any thread, and may get them in
  /// place.
  virtual bool elementwise() const;
  /// The layout of arrays. With channels_last, layers of networks with the legacy mapping get arrays
  /// [sequence * batch, channels, height, width].
  virtual LayerOrder order() const;
  /// Called once for each set of shapes.
  virtual LayerPlan plan(const std::vector<std::vector<int64_t>>& inputs, int threads) const;
  /// Called with concrete shapes when a GPU may run the layer. By default nullopt, so the CPU runs it.
  virtual std::optional<LayerShader> shader(const std::vector<std::vector<int64_t>>& inputs) const;
};

/// Creates the layer that a model names. Throws if its parameters are invalid.
using LayerFactory = std::function<std::unique_ptr<CustomLayer>(const LayerInfo& info)>;

/// Registers `factory` for custom layers with this class name, in place of any earlier one. Models that are already
/// loaded keep theirs. Throws invalid_argument (no name, no factory).
MOKA_EXPORT void register_layer(const std::string& class_name, LayerFactory factory);
/// Removes a registration. Returns whether there was one. Models that are already loaded keep it.
MOKA_EXPORT bool unregister_layer(const std::string& class_name);

/// How the parameters of an operation of an ML program are passed to its layer.
struct OperationSignature {
  /// The parameters that are inputs and weights, in this order. Other constants become LayerInfo::parameters. Other
  /// values are inputs, in the order of their names, if `inputs` is empty, and otherwise an error.
  std::vector<std::string> inputs, weights;
};

/// Registers an operation of ML programs that Moka does not know, by its name in programs. Outputs have the element
/// types that the program declares.
MOKA_EXPORT void register_operation(const std::string& name, LayerFactory factory, OperationSignature signature = {});
MOKA_EXPORT bool unregister_operation(const std::string& name);

/// The registered names, sorted.
MOKA_EXPORT std::vector<std::string> registered_layers();
MOKA_EXPORT std::vector<std::string> registered_operations();

/// A custom model, or a model of Apple's systems, as the model file describes it.
struct CustomModelInfo {
  std::string name;         ///< the name under which it is registered: a class name, "visionFeaturePrint.scene.1"
  std::string description;  ///< the author's text about what it does
  std::map<std::string, ParameterValue> parameters;  ///< bytes are arrays of uint8
  FunctionDescription function;                      ///< the inputs that have values, and the outputs
};

/// Core ML's MLCustomModel, which maps features to features. Each custom model of a file has its own object, whose
/// predict many threads call at once. An exception that it throws becomes a moka::Exception of kind data.
class MOKA_EXPORT CustomModel {
 public:
  virtual ~CustomModel();
  /// Returns a value for every output of the description. Copies of the inputs stay valid after the call.
  virtual Features predict(const Features& inputs) const = 0;
};

using ModelFactory = std::function<std::unique_ptr<CustomModel>(const CustomModelInfo& info)>;

/// Registers `factory` for custom models with this class name, or in place of a model of Apple's systems:
/// "visionFeaturePrint.scene.1", "visionFeaturePrint.objects.1", "audioFeaturePrint.sound.1", "textClassifier.1",
/// "wordTagger.1", "gazetteer.1", "wordEmbedding.1", "soundAnalysisPreprocessing.vggish". A name without the version
/// stands for all versions. Models that are already loaded do not change.
MOKA_EXPORT void register_model(const std::string& name, ModelFactory factory);
/// As above, with the model in a file. Its inputs and outputs are matched by name, or by order if the names differ, and
/// must have the same numbers of elements as those of the model that it replaces.
MOKA_EXPORT void register_model_file(const std::string& name, const std::filesystem::path& path);
/// Removes a registration. Returns whether there was one. Models that are already loaded keep it.
MOKA_EXPORT bool unregister_model(const std::string& name);
MOKA_EXPORT std::vector<std::string> registered_models();

/// Sets the folders that may contain files of linked models, also in subfolders. Initially there are none. Symbolic
/// links are resolved before a path is checked.
MOKA_EXPORT void set_linked_model_folders(const std::vector<std::filesystem::path>& folders);
template <std::same_as<std::string> Text>
void set_linked_model_folders(const std::vector<Text>& folders) {
  set_linked_model_folders(std::vector<std::filesystem::path>(folders.begin(), folders.end()));
}

/// Turns checks of custom layers on or off. With checks, outputs lie between guard pages, and inputs are checked to be
/// unchanged. A layer that writes outside its outputs causes an error that names it, or ends the process at that write.
/// Slow, for tests of layers. The environment variable MOKA_CHECK_LAYERS=1 turns the checks on.
MOKA_EXPORT void set_check_layers(bool on);

/// Loads a shared library that registers layers, operations or models (moka/plugin.h). It stays loaded. Throws
/// not_found (no such library), unsupported (it has no function moka_plugin), and the error of the plug-in.
MOKA_EXPORT void load_plugin(const std::filesystem::path& path);

/// Undoes at its end which layers, operations and models were registered and unregistered in its lifetime, by any
/// thread. Models that are loaded meanwhile keep what they use.
class MOKA_EXPORT RegistrationScope {
 public:
  RegistrationScope();
  ~RegistrationScope();
  RegistrationScope(const RegistrationScope&) = delete;
  RegistrationScope& operator=(const RegistrationScope&) = delete;

 private:
  struct Registered;
  std::unique_ptr<Registered> before_;
};

}  // namespace moka
