// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "ir/program.h"
#include "plan/constants.h"
#include "plan/states.h"

/// The first of the values that a plan is made of: what a block computes for concrete input types, on whatever
/// device.
namespace moka::plan {

struct ResolvedValue {
  /// input: supplied when the plan starts. outer: of the enclosing block, or of the part before this one.
  enum class Source : uint8_t { input, outer, constant, operation };
  const ir::Value* value = nullptr;
  ir::Type type;
  Source source = Source::operation;
  /// The value of a constant. Empty handle: the ConstantPool expands it on demand.
  ir::Tensor constant;

  bool is_constant() const { return source == Source::constant; }
};

class Resolved;

struct ResolvedOp {
  const ir::Op* op = nullptr;
  std::vector<int> in;          ///< indices of values, as in OpCall::all_args
  std::vector<uint32_t> first;  ///< as in OpCall
  std::vector<int> out;         ///< indices of values; empty in Resolved::pending
  bool is_alias = false;        ///< its result has the elements of its first input in the same order
  /// Control flow: the values of the surrounding block that its blocks use, and its blocks for the types known now.
  std::vector<int> captured;
  std::shared_ptr<const Resolved> blocks[2];
};

/// One block with concrete types. Constants are folded. Where values decide a shape, it ends early at `pending`.
class Resolved {
 public:
  const ir::Block* block = nullptr;
  int depth = 1;                      ///< of nested blocks
  std::vector<ResolvedValue> values;  ///< each value of the block once
  std::vector<ResolvedOp> ops;        ///< in the order of the block, without what is constant
  std::vector<int> inputs;            ///< values that are supplied when the plan starts
  std::vector<int> outputs;           ///< of the block; empty when it ends early
  StateUses states;                   ///< of a whole function's body; empty otherwise

  std::optional<ResolvedOp> pending;  ///< the operation whose output types are not known yet
  bool pending_runs_first = false;    ///< control flow: must run before its types are known
  bool is_complete() const { return !pending; }

  const ResolvedValue& at(int i) const { return values[static_cast<size_t>(i)]; }
  /// The index of a value; -1: neither the block nor anything it uses has it.
  int find(const ir::Value* v) const {
    const auto it = index.find(v);
    return it == index.end() ? -1 : it->second;
  }
  std::vector<ir::Type> output_types() const;
  /// Bytes of this value and of constants that its types decide, without those of `outer` (nullptr: nothing).
  size_t bytes(const Resolved* outer) const;

  std::unordered_map<const ir::Value*, int> index;
};

/// Limits of what is computed while types are resolved.
struct ResolveLimits {
  size_t fold = size_t{64} << 10;  ///< largest bytes of results that depend on the inputs' types and are folded
  size_t expand = SIZE_MAX;        ///< largest bytes of a constant that is expanded because a shape depends on it
  int64_t* operations = nullptr;   ///< optional; counts the operations that are visited
};

/// Limit of one value's size. It keeps the sum of a plan's values far from overflow.
constexpr size_t kLargestValue = size_t{1} << 48;
/// Constants up to this size are expanded while types are resolved.
constexpr size_t kEagerConstantBytes = 4096;

/// Resolves `block` for inputs of these types. `outer`: the enclosing block; nullptr for a function. Errors: those of
/// inference, out_of_budget for a value above kLargestValue, unsupported when blocks are nested too deep.
Result<std::shared_ptr<const Resolved>> resolve(const ir::Block& block, std::span<const ir::Type> inputs,
                                                const Resolved* outer, ConstantPool& constants,
                                                const ResolveLimits& limits = {});
/// Resolves what follows `before.pending`, whose outputs have these types.
Result<std::shared_ptr<const Resolved>> resolve_rest(const Resolved& before, std::span<const ir::Type> outputs,
                                                     ConstantPool& constants);

/// Refuses a Resolved that breaks a rule: every index is in range, an operation reads only what is supplied, constant
/// or computed before it, types are concrete, and each value is computed once. Error internal names the operation.
Status check(const Resolved& resolved);

/// Values used in `block` but defined outside it.
std::vector<const ir::Value*> free_values(const ir::Block& block);
/// Values that `from`, the operations after it in the block, or the block's outputs use.
std::vector<const ir::Value*> used_from(const ir::Block& block, const ir::Op& from);
/// Whether values of the type are objects of the host instead of bytes.
inline bool is_object(const ir::Type& t) { return !t.is_tensor() || t.dtype() == ir::DType::string; }

/// The inputs of an operation as inference and kernels see them.
struct CallArgs {
  std::vector<ir::Arg> args;
  std::vector<ir::TensorView> views;
  std::unique_ptr<bool[]> constant;
  bool all_known = true, all_shapes_known = true, all_constant = true;

  CallArgs(const Resolved& resolved, std::span<const int> in);
  CallArgs(CallArgs&&) = default;
};

}  // namespace moka::plan
