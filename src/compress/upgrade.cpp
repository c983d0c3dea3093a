// SPDX-License-Identifier: Apache-2.0
#include "compress/upgrade.h"

#include <algorithm>
#include <bit>
#include <optional>

#include "compress/blocks.h"
#include "compress/constants.h"
#include "compress/encode_site.h"
#include "compress/messages.h"
#include "compress/weight_files.h"
#include "editing/program.h"
#include "ir/shape.h"

namespace moka::compress {
namespace {

using format::Message;

/// Rewrites an operation that expands a weight: its constants, which are attributes until iOS 17, become inputs.
class Upgrader {
 public:
  Upgrader(Message op, const format::WeightStore& store, format::WeightFile& file)
      : op_(std::move(op)), store_(store), file_(file) {}

  Status palette() {
    Message lut = MOKA_TRY(attribute("lut"));
    const auto table = MOKA_TRY(shape_of(MOKA_TRY(lut.child("type"))));
    const int64_t entries = table && table->size() == 1 ? (*table)[0] : 0;
    if (entries != 2 && entries != 4 && entries != 16 && entries != 64 && entries != 256)
      return error("expected a 'lut' of 2, 4, 16, 64 or 256 values");
    const auto bits = static_cast<unsigned>(std::countr_zero(static_cast<uint64_t>(entries)));
    const Shape shape = MOKA_TRY(result_shape());
    Shape groups(shape.size(), 1);
    groups.insert(groups.end(), {entries, 1});
    Message type = MOKA_TRY(MOKA_TRY(lut.edit("type")).edit("tensorType"));
    MOKA_TRY(type.clear("dimensions"));
    MOKA_TRY(set_shape(type, groups));
    MOKA_TRY(set_packed("indices", unsigned_type(bits), shape));
    MOKA_TRY(add_input("lut", lut));
    return clear_attributes();
  }

  Status sparse() {
    MOKA_TRY(add_input("nonzero_data", MOKA_TRY(attribute("nonzero_data"))));
    MOKA_TRY(set_packed("mask", format::BlobType::uint1, MOKA_TRY(result_shape())));
    return clear_attributes();
  }

 private:
  Error error(std::string_view reason) {
    const auto name = editing::operation_name(op_), type = text_of(op_, "type");
    return fail(ErrorCode::malformed, "operation '", name ? *name : "", "' (", type ? *type : "", "): ", reason);
  }

  Result<Message> attribute(std::string_view name) {
    const auto value = MOKA_TRY(find(op_, "attributes", name));
    if (!value || MOKA_TRY(value->count("type")) == 0) return error(cat("expected an attribute '", name, "'"));
    return value->copy();
  }

  Result<Shape> result_shape() {
    for (const Message& output : MOKA_TRY(op_.children("outputs")))
      if (MOKA_TRY(output.count("type")) > 0)
        if (const auto shape = MOKA_TRY(shape_of(MOKA_TRY(output.child("type"))))) {
          MOKA_TRY(MOKA_TRY(ir::Shape::make(*shape)).checked_count());
          return *shape;
        }
    return error("expected a result of known shape");
  }

  /// The bytes of a constant of type UINT8.
  Result<Bytes> bytes_of(const Message& value, std::string_view name) {
    const std::string where = MOKA_TRY(value.which("value"));
    if (where == "blobFileValue") return MOKA_TRY(blob_of(MOKA_TRY(value.child(where)), store_)).data;
    if (where == "immediateValue") {
      const Message immediate = MOKA_TRY(value.child("immediateValue"));
      if (MOKA_TRY(immediate.which("value")) == "tensor") {
        const Message tensor = MOKA_TRY(immediate.child("tensor"));
        if (MOKA_TRY(tensor.which("value")) == "bytes") return MOKA_TRY(tensor.child("bytes")).packed("values");
      }
    }
    return error(cat("expected bytes in '", name, "'"));
  }

  /// Both versions pack elements from the lowest bit up, so only the type changes.
  Status set_packed(std::string_view name, format::BlobType type, const Shape& shape) {
    const Bytes data = MOKA_TRY(bytes_of(MOKA_TRY(attribute(name)), name));
    const auto count = static_cast<uint64_t>(count_of(shape)), width = uint64_t{format::bit_width(type)};
    const uint64_t bytes = count / 8 * width + (count % 8 * width + 7) / 8;
    if (data.size() != bytes)
      return error(cat("expected ", bytes, " bytes in '", name, "' for ", count, " elements of ", width, " bits, got ",
                       data.size()));
    Message value = MOKA_TRY(Message::make("MILSpec.Value"));
    MOKA_TRY(set_value(value, {type, shape, data}, file_));
    return add_input(name, value);
  }

  Status add_input(std::string_view name, const Message& value) {
    Message entry = MOKA_TRY(op_.edit("inputs"));
    MOKA_TRY(entry.set("key", std::string(name)));
    Message binding = MOKA_TRY(MOKA_TRY(entry.edit("value")).edit("arguments"));
    return binding.set("value", value);
  }

  Status clear_attributes() {
    std::vector<Message> kept;
    for (const Message& entry : MOKA_TRY(op_.children("attributes")))
      if (MOKA_TRY(text_of(entry, "key")) == "name") kept.push_back(entry);
    return op_.set_all("attributes", kept);
  }

  Message op_;
  const format::WeightStore& store_;
  format::WeightFile& file_;
};

}  // namespace

Status upgrade_forms(format::ModelSource& source) {
  const format::WeightStore store = store_of(source);
  format::WeightFile file;
  bool changed = false;
  MOKA_TRY(each(source.specification, "MILSpec.Function", [&](const Message& function) -> Status {
    if (MOKA_TRY(opset_of(function)) >= kOpsetOfIos18) return {};
    return each(function, "MILSpec.Operation", [&](const Message& op) -> Status {
      const std::string type = MOKA_TRY(text_of(op, "type"));
      const bool palette = type == "constexpr_lut_to_dense";
      if (!palette && type != "constexpr_sparse_to_dense") return {};
      changed = true;
      Upgrader upgrader(op, store, file);
      return palette ? upgrader.palette() : upgrader.sparse();
    });
  }));
  return changed ? finish(source, store, file) : Status();
}

Status unify_forms(format::ModelSource& source) {
  int newest = 0;
  MOKA_TRY(each(source.specification, "MILSpec.Function", [&](const Message& function) -> Status {
    newest = std::max(newest, MOKA_TRY(opset_of(function)));
    return {};
  }));
  return newest >= kOpsetOfIos18 ? upgrade_forms(source) : Status();
}

}  // namespace moka::compress
