// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <protozero/pbf_reader.hpp>
#include <stdexcept>
#include <string>
#include <vector>

#include "format/onnx/model.h"

namespace moka::format::onnx {

using protozero::pbf_reader;

/// Why a reader refuses a message that protobuf could decode.
struct Refused : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Decodes messages. Payloads refer to the model's bytes. Throws Refused and protozero::exception.
class Reader {
 public:
  explicit Reader(const Bytes& bytes) : bytes_(bytes) {}

  Model model(pbf_reader in);
  Graph graph(pbf_reader in);
  Function function(pbf_reader in);
  Node node(pbf_reader in);
  Attribute attribute(pbf_reader in);
  Tensor tensor(pbf_reader in);
  SparseTensor sparse_tensor(pbf_reader in);
  ValueInfo value_info(pbf_reader in);
  Type type(pbf_reader in);
  std::vector<Dimension> shape(pbf_reader in);
  Dimension dimension(pbf_reader in);
  OperatorSet opset(pbf_reader in);
  std::pair<std::string, std::string> property(pbf_reader in);
  QuantizationAnnotation quantization(pbf_reader in);

 private:
  /// A level of nested graphs or types.
  struct Level {
    explicit Level(Reader& r) : reader(r) {
      if (++reader.depth_ > max_depth) throw Refused("graphs or types nest too deeply");
    }
    ~Level() { --reader.depth_; }
    Level(const Level&) = delete;
    Reader& reader;
  };

  /// The field's value. Refuses a wire type that differs from the definition's.
  pbf_reader message(pbf_reader& in);
  std::string text(pbf_reader& in);
  Bytes payload(pbf_reader& in) const;
  static int64_t integer(pbf_reader& in);
  static float number(pbf_reader& in);
  /// Appends one element, or several packed ones.
  static void numbers(pbf_reader& in, std::vector<float>& out);
  static void integers(pbf_reader& in, std::vector<int64_t>& out);
  /// Collects a repeated number field of a tensor in packed form. The file may have it packed or not.
  class Packed {
   public:
    explicit Packed(Reader& reader) : reader_(&reader) {}
    /// Adds one element or a packed run. A single packed run is not copied.
    void add(pbf_reader& in);
    Bytes take();

   private:
    template <class T>
    void append(T value) {
      own_.append(reinterpret_cast<const char*>(&value), sizeof value);
    }
    Reader* reader_;
    Bytes view_;
    std::string own_;
  };
  /// Counts an object that takes much more memory than its encoding, and refuses too many of them.
  void count();

  static constexpr int max_depth = 64;
  static constexpr size_t max_messages = 8'000'000;
  const Bytes& bytes_;
  int depth_ = 0;
  size_t messages_ = 0;
};

}  // namespace moka::format::onnx
