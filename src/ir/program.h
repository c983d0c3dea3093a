// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/op_def.h"
#include "ir/tensor.h"
#include "ir/type.h"

namespace moka::ir {

class Block;
class Function;
class Op;

/// An SSA value: an operation's output, a block's input, or an inline constant of one operation.
class Value {
 public:
  std::string name;   ///< unique in its function for outputs and block inputs
  Type type;          ///< may have unknown dimensions
  bool half = false;  ///< type is fp32, but the source computes it in float16, so a device may do so too

  Op* producer() const { return producer_; }  ///< nullptr for block inputs and inline constants
  int index() const { return index_; }        ///< index among the producer's outputs or the block's inputs
  Block* block() const { return block_; }     ///< set for block inputs
  bool is_inline_constant() const { return producer_ == nullptr && block_ == nullptr; }
  /// Set for the output of `const` and for inline constants.
  const Constant* constant() const { return constant_.get(); }
  const std::shared_ptr<const Constant>& shared_constant() const { return constant_; }
  /// Operations that read the value, listed once per operand.
  const std::vector<Op*>& users() const { return users_; }
  /// Blocks that return the value, listed once per output.
  const std::vector<Block*>& returned_by() const { return returned_by_; }
  bool is_used() const { return !users_.empty() || !returned_by_.empty(); }
  uint32_t id() const { return id_; }  ///< unique in its function, dense after Function::renumber

 private:
  friend class Op;
  friend class Block;
  friend class Builder;
  friend class Function;
  Op* producer_ = nullptr;
  Block* block_ = nullptr;
  int index_ = 0;
  uint32_t id_ = 0;
  std::shared_ptr<const Constant> constant_;
  std::vector<Op*> users_;
  std::vector<Block*> returned_by_;
};

/// An elementwise function that the producing kernel applies to its result before storing it.
struct Epilogue {
  std::string op;  ///< an elementwise operation of MIL: relu, relu6, clip, sigmoid, tanh, silu, leaky_relu, gelu, ...
  float alpha = 0, beta = 0;
  std::string origin;  ///< name of the operation that was fused
  bool operator==(const Epilogue&) const = default;
};

/// The operation or the layer of a neural network that an operation comes from, as the source model calls it.
struct SourceOp {
  std::string name, type;  ///< "conv1", "convolution"
};

/// The values of one parameter.
struct Operand {
  int param = 0;  ///< index in OpVersion::params
  std::vector<Value*> values;
  bool tuple = false;  ///< written as (a, b) although it may hold one value
};

/// An operation. Operands follow the order of the parameters; absent ones are omitted.
class Op {
 public:
  const OpVersion& version() const { return *version_; }
  const std::string& type_name() const { return version_->def->name; }  ///< "conv"
  std::string name;                                                     ///< name of the operation in the source model
  bool has_trait(Trait t) const { return has(version_->traits, t); }

  std::span<const Operand> operands() const { return operands_; }
  Value* input(std::string_view param) const;  ///< first value, nullptr when absent
  std::span<Value* const> inputs(std::string_view param) const;
  size_t output_count() const { return outputs_.size(); }
  Value* output(size_t i = 0) const { return outputs_[i].get(); }
  size_t block_count() const { return blocks_.size(); }
  Block* block(size_t i) const { return blocks_[i].get(); }
  Block* parent() const { return parent_; }

  /// Replaces `from` by `to` in all operands.
  void replace_input(Value* from, Value* to);
  /// Sets or adds a parameter. An empty list removes it, unless `tuple` is set.
  void set_input(std::string_view param, std::vector<Value*> values, bool tuple = false);
  Value* set_constant(std::string_view param, Constant value);

  std::vector<Epilogue> epilogue;
  std::map<std::string, Constant> attributes;  ///< other attributes of the source, kept for text
  std::shared_ptr<const SourceOp> source;      ///< set by importers of layers and on request; may be null
  ~Op();

 private:
  friend class Block;
  friend class Function;
  friend class Builder;
  explicit Op(const OpVersion& version) : version_(&version) {}
  Value* add_output(std::string name, Type type);

  const OpVersion* version_;
  std::vector<Operand> operands_;
  std::vector<std::unique_ptr<Value>> outputs_;
  std::vector<std::unique_ptr<Value>> inline_constants_;
  std::vector<std::unique_ptr<Block>> blocks_;
  Block* parent_ = nullptr;
  std::list<std::unique_ptr<Op>>::iterator self_;
};

/// A list of operations with inputs and outputs.
class Block {
 public:
  std::string name;
  std::span<const std::unique_ptr<Value>> inputs() const { return inputs_; }
  std::span<Value* const> outputs() const { return outputs_; }
  const std::list<std::unique_ptr<Op>>& ops() const { return ops_; }
  Op* parent_op() const { return parent_op_; }  ///< nullptr for a function's body
  Function* function() const { return function_; }

  Value* add_input(std::string name, Type type);
  void erase_unused_inputs();
  void set_outputs(std::vector<Value*> outputs);
  void replace_output(Value* from, Value* to);
  /// Removes an operation and returns an iterator to the next one. Precondition: none of its outputs is used.
  std::list<std::unique_ptr<Op>>::const_iterator erase(Op* op);
  /// Moves an operation of this block before another one of it. Precondition: the values that it uses exist there.
  void move_before(Op* op, Op* other);
  ~Block();

