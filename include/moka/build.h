// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "moka/model.h"
#include "moka/output.h"

namespace moka {

/// A message of Core ML's specification, whose fields are accessed by name and checked. Copies refer to the same
/// message. Fields that Moka does not know are kept. Throws Exception: invalid_argument (an unknown message or field, a
/// value that does not fit), malformed (bytes that do not decode). Not thread-safe.
class MOKA_EXPORT Message {
 public:
  /// Enumerators are texts.
  using Scalar = std::variant<bool, int64_t, uint64_t, double, std::string, std::vector<std::byte>>;

  struct Field {
    std::string name;
    std::string type;  ///< "integer", "boolean", "number", "text", "bytes", "enumerator", or the name of a message
    bool repeated = false, is_message = false, is_map = false;
    std::string zero;  ///< of an enumerator: the one that an absent field has
  };

  /// An empty message of a type: "Model", "NeuralNetworkLayer", "MILSpec.Program" (or "Program").
  explicit Message(std::string_view type);
  /// Decodes fields as they are read. The message refers to `bytes`, which `owner` keeps alive. A null `owner` makes it
  /// copy them.
  static Message parse(std::string_view type, std::span<const std::byte> bytes,
                       std::shared_ptr<const void> owner = nullptr);
  /// The names of all messages.
  static std::vector<std::string> types();

  const std::string& type() const;
  std::vector<Field> fields() const;          ///< that a message of this type can have
  std::vector<std::string> names() const;     ///< of the fields that have a value
  size_t size(std::string_view field) const;  ///< values of a field; 0 or 1 when it is not repeated
  bool has(std::string_view field) const { return size(field) > 0; }
  std::string which(std::string_view oneof) const;  ///< the member that has a value; empty: none

  std::vector<Scalar> values(std::string_view field) const;
  /// The elements of a repeated number field as float32 or float64, or bytes as uint8, [n].
  MultiArray array(std::string_view field) const;
  Message at(std::string_view field, size_t index = 0) const;
  std::vector<Message> all(std::string_view field) const;  ///< the messages of a field

  /// Sets a field. Members of the same oneof lose their value.
  Message& set(std::string_view field, const Scalar& value);
  Message& set(std::string_view field, const char* text) { return set(field, Scalar(std::string(text))); }
  Message& set(std::string_view field, int value) { return set(field, Scalar(int64_t{value})); }
  Message& set(std::string_view field, const std::vector<Scalar>& values);
  /// Repeated floats and doubles take the elements as numbers, bytes take them as they lie in memory. The message
  /// refers to the array if its type and order fit, and copies it otherwise.
  Message& set(std::string_view field, const MultiArray& array);
  /// Copies `value` into the field. Appends it to a repeated field.
  Message& set(std::string_view field, const Message& value);
  /// The message of a field, which is added if absent. Always appends a new one to a repeated field.
  Message add(std::string_view field);
  void clear(std::string_view field);
  void remove(std::string_view field, size_t index);

  std::vector<std::byte> serialize() const;
  Message copy() const;

  struct Impl;
  explicit Message(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
  const Impl& impl() const { return *impl_; }

 private:
  std::shared_ptr<Impl> impl_;
};

/// A FeatureDescription of the specification.
MOKA_EXPORT Message describe_feature(const FeatureDescription& feature);
/// The Model of the specification with this version and description, and no content. A description with one function
/// without a name is that of the model itself.
MOKA_EXPORT Message describe_model(const ModelDescription& description);

/// A model as .mlmodel and .mlpackage hold it: a specification and its weights. Copies share both. Throws Exception.
class MOKA_EXPORT ModelSource {
 public:
  explicit ModelSource(Message specification);
  /// Opens a model. Parts are read when they are needed. Throws what opening a model throws; invalid_argument (a
  /// compiled model).
  static ModelSource open(const std::filesystem::path& path);

  /// The specification. save() writes changes of this message.
  Message specification() const;
  /// "weights/weight.bin"
  std::vector<std::string> weight_files() const;
  /// The content of a weight file. Throws not_found.
  MultiArray weight_file(const std::string& name) const;
  /// Adds or replaces a file, given its content as uint8. The source refers to the array.
  void set_weight_file(const std::string& name, const MultiArray& content);

  /// Appends a model and its weight files to this pipeline. Weight files whose names are taken get new names.
  void add_stage(const ModelSource& model, const std::string& name);

  /// Writes an .mlpackage, or an .mlmodel for models without an ML program. The extension of `path` chooses. Replaces
  /// an existing model of this kind, which may be the one that was opened. A model without changes is saved with the
  /// same bytes. Throws invalid_argument (path), io, unsupported (a specification of 2 GB).
  void save(const std::filesystem::path& path, Overwrite overwrite = Overwrite::own_kind) const;
  /// The model itself, without files. Copies the weights, but not those of an ONNX model that was imported and not
  /// looked at since: they stay in its files.
  Model load(const ModelConfiguration& configuration = {}) const;

  struct Impl;
  explicit ModelSource(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
  Impl& impl() const { return *impl_; }

 private:
  std::shared_ptr<Impl> impl_;
};

}  // namespace moka
