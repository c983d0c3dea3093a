// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/bytes.h"
#include "ir/op_def.h"
#include "ir/program.h"

/// Steps that code of the caller computes: custom layers of neural networks, operations of ML programs that Moka does
/// not know, and custom models. Each becomes an operation `moka_registered` (src/ops/registered), whose constant
/// `instance` is a handle of a Registered. The constant's tensor owns the Registered, so it lives as long as any
/// program that runs it. Unregistering its class only hides the class from later imports.
namespace moka::ir {

/// How to run a Registered on concrete types.
struct RegisteredPlan {
  bool elementwise = false;    ///< may be run on flat runs of elements, in any layout and in place
  bool channels_last = false;  ///< takes and returns tensors of rank 3 and more in the layout channels_last
  int in_place = -1;           ///< input whose memory output 0 may take over
  int64_t tiles = 1;           ///< run may be called for disjoint ranges of [0, tiles) at the same time
  size_t scratch = 0;          ///< bytes
  size_t thread_scratch = 0;   ///< bytes for each thread
  double seconds = 0;          ///< estimated; 0: not known
};

struct RegisteredCall {
  std::span<const TensorView> in, out;
  std::byte* scratch = nullptr;
  size_t scratch_bytes = 0;
  std::byte* own = nullptr;  ///< this thread's scratch
  size_t own_bytes = 0;
  int64_t begin = 0, end = 1;
  int thread = 0;
};

/// A compute shader that computes the same as `run` for concrete types; see moka::LayerShader.
struct RegisteredShader {
  struct Code {
    std::string kind;   ///< "spirv"
    std::string bytes;  ///< a text, or what the kind says
  };
  std::vector<Code> code;  ///< the same in several kinds; a device takes the first that it can
  std::vector<uint32_t> constants;
  std::vector<std::byte> parameters;
  std::array<uint32_t, 3> groups{1, 1, 1};
  std::vector<Bytes> buffers;
  double seconds = 0;
};

/// A layer, operation or model of a program. Many threads call its functions at once.
class Registered {
 public:
  virtual ~Registered() = default;
  /// "custom layer 'Swish'".
  virtual const std::string& what() const = 0;
  /// Types of the outputs; see InferFn. `known`: the types that the program declares; empty: none.
  virtual Result<std::vector<Type>> infer(std::span<const Arg> in, std::span<const Type> known) const = 0;
  /// Called with concrete types.
  virtual Result<RegisteredPlan> plan(std::span<const Type> in, std::span<const Type> out, int threads) const = 0;
  virtual Status run(const RegisteredCall& call) const = 0;
  /// nullopt: it has no shader.
  virtual Result<std::optional<RegisteredShader>> shader(std::span<const Type> in, std::span<const Type> out) const;
  /// Whether plan() sets the field of this name for all types.
  virtual bool elementwise() const { return false; }
  virtual bool channels_last() const { return false; }
};

/// The operation of a program that became moka_registered.
struct RegisteredSource {
  struct Argument {
    std::string name;
    bool tuple = false;
    std::vector<std::variant<size_t, Constant>> values;  ///< inputs of moka_registered by index, or constants
  };
  std::string op;
  std::vector<Argument> arguments;
};

/// The constant `instance` of moka_registered. `source`: given for operations of ML programs.
Tensor registered_handle(std::shared_ptr<const Registered> instance,
                         std::shared_ptr<const RegisteredSource> source = nullptr);
/// The source of a moka_registered; nullptr if it has none, and for other operations.
std::shared_ptr<const RegisteredSource> registered_source(const Op& op);
/// The Registered of a handle. Error not_found: no such object is alive, as when another process wrote the handle.
Result<std::shared_ptr<const Registered>> registered_instance(const TensorView& handle);
/// The Registered of a call of moka_registered. Error not_found, as above.
Result<std::shared_ptr<const Registered>> registered_instance(const OpCall& call);
/// Runs all tiles on the calling thread. Allocates the scratch memory.
Status run_registered(const Registered& instance, std::span<const TensorView> in, std::span<const TensorView> out);

/// A layer or an operation as a model file describes it.
struct RegisteredSpec {
  std::string name;        ///< in the model
  std::string class_name;  ///< the name under which it must be registered
  std::string description;
  std::map<std::string, Constant> parameters;
  std::vector<Tensor> weights;
  std::vector<std::string> inputs;  ///< names of the inputs that are tensors at run time, in order; may be empty
  size_t input_count = 1, output_count = 1;
  std::vector<Type> declared;  ///< types of the outputs; empty: fp32, with the shapes that the instance infers
};

using RegisteredFactory = std::function<Result<std::shared_ptr<const Registered>>(RegisteredSpec spec)>;

enum class RegisteredKind : uint8_t { layer, operation };

/// An entry of the process's registry.
struct RegisteredClass {
  RegisteredFactory make;
  /// The parameters of an operation that are passed as inputs and as weights, in this order. Other constants are passed
  /// as parameters. Other values are inputs, in the order of the operation, if `inputs` is empty, and otherwise an
  /// error.
  std::vector<std::string> inputs, weights;
};

/// Adds an entry, or replaces the one of the same name.
void register_class(RegisteredKind kind, const std::string& name, RegisteredClass entry);
/// Removes an entry. Returns whether there was one.
bool unregister_class(RegisteredKind kind, std::string_view name);
std::shared_ptr<const RegisteredClass> registered_class(RegisteredKind kind, std::string_view name);
std::vector<std::string> registered_names(RegisteredKind kind);

/// All entries of the registry, by kind and name.
using RegisteredClasses =
    std::map<std::pair<RegisteredKind, std::string>, std::shared_ptr<const RegisteredClass>, std::less<>>;
RegisteredClasses registered_classes();
void set_registered_classes(RegisteredClasses all);

/// The moka_registered operation for a `spec` whose operation is not in the table; nullopt: it is not registered.
/// `attributes`: those of the source, which describe coremltools' operation `custom_layer`. `placeholders`: a
/// `custom_layer` becomes a placeholder. Error unsupported: the class of a `custom_layer` is not registered.
Result<std::optional<OpSpec>> registered_operation(Builder& builder, const OpSpec& spec,
                                                   const std::map<std::string, Constant>& attributes,
                                                   bool placeholders = false);
/// The moka_registered operation of an instance. The caller adds names and types.
OpSpec registered_spec(std::shared_ptr<const Registered> instance, std::string class_name, std::vector<Value*> inputs,
                       std::shared_ptr<const RegisteredSource> source = nullptr);
/// Takes the place of an implementation in a program that is checked or written, and never run. Its outputs have
/// `types`. Running it is error unsupported.
std::shared_ptr<const Registered> placeholder(std::string what, std::vector<Type> types);
/// The end of an error, which says how to register the class: "no implementation of it is registered (...)".
std::string register_hint(std::string_view function);

}  // namespace moka::ir