 private:
  friend class Op;
  friend class Function;
  friend class Builder;
  Block(Function* function, Op* parent_op) : function_(function), parent_op_(parent_op) {}

  Function* function_;
  Op* parent_op_;
  std::vector<std::unique_ptr<Value>> inputs_;
  std::vector<Value*> outputs_;
  std::list<std::unique_ptr<Op>> ops_;
};

/// A function. The inputs and outputs of its body are those of the function.
class Function {
 public:
  Function(std::string name, Opset opset);
  std::string name;
  Opset opset;
  std::map<std::string, Constant> attributes;
  Block& body() const { return *body_; }
  /// Numbers all values densely, in order, including inline constants. Returns their number.
  uint32_t renumber();
  /// Returns `base`, or base_1, base_2, ..., whichever is unique among the values of this function.
  std::string unique_name(std::string_view base);
  /// Replaces `from` by `to` everywhere, including block outputs.
  static void replace_all_uses(Value* from, Value* to);

 private:
  friend class Block;
  friend class Op;
  friend class Builder;
  std::map<std::string, int, std::less<>> names_;
  uint32_t next_id_ = 0;
  std::unique_ptr<Block> body_;
};

/// A whole model in MIL.
struct Program {
  std::vector<std::unique_ptr<Function>> functions;
  std::map<std::string, Constant> attributes;
  std::string version = "1.0";

  Function* find(std::string_view name) const;
};

/// One named argument of Builder::op: a value, a tuple of values, or a constant.
struct NamedArg {
  std::string name;
  std::vector<Value*> values;
  bool tuple = false;
  std::optional<Constant> constant;

  NamedArg(std::string n, Value* v);
  NamedArg(std::string n, std::vector<Value*> v);
  NamedArg(std::string n, Constant c);
  NamedArg(std::string n, Tensor t);
  NamedArg(std::string n, const char* text);
  NamedArg(std::string n, std::string text);
  NamedArg(std::string n, bool v);
  NamedArg(std::string n, int v);
  NamedArg(std::string n, float v);
  NamedArg(std::string n, const Ints& v);
  NamedArg(const NamedArg&);
  NamedArg(NamedArg&&) noexcept;
  NamedArg& operator=(const NamedArg&);
  NamedArg& operator=(NamedArg&&) noexcept;
  ~NamedArg();
};

/// What Builder::append needs to know about an operation.
struct OpSpec {
  std::string_view op;
  std::vector<NamedArg> args;
  std::string name;                       ///< name of the operation; empty: the name of its first output
  std::vector<std::string> output_names;  ///< empty: made from `name`
  std::vector<Type> declared;             ///< empty, or one per output; must be compatible with the inferred ones
  bool other_float_allowed =
      false;  ///< a declared fp16 may be inferred as fp32 or the reverse; the inferred type counts
};

/// Appends operations to a block, in the manner of MIL: `b.op("relu", {{"x", x}})`. Checks arity, names, constness,
/// element types and allowed values, and infers the output types.
class Builder {
 public:
  /// Appends to the end of `block`.
  Builder(const OpTable& table, Block& block);
  /// Inserts before `op`, whose source the new operations have.
  static Builder before(const OpTable& table, Op& op);

  Result<Op*> append(OpSpec spec);
  /// As `append`, for operations with one output.
  Result<Value*> op(std::string_view op, std::vector<NamedArg> args, std::string name = {});
  /// A `const` operation.
  Result<Value*> constant(std::string name, Constant value);
  /// Appends an operation with blocks; `fill(i, builder)` builds block i, whose inputs have been added with the types
  /// `block_inputs[i]`, and returns its outputs.
  using BlockFn = std::function<Result<std::vector<Value*>>(size_t index, Builder& inner)>;
  Result<Op*> append_with_blocks(OpSpec spec, std::span<const std::vector<std::pair<std::string, Type>>> block_inputs,
                                 const BlockFn& fill);

  Block& block() const { return *block_; }
  Function& function() const { return *block_->function(); }
  const OpTable& table() const { return *table_; }
  Opset opset;                             ///< selects the versions of operations; initially the function's opset
  std::shared_ptr<const SourceOp> source;  ///< of the operations that are appended, and of those in their blocks

 private:
  Result<Op*> insert(const OpVersion& version, OpSpec&& spec,
                     std::span<const std::vector<std::pair<std::string, Type>>> block_inputs, const BlockFn* fill);
  const OpTable* table_;
  Block* block_;
  std::list<std::unique_ptr<Op>>::iterator at_;
};

/// Views of an operation's inputs with their types and constants, for inference outside of planning. Owns the storage
/// that OpCall borrows.
class StaticCall {
 public:
  explicit StaticCall(const Op& op);
  StaticCall(const StaticCall&) = delete;
  const OpCall& call() const { return *call_; }

 private:
  std::vector<Arg> args_;
  std::vector<uint32_t> first_;
  std::vector<TensorView> views_;
  std::optional<OpCall> call_;
};

}  // namespace moka::ir
