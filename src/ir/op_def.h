// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "ir/tensor.h"
#include "ir/type.h"

namespace moka::ir {

class Gradient;
class Op;

/// MIL operation sets, ordered. CoreML5..CoreML9 are the names of ios15..ios26 in the protobuf.
enum class Opset : uint8_t { ios13 = 13, ios14 = 14, ios15 = 15, ios16 = 16, ios17 = 17, ios18 = 18, ios26 = 26 };
std::string_view to_string(Opset o);                       ///< "ios17"
std::optional<Opset> opset_from_string(std::string_view);  ///< "ios17", "iOS17", "CoreML7"

/// A set of element types.
using DTypes = uint32_t;
constexpr DTypes only(DType t) { return DTypes{1} << static_cast<unsigned>(t); }
template <class... T>
constexpr DTypes any_of(T... t) {
  return (only(t) | ...);
}
inline constexpr DTypes kFloats = any_of(DType::fp16, DType::fp32, DType::fp64, DType::bf16);
inline constexpr DTypes kInts = any_of(DType::int8, DType::int16, DType::int32, DType::int64, DType::uint8,
                                       DType::uint16, DType::uint32, DType::uint64);
inline constexpr DTypes kSubByte =
    any_of(DType::int4, DType::uint1, DType::uint2, DType::uint3, DType::uint4, DType::uint6);
inline constexpr DTypes kNumbers = kFloats | kInts;
inline constexpr DTypes kBool = only(DType::boolean);
inline constexpr DTypes kString = only(DType::string);
inline constexpr DTypes kEverything = ~DTypes{0};
std::string to_string(DTypes set);

/// What a parameter accepts.
enum class ParamKind : uint8_t { tensor, list, dict, state, tuple, any };

/// One input of an operation. MIL has no separate attributes: some inputs must be constants.
struct ParamDef {
  std::string name;
  ParamKind kind = ParamKind::tensor;
  DTypes dtypes = kEverything;  ///< ignored when `type_var` is set
  std::string type_var;         ///< equal variables have equal element types
  bool constant = false;        ///< the value must be known when the program is built
  bool optional = false;
  bool variadic = false;             ///< takes a tuple of values
  bool internal = false;             ///< set by passes, never by a model
  bool attribute = false;            ///< written in the brackets after the call (constexpr operations of iOS16)
  Constant default_value;            ///< type none: no default
  std::vector<std::string> allowed;  ///< allowed values of a string parameter; empty: any

  bool has_default() const { return !default_value.type.is_none(); }
  /// Makes the parameter optional. The value must be a tensor.
  void set_default(Constant value);
  TensorView default_view;  ///< view of default_value
};

enum class Trait : uint32_t {
  none = 0,
  elementwise = 1,        ///< every output element depends only on the matching (broadcast) input elements
  moves_data_only = 2,    ///< values are copied, never computed
  alias = 4,              ///< output 0 has the bytes of the first input in the same row-major order
  stateful = 8,           ///< reads or writes a state, so it keeps its order
  random = 16,            ///< draws anew on every run, so it is never folded
  control = 32,           ///< has blocks; run by the executor
  constexpr_weight = 64,  ///< expands compressed weights; all inputs are constants
  constant = 128,         ///< `const`
  commutative = 256,
  types_only = 512,  ///< the reference kernel reads only the types of its inputs (shape)
  updates = 2048,    ///< a result may have the elements of one input, some of them changed, and its memory
  parameter = 1024,  ///< fixed while a prediction runs, but another one may have another value (moka_parameter)
  costly = 4096,     ///< among what takes most of the time of a training step, so its results are not computed again
};
constexpr Trait operator|(Trait a, Trait b) {
  return static_cast<Trait>(static_cast<uint32_t>(a) | static_cast<uint32_t>(b));
}
constexpr bool has(Trait set, Trait t) { return (static_cast<uint32_t>(set) & static_cast<uint32_t>(t)) != 0; }

/// Up to 16 integers without allocation: axes, strides, paddings.
class Ints {
 public:
  static constexpr int kCapacity = 16;
  Ints() = default;
  Ints(std::initializer_list<int64_t> v) {
    for (int64_t x : v) push_back(x);
  }
  int size() const { return n_; }
  bool empty() const { return n_ == 0; }
  int64_t operator[](int i) const { return v_[i]; }
  int64_t& operator[](int i) { return v_[i]; }
  const int64_t* begin() const { return v_; }
  const int64_t* end() const { return v_ + n_; }
  /// Precondition: size() < kCapacity.
  void push_back(int64_t x) { v_[n_++] = x; }
  std::span<const int64_t> span() const { return {v_, static_cast<size_t>(n_)}; }

