// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/error.h"

/// The messages of ONNX as plain structs. Names are those of onnx.proto. Payloads refer to the bytes of the model.
namespace moka::format::onnx {

/// Element types, by their numbers in onnx.proto.
enum class DataType : int32_t {
  undefined = 0,
  float32 = 1,
  uint8 = 2,
  int8 = 3,
  uint16 = 4,
  int16 = 5,
  int32 = 6,
  int64 = 7,
  string = 8,
  boolean = 9,
  float16 = 10,
  float64 = 11,
  uint32 = 12,
  uint64 = 13,
  complex64 = 14,
  complex128 = 15,
  bfloat16 = 16,
  float8e4m3fn = 17,
  float8e4m3fnuz = 18,
  float8e5m2 = 19,
  float8e5m2fnuz = 20,
  uint4 = 21,
  int4 = 22,
  float4e2m1 = 23,
  float8e8m0 = 24,
  uint2 = 25,
  int2 = 26,
};

/// ONNX's name, such as "float16"; "99" for numbers without a name.
std::string to_string(DataType type);
/// Bits of one element, as raw data holds it: 2 to 128; 0 for strings and unknown types.
unsigned bits_of(DataType type);

using Properties = std::vector<std::pair<std::string, std::string>>;

struct Tensor {
  std::string name, doc_string;
  DataType type = DataType::undefined;
  std::vector<int64_t> dims;
  std::optional<Bytes> raw;  ///< little-endian elements; elements below 8 bits are packed from bit 0 upwards
  /// Typed fields in protobuf's packed form, which `contents` decodes.
  Bytes float_data, int32_data, int64_data, double_data, uint64_data;
  std::vector<std::string> strings;
  bool is_external = false;
  Properties external;  ///< location, offset, length
};

/// Values at linear indices ([n]) or index tuples ([n, rank]) of a tensor that is 0 elsewhere.
struct SparseTensor {
  Tensor values, indices;
  std::vector<int64_t> dims;
};

/// A dimension: a size, a name, or neither.
struct Dimension {
  std::optional<int64_t> value;
  std::string param;
  std::string denotation;
};

struct Type {
  enum class Kind { none, tensor, sparse_tensor, sequence, map, optional, opaque };
  Kind kind = Kind::none;
  DataType element = DataType::undefined;       ///< of tensors; the keys of maps
  std::optional<std::vector<Dimension>> shape;  ///< of tensors; nullopt: of unknown rank
  std::shared_ptr<const Type> inner;            ///< of sequences and optionals; the values of maps
  std::string denotation;
};

struct ValueInfo {
  std::string name, doc_string;
  Type type;
};

struct Graph;

struct Attribute {
  enum class Kind : int32_t {
    undefined = 0,
    number = 1,
    integer = 2,
    string = 3,
    tensor = 4,
    graph = 5,
    numbers = 6,
    integers = 7,
    strings = 8,
    tensors = 9,
    graphs = 10,
    sparse_tensor = 11,
    sparse_tensors = 12,
    type = 13,
    types = 14,
  };
  std::string name, doc_string;
  std::string reference;  ///< in a function: the attribute of the call that gives this attribute its value
  Kind kind = Kind::undefined;
  float number = 0;
  int64_t integer = 0;
  std::string string;
  std::vector<float> numbers;
  std::vector<int64_t> integers;
  std::vector<std::string> strings;
  /// One element for a single tensor, graph, sparse tensor or type.
  std::vector<Tensor> tensors;
  std::vector<Graph> graphs;
  std::vector<SparseTensor> sparse_tensors;
  std::vector<Type> types;
};

struct Node {
  std::string name, op_type, domain, overload, doc_string;
  std::vector<std::string> inputs, outputs;  ///< empty names: omitted
  std::vector<Attribute> attributes;
  Properties metadata;
};

struct QuantizationAnnotation {
  std::string tensor;
  Properties parameters;  ///< such as SCALE_TENSOR and the name of a tensor
};

struct Graph {
  std::string name, doc_string;
  std::vector<Node> nodes;
  std::vector<Tensor> initializers;
  std::vector<SparseTensor> sparse_initializers;
  std::vector<ValueInfo> inputs, outputs, values;
  std::vector<QuantizationAnnotation> quantization;
  Properties metadata;
};

struct OperatorSet {
  std::string domain;  ///< "" or "ai.onnx" for ONNX itself
  int64_t version = 0;
};

struct Function {
  std::string name, domain, overload, doc_string;
  std::vector<std::string> inputs, outputs;
  std::vector<std::string> attributes;  ///< without defaults
  std::vector<Attribute> attribute_defaults;
  std::vector<Node> nodes;
  std::vector<OperatorSet> opsets;
  std::vector<ValueInfo> values;
  Properties metadata;
};

struct Model {
  int64_t ir_version = 0;
  std::string producer_name, producer_version, domain, doc_string;
  int64_t model_version = 0;
  std::vector<OperatorSet> opsets;
  Graph graph;
  std::vector<Function> functions;
  Properties metadata;
  bool has_training = false;
};

}  // namespace moka::format::onnx
