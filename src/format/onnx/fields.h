// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

/// Field numbers of onnx.proto.
namespace moka::format::onnx::field {

namespace model {
enum : uint32_t {
  ir_version = 1,
  producer_name = 2,
  producer_version = 3,
  domain = 4,
  model_version = 5,
  doc_string = 6,
  graph = 7,
  opset_import = 8,
  metadata = 14,
  training_info = 20,
  functions = 25,
};
}
namespace graph {
enum : uint32_t {
  node = 1,
  name = 2,
  initializer = 5,
  doc_string = 10,
  input = 11,
  output = 12,
  value_info = 13,
  quantization = 14,
  sparse_initializer = 15,
  metadata = 16,
};
}
namespace node {
enum : uint32_t {
  input = 1,
  output = 2,
  name = 3,
  op_type = 4,
  attribute = 5,
  doc_string = 6,
  domain = 7,
  overload = 8,
  metadata = 9,
};
}
namespace attribute {
enum : uint32_t {
  name = 1,
  number = 2,
  integer = 3,
  string = 4,
  tensor = 5,
  graph = 6,
  numbers = 7,
  integers = 8,
  strings = 9,
  tensors = 10,
  graphs = 11,
  doc_string = 13,
  type_proto = 14,
  type_protos = 15,
  kind = 20,
  reference = 21,
  sparse_tensor = 22,
  sparse_tensors = 23,
};
}
namespace tensor {
enum : uint32_t {
  dims = 1,
  type = 2,
  float_data = 4,
  int32_data = 5,
  string_data = 6,
  int64_data = 7,
  name = 8,
  raw_data = 9,
  double_data = 10,
  uint64_data = 11,
  doc_string = 12,
  external_data = 13,
  data_location = 14,
};
}
namespace sparse_tensor {
enum : uint32_t { values = 1, indices = 2, dims = 3 };
}
namespace value_info {
enum : uint32_t { name = 1, type = 2, doc_string = 3 };
}
namespace type {
enum : uint32_t { tensor = 1, sequence = 4, map = 5, denotation = 6, opaque = 7, sparse_tensor = 8, optional = 9 };
/// In the messages of these: the element, key or inner type, and the shape or the value's type.
enum : uint32_t { first = 1, second = 2 };
}  // namespace type
namespace shape {
enum : uint32_t { dim = 1 };
enum : uint32_t { dim_value = 1, dim_param = 2, denotation = 3 };
}  // namespace shape
namespace opset {
enum : uint32_t { domain = 1, version = 2 };
}
namespace property {
enum : uint32_t { key = 1, value = 2 };
}
namespace quantization {
enum : uint32_t { tensor = 1, parameters = 2 };
}
namespace function {
enum : uint32_t {
  name = 1,
  input = 4,
  output = 5,
  attribute = 6,
  node = 7,
  doc_string = 8,
  opset_import = 9,
  domain = 10,
  attribute_default = 11,
  value_info = 12,
  overload = 13,
  metadata = 14,
};
}

}  // namespace moka::format::onnx::field