 private:
  int64_t v_[kCapacity] = {};
  int n_ = 0;
};

struct OpVersion;

/// Draws of the random operations. `next()` is the stream of one model; a seeded draw ignores it.
struct RandomSource {
  uint64_t state = 0;
  uint64_t next();  ///< splitmix64
};

/// One input as an operation sees it.
struct Arg {
  const Type* type = nullptr;         ///< concrete while planning and running
  const TensorView* value = nullptr;  ///< set for constants; at run time, for every input
};

/// An operation with its inputs, as inference, kernel matching and reference kernels see it. Borrowed: valid only
/// during the call. Lookups use the parameter names of the OpVersion; an unknown name is a bug. No accessor allocates
/// at run time.
class OpCall {
 public:
  /// `first[p]`..`first[p + 1]` delimit parameter p's inputs in `args`.
  OpCall(const OpVersion& version, std::string_view name, std::span<const Arg> args, std::span<const uint32_t> first)
      : version_(&version), name_(name), args_(args), first_(first) {}

  const OpVersion& version() const { return *version_; }
  std::string_view name() const { return name_; }  ///< name of the operation in the source model

  std::span<const Arg> all_args() const { return args_; }
  std::span<const Arg> args(std::string_view param) const;
  int arg_index(std::string_view param) const;  ///< index of its first input in all_args; -1 when absent
  bool has(std::string_view param) const { return !args(param).empty(); }
  /// Whether an operation that supports an addend has one (ops/common/addend.h).
  bool has_addend() const;

  /// Precondition of the accessors below: the parameter is present (required, or `has`).
  const Type& type(std::string_view param) const { return *args(param)[0].type; }
  const Shape& shape(std::string_view param) const { return type(param).shape(); }
  DType dtype(std::string_view param) const { return type(param).dtype(); }
  int rank(std::string_view param) const { return type(param).rank(); }

  /// The known value of the input, or the default; nullptr when absent or not known yet.
  const TensorView* value(std::string_view param) const;
  bool is_known(std::string_view param) const { return value(param) != nullptr; }
  /// The input at run time. Precondition: present.
  const TensorView& in(std::string_view param) const { return *args(param)[0].value; }

  /// Known small values. Errors: unsupported when unknown, invalid_argument when the type or size is wrong.
  Result<int64_t> integer(std::string_view param) const;
  Result<double> number(std::string_view param) const;
  Result<bool> flag(std::string_view param) const;
  Result<std::string_view> text(std::string_view param) const;
  Result<Ints> ints(std::string_view param) const;  ///< rank 0 or 1, at most Ints::kCapacity entries

  /// "parameter 'axis' of conv: expected ..., got ...".
  Error error(std::string_view param, std::string_view expected, std::string_view got) const;
  Error error(std::string_view what) const;

  const Op* op = nullptr;          ///< set for operations with blocks
  RandomSource* random = nullptr;  ///< set at run time

 private:
  const OpVersion* version_;
  std::string_view name_;
  std::span<const Arg> args_;
  std::span<const uint32_t> first_;
};

/// Infers the types of all outputs from the inputs' types and known values. When all types are concrete and all values
/// are known, the result must be concrete: data-dependent shapes (non_zero, range_1d) follow from the values. Otherwise
/// dimensions of the result may be unknown. Inference must check everything that the reference kernel relies on,
/// because nothing else does.
using InferFn = std::function<Result<std::vector<Type>>(const OpCall&)>;

/// The meaning of the operation: plain loops, with double accumulation where it matters. `out` has the inferred types.
/// Fails only on values (e.g. an index out of range under validate_indices). Memory-safe for every value.
using ReferenceFn = std::function<Status(const OpCall&, std::span<const TensorView> out)>;

/// Writes how the loss changes with the inputs, as operations (ir/gradient.h). Inputs that it does not set have no
/// gradient.
using GradientFn = std::function<void(Gradient&)>;
/// For operations whose results do not change with their inputs, or only in steps.
void no_gradient(Gradient&);

/// Allowed difference from independent results, relative to max(1, |expected|).
struct Tolerance {
  double fp32 = 1e-5;
  double fp16 = 2e-3;
};

struct OpDef;

/// An operation as an opset defines it, valid until a newer opset changes it.
struct OpVersion {
  const OpDef* def = nullptr;
  Opset since = Opset::ios15;
  std::vector<ParamDef> params;
  std::vector<std::pair<std::string, DTypes>> type_vars;
  InferFn infer;
  ReferenceFn reference;  ///< empty for `const` and control flow
  Trait traits = Trait::none;
  Tolerance tolerance;

