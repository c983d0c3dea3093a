#pragma once

#include <optional>

#include "import/onnx/scope.h"

namespace moka::import::onnx {

/// A node while it is imported: its inputs and attributes, and the operations that it becomes. Operators are functions
/// of a node. All functions throw Failure, to which the caller of the operator adds the node.
class Node {
 public:
  Node(Scope& scope, const format::onnx::Node& message, int64_t opset) : scope(scope), message(message), opset(opset) {}

  Scope& scope;
  const format::onnx::Node& message;
  int64_t opset;  ///< of the operator's domain

  size_t inputs() const { return message.inputs.size(); }
  size_t outputs() const { return message.outputs.size(); }
  bool has(size_t i) const { return i < inputs() && !message.inputs[i].empty(); }
  bool wants(size_t i) const { return i < outputs() && !message.outputs[i].empty(); }
  Item& item(size_t i) const;
  Value* in(size_t i) const;
  /// Input i, or null if it is omitted.
  Value* maybe(size_t i) const { return has(i) ? in(i) : nullptr; }
  DataType type(size_t i = 0) const { return item(i).type; }
  /// The content of input i if it is a constant.
  const Tensor* constant(size_t i) const;
  /// The integers of input i. Refuses an input that is computed.
  [[noreturn]] void computed_parameter(size_t i, std::string_view what) const;
  std::vector<int64_t> integers(size_t i, std::string_view what) const;
  double number(size_t i, std::string_view what) const;
  /// One integer, exact above 2^53.
  int64_t integer(size_t i, std::string_view what) const;
  /// The elements of input i, a scalar or vector of integers, as far as they are known.
  std::vector<Size> sizes(size_t i) const { return sizes_of(in(i)); }
  std::vector<Size> sizes_of(const Value* v) const;

  const Attribute* attribute(std::string_view name) const;
  int64_t integer_or(std::string_view name, int64_t otherwise) const;
  float number_or(std::string_view name, float otherwise) const;
  std::string text_or(std::string_view name, std::string_view otherwise) const;
  std::vector<int64_t> integers_or(std::string_view name, std::vector<int64_t> otherwise = {}) const;
  std::vector<float> numbers_or(std::string_view name, std::vector<float> otherwise = {}) const;
  /// The list that is attribute `name` in older opsets and input i in newer ones; nullopt: neither is given.
  std::optional<std::vector<int64_t>> integers_either(std::string_view name, size_t i) const;

  /// An operation with one output, or its result if all its inputs are small constants.
  Value* op(std::string_view op, std::vector<NamedArg> args) const;
  std::vector<Value*> ops(std::string_view op, std::vector<NamedArg> args) const;
  Value* constant(Tensor t) const;
  Value* integers_constant(const std::vector<int64_t>& v) const { return constant(Tensor::i32(v)); }
  /// A number of the element type of `like`.
  Value* scalar(double v, const Value* like) const;
  NamedArg arg(std::string name, double v, const Value* like) const;

  Value* unary(std::string_view o, Value* x) const { return op(o, {{"x", x}}); }
  Value* binary(std::string_view o, Value* x, Value* y) const { return op(o, {{"x", x}, {"y", y}}); }
  Value* add(Value* x, Value* y) const { return binary("add", x, y); }
  Value* sub(Value* x, Value* y) const { return binary("sub", x, y); }
  Value* mul(Value* x, Value* y) const { return binary("mul", x, y); }
  Value* div(Value* x, Value* y) const { return binary("real_div", x, y); }
  Value* add(Value* x, double y) const { return add(x, scalar(y, x)); }
  Value* sub(double x, Value* y) const { return sub(scalar(x, y), y); }
  Value* mul(Value* x, double y) const { return mul(x, scalar(y, x)); }
  Value* log(Value* x) const { return op("log", {{"x", x}, arg("epsilon", 0, x)}); }
  Value* select(Value* cond, Value* a, Value* b) const { return op("select", {{"cond", cond}, {"a", a}, {"b", b}}); }
  Value* cast(Value* x, DType type) const;
  /// Calls an operation that accepts no bool, or no integers: casts the inputs to a type it accepts and the result
  /// back.
  Value* as(DType type, Value* x) const { return cast(x, type); }
  Value* transpose(Value* x, const std::vector<int64_t>& perm) const;
  Value* reshape(Value* x, const std::vector<int64_t>& dims) const;
  /// Reshapes to computed sizes, `shape`, of which `sizes` are known.
  Value* reshape(Value* x, Value* shape, const std::vector<Size>& sizes) const;
  Value* expand_dims(Value* x, const std::vector<int64_t>& axes) const;
  Value* squeeze(Value* x, const std::vector<int64_t>& axes) const;
  Value* concat(const std::vector<Value*>& values, int64_t axis) const;
  Value* broadcast(Value* x, const std::vector<int64_t>& dims) const;
  Value* reduce(std::string_view o, Value* x, const std::vector<int64_t>& axes, bool keep) const;
  Value* slice(Value* x, int64_t axis, int64_t begin, int64_t end, int64_t step = 1) const;
  Value* matmul(Value* x, Value* y, bool transpose_x = false, bool transpose_y = false) const;
  /// The sizes of x as an int32 vector, constant where they are known.
  Value* shape_of(Value* x) const;
  /// A whole dimension of x as an int32 scalar.
  Value* size_of(Value* x, int axis) const;
  int rank(const Value* x) const;
  /// The shape of x. Refuses unknown sizes, naming `what` needs them.
  const Shape& known_shape(const Value* x, std::string_view what) const;
  int axis(int64_t axis, const Value* x) const;
  std::vector<int64_t> axes(std::vector<int64_t> list, const Value* x) const;

  void set(size_t i, Value* v, DataType type);
  void set(size_t i, Value* v) { set(i, v, type(0)); }
  void set(size_t i, Item item) {
    if (wants(i)) scope.add(message.outputs[i], std::move(item));
  }
  /// A label that an index chooses. `v`: its value, for labels that are numbers.
  void set_label(size_t i, std::shared_ptr<const Labels> labels, Value* v);
  void set_sizes(const Value* v, std::vector<Size> sizes) const { scope.context.sizes[v] = std::move(sizes); }

  [[noreturn]] void unsupported(std::string_view what) const { refuse(ErrorCode::unsupported, what); }
  [[noreturn]] void malformed(std::string_view what) const { refuse(ErrorCode::malformed, what); }

 private:
  std::string name(std::string_view o) const;
  bool fold(ir::Op* op, std::vector<Value*>& out) const;
};

/// How operators of one name are imported.
struct OperatorImport {
  std::string_view name;
  void (*import)(Node& node);
  std::string_view domain = "";
};

/// nullptr when the operator is unknown.
const OperatorImport* find_operator(std::string_view domain, std::string_view name);

/// x, or bool as int32, on which operations run that MIL lacks for bool.
Value* numbers(const Node& n, Value* x);
/// Wraps integers to the range of an ONNX type below 32 bits, in which they are computed as int32.
Value* wrapped(const Node& n, Value* v, DataType type);
bool is_float(DataType type);
/// Rounds x to values that the ONNX type can hold. `saturate` is for float types of at most 8 bits: numbers beyond the
/// range become the largest one instead of infinity or NaN.
Value* converted_to(const Node& n, Value* x, DataType to, bool saturate);

}  // namespace moka::import::onnx
