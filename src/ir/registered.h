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

/// Steps whose code is the caller's: custom layers of neural networks, operations of ML programs that Moka does not
/// know, and custom models. Each is an operation `moka_registered` (src/ops/registered) with the constant `instance`, a
/// number that names a Registered. The constant's tensor owns the Registered, so it lives as long as any program that
/// runs it; unregistering its class only hides the class from later imports.
namespace moka::ir {

/// How a Registered wants to run for concrete types.
struct RegisteredPlan {
  bool elementwise = false;    ///< may be run on flat runs of elements, in any layout and in place
  bool channels_last = false;  ///< tensors of rank 3 and more in that layout
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

/// A compute shader that does what `run` does for concrete types; see moka::LayerShader.
struct RegisteredShader {
  std::vector<uint32_t> spirv;
  std::string glsl;  ///< where `spirv` is empty
  std::vector<uint32_t> constants;
  std::vector<std::byte> parameters;
  std::array<uint32_t, 3> groups{1, 1, 1};
  std::vector<Bytes> buffers;
  double seconds = 0;
};

/// One layer, operation or model of one program. Its functions are called by many threads at once.
class Registered {
 public:
  virtual ~Registered() = default;
  /// "custom layer 'Swish'".
  virtual const std::string& what() const = 0;
  /// Types of the outputs; see InferFn. `known`: what the program says of them, empty: nothing.
  virtual Result<std::vector<Type>> infer(std::span<const Arg> in, std::span<const Type> known) const = 0;
  /// Asked for concrete types.
  virtual Result<RegisteredPlan> plan(std::span<const Type> in, std::span<const Type> out, int threads) const = 0;
  virtual Status run(const RegisteredCall& call) const = 0;
  /// nullopt: it has none.
  virtual Result<std::optional<RegisteredShader>> shader(std::span<const Type> in, std::span<const Type> out) const;
  /// Whether it is elementwise or takes channels last, whatever the types are.
  virtual bool elementwise() const { return false; }
  virtual bool channels_last() const { return false; }
};

/// How a program called the operation that became moka_registered.
struct RegisteredSource {
  struct Argument {
    std::string name;
    bool tuple = false;
    std::vector<std::variant<size_t, Constant>> values;  ///< inputs of moka_registered by index, or constants
  };
  std::string op;
  std::vector<Argument> arguments;
};

/// The constant `instance` of moka_registered. `source`: of operations of programs.
Tensor registered_handle(std::shared_ptr<const Registered> instance,
                         std::shared_ptr<const RegisteredSource> source = nullptr);
/// The source of a moka_registered; nullptr for other operations, and where there is none.
std::shared_ptr<const RegisteredSource> registered_source(const Op& op);
/// Error not_found: the number names nothing that is alive, as in a text that another process wrote.
Result<std::shared_ptr<const Registered>> registered_instance(const TensorView& handle);
/// The same of a call of moka_registered.
Result<std::shared_ptr<const Registered>> registered_instance(const OpCall& call);
/// Runs the whole of it with scratch of its own.
Status run_registered(const Registered& instance, std::span<const TensorView> in, std::span<const TensorView> out);

/// What a model says of a layer or an operation.
struct RegisteredSpec {
  std::string name;        ///< in the model
  std::string class_name;  ///< by which it is registered
  std::string description;
  std::map<std::string, Constant> parameters;
  std::vector<Tensor> weights;
  std::vector<std::string> inputs;  ///< names of those that are tensors while running, in their order; may be empty
  size_t input_count = 1, output_count = 1;
  std::vector<Type> declared;  ///< of the outputs; empty: fp32 of the shapes that the instance says
};

using RegisteredFactory = std::function<Result<std::shared_ptr<const Registered>>(RegisteredSpec spec)>;

enum class RegisteredKind : uint8_t { layer, operation };

/// An entry of the process's registry.
struct RegisteredClass {
  RegisteredFactory make;
  /// The parameters of an operation that are handed over as inputs and as weights, in this order; both empty: constants
  /// are parameters, everything else is an input, by name.
  std::vector<std::string> inputs, weights;
};

/// Replaces an entry of the same name.
void register_class(RegisteredKind kind, const std::string& name, RegisteredClass entry);
/// Whether there was one.
bool unregister_class(RegisteredKind kind, std::string_view name);
std::shared_ptr<const RegisteredClass> registered_class(RegisteredKind kind, std::string_view name);
std::vector<std::string> registered_names(RegisteredKind kind);

/// The moka_registered operation for a `spec` whose operation no table knows; nullopt: nobody has registered it.
/// `attributes`: of the source; what coremltools writes for its operation `custom_layer` is read from them.
/// Error unsupported: a `custom_layer` whose class nobody has registered.
Result<std::optional<OpSpec>> registered_operation(Builder& builder, const OpSpec& spec,
                                                   const std::map<std::string, Constant>& attributes);
/// The moka_registered operation of an instance; to be completed with names and types.
OpSpec registered_spec(std::shared_ptr<const Registered> instance, std::string class_name, std::vector<Value*> inputs,
                       std::shared_ptr<const RegisteredSource> source = nullptr);
/// Says how to register what is missing: "no implementation of it is registered (...)".
std::string register_hint(std::string_view function);

}  // namespace moka::ir
