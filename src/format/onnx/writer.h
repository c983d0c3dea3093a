// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "format/message/rope.h"
#include "format/onnx/model.h"
#include "format/onnx/write_options.h"

namespace moka::format::onnx {

/// Writes the fields of a message in the order of the calls. Omits fields without a value, unless `always` is set.
class MessageWriter {
 public:
  void integer(uint32_t field, int64_t value) {
    if (value != 0) integer_always(field, value);
  }
  void integer_always(uint32_t field, int64_t value);
  void number(uint32_t field, float value);
  void text(uint32_t field, std::string_view value) {
    if (!value.empty()) text_always(field, value);
  }
  void text_always(uint32_t field, std::string_view value);
  /// Refers to the bytes.
  void bytes(uint32_t field, const Bytes& value);
  void message(uint32_t field, const Rope& value);
  Rope take() && { return std::move(out_); }

 private:
  void head(uint32_t field, uint32_t wire);
  void sized(uint32_t field, size_t size);
  Rope out_;
};

/// Encodes messages. Large raw data goes to `data` when the options name a file for it.
class Writer {
 public:
  explicit Writer(const WriteOptions& options) : options_(options) {}

  Rope model(const Model& m);
  Rope graph(const Graph& g);
  Rope function(const Function& f);
  Rope node(const Node& n);
  Rope attribute(const Attribute& a);
  Rope tensor(const Tensor& t);

  Rope data;

 private:
  Rope sparse_tensor(const SparseTensor& s);
  static Rope value_info(const ValueInfo& v);
  static Rope type(const Type& t);
  static Rope opset(const OperatorSet& o);
  static void properties(MessageWriter& out, uint32_t field, const Properties& list);
  /// Appends the bytes to `data` and returns location, offset and length.
  Properties place(const Bytes& raw);

  const WriteOptions& options_;
};

}  // namespace moka::format::onnx
