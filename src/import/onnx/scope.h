// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "format/onnx/read.h"
#include "import/common/constants.h"
#include "import/common/expressions.h"
#include "import/common/failure.h"
#include "import/onnx/import.h"

namespace moka::import::onnx {

using format::onnx::Attribute;
using format::onnx::DataType;
using ir::DType;
using ir::NamedArg;
using ir::Shape;
using ir::Tensor;
using ir::Value;

/// The labels of a classifier: those of which `index` chooses one, or those that belong to the elements of `scores`.
struct Labels {
  Tensor list;  ///< strings or int64, of rank 1
  Value* index = nullptr;
  Value* scores = nullptr;
};

/// A value of the graph: a tensor, or a sequence whose length is known.
struct Item {
  Value* value = nullptr;  ///< null for a constant that no operation has read yet
  Tensor tensor;           ///< of a constant, in its own element type
  DataType type = DataType::undefined;
  bool is_sequence = false, is_absent = false;  ///< absent: an optional without a value
  std::shared_ptr<std::vector<Item>> elements;  ///< of a sequence
  /// The labels of a chosen one, which has no value if it is a string, or of a dictionary, which never has one.
  std::shared_ptr<const Labels> labels = {};
  bool is_constant() const { return !tensor.empty_handle(); }
};

/// The data that all graphs of a model share.
struct Context {
  const format::onnx::ModelFile& file;
  const Options& options;
  std::vector<std::string> remarks;
  KnownSizes sizes;
  int64_t next_symbol = ir::kAnyDim - 1;
  int depth = 0;
  int64_t nodes = 0;  ///< imported so far, those of repeated bodies each time
  void remark(std::string text);
};

using Opsets = std::map<std::string, int64_t>;  ///< by domain; "" for ONNX itself

/// The names that a graph can see, and the builder that its nodes append to.
class Scope {
 public:
  Scope(Context& context, ir::Builder& builder, const Opsets& opsets, const Scope* outer)
      : context(context), builder(builder), opsets(opsets), outer_(outer) {}

  Context& context;
  ir::Builder& builder;
  const Opsets& opsets;
  /// In a function: the attributes of its call.
  const std::map<std::string, Attribute>* attributes = nullptr;

  void add(const std::string& name, Item item) { items_[name] = std::move(item); }
  /// nullptr: there is no such value.
  const Item* find(const std::string& name) const;
  /// The item in this scope, so that a constant is made once.
  Item& own(const std::string& name);
  /// The MIL value; makes the constant if nothing has read it yet.
  Value* value(Item& item, std::string_view name) const;
  /// A value that a block can return: made in this block.
  Value* result(const std::string& name) { return result(own(name), name); }
  Value* result(Item& item, const std::string& name);

  void run(const std::vector<format::onnx::Node>& nodes);
  void add_initializers(const format::onnx::Graph& graph);

 private:
  void run(const format::onnx::Node& node);
  const Scope* outer_;
  std::unordered_map<std::string, Item> items_;
};

/// The element type of MIL in which values of an ONNX type are computed: fp32, fp16, int32 or bool. Refuses strings,
/// complex numbers and the like.
DType computed_as(DataType type);
/// A tensor of ONNX with its own element type. int2 becomes int8.
Tensor tensor_of(const format::onnx::Tensor& t, const format::onnx::ModelFile& file);
Tensor tensor_of(const format::onnx::SparseTensor& t, const format::onnx::ModelFile& file);

}  // namespace moka::import::onnx