  int param_index(std::string_view name) const;  ///< -1 when unknown
  const ParamDef* param(std::string_view name) const;
  ParamDef& edit(std::string_view name);  ///< for newer opsets' definitions; the parameter must exist
  DTypes domain(const ParamDef& p) const;
  void set_domain(std::string_view type_var, DTypes dtypes);
};

/// A decision that the definition of an operation leaves open, and the evidence for it. Static storage.
struct Note {
  std::string_view text, evidence;
};

/// The complete description of an operation across opsets.
struct OpDef {
  std::string name;                 ///< MIL's name; names of Moka's own operations start with "nn_", "ml_" or "moka_"
  std::string doc;                  ///< one or two sentences
  std::vector<Note> notes;          ///< for docs/operations/
  std::vector<OpVersion> versions;  ///< ascending
  GradientFn gradient;              ///< empty: the operation has none

  OpDef();
  OpDef(const OpDef&);
  OpDef(OpDef&&) noexcept;
  OpDef& operator=(const OpDef&);
  OpDef& operator=(OpDef&&) noexcept;
  ~OpDef();

  /// Whether its results do not change with its inputs, or only in steps.
  bool is_step() const;
  /// The newest version that is not newer than `opset`; nullptr when the operation was introduced later.
  const OpVersion* at(Opset opset) const;
};

/// Builds an OpDef:
///
///   OpDef define_gelu() {
///     return OpBuilder("gelu", "Gaussian error linear unit, elementwise.")
///         .type_var("T", any_of(DType::fp16, DType::fp32))
///         .in("x", "T")
///         .constant("mode", kString).one_of({"EXACT", "TANH_APPROXIMATION"}).or_else(Tensor::text("EXACT"))
///         .infer(same_as_x)
///         .reference(gelu_reference)
///         .traits(Trait::elementwise)
///         .at(Opset::ios17, [](OpVersion& v) { v.set_domain("U", kFloats); })
///         .build();
///   }
class OpBuilder {
 public:
  OpBuilder(std::string name, std::string doc, Opset since = Opset::ios15);

  OpBuilder& type_var(std::string name, DTypes dtypes);
  OpBuilder& in(std::string name, std::string type_var);        ///< a tensor of that variable's type
  OpBuilder& in(std::string name, DTypes dtypes);               ///< a tensor of any of these types
  OpBuilder& in_kind(std::string name, ParamKind kind);         ///< list, dict, state, any
  OpBuilder& variadic(std::string name, std::string type_var);  ///< a tuple of tensors of that type
  OpBuilder& variadic_any(std::string name);                    ///< a tuple of anything
  OpBuilder& constant(std::string name, DTypes dtypes);         ///< must be a constant
  OpBuilder& constant(std::string name, std::string type_var);
  /// These functions modify the parameter added last.
  OpBuilder& optional();
  OpBuilder& attribute();
  OpBuilder& one_of(std::vector<std::string> allowed);
  OpBuilder& or_else(Constant default_value);  ///< implies optional

  OpBuilder& infer(InferFn fn);
  OpBuilder& reference(ReferenceFn fn);
  OpBuilder& gradient(GradientFn fn);
  OpBuilder& traits(Trait t);
  OpBuilder& tolerance(double fp32, double fp16);
  OpBuilder& note(std::string_view text, std::string_view evidence);  ///< both are string literals
  /// Starts a newer version as a copy of the last one.
  OpBuilder& at(Opset since, const std::function<void(OpVersion&)>& edit);
  OpDef build();

 private:
  OpVersion& last() { return def_.versions.back(); }
  OpDef def_;
};

/// An operation whose definition is built on first use.
struct OpEntry {
  std::string_view name;
  OpDef (*define)();
};

/// The operations that a program may use. Thread-safe.
class OpTable {
 public:
  /// `entries` are sorted by name and outlive the table.
  explicit OpTable(std::span<const OpEntry> entries);
  const OpDef* find(std::string_view name) const;
  /// Errors: unsupported (unknown operation, or newer than `opset`; names both).
  Result<const OpVersion*> resolve(std::string_view name, Opset opset) const;
  std::span<const OpDef> defs() const;  ///< sorted by name

 private:
  struct Defined;
  const OpDef* at(size_t i) const;

  std::span<const OpEntry> entries_;
  std::shared_ptr<Defined> defined_;
};

}  // namespace moka::ir

namespace moka::ops {
/// All operations. Each is defined in a file src/ops/<family>/<name>.cpp of its own; the build generates the list.
std::span<const ir::OpEntry> all();
const ir::OpTable& table();
}  // namespace moka::ops
