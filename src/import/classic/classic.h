// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "format/proto/model.pb.h"
#include "import/importer.h"

/// Shared by the importers of classic models. They compute on vectors of doubles; ImportedModel gives the boundary
/// types.
namespace moka::import::classic {

/// One model during import: its description, its features and the builder for its operations.
class Site {
 public:
  static Result<Site> open(const proto::Model& model, const ImportContext& context, ir::Builder& builder,
                           Features& features);

  const FunctionDescription& description() const { return description_; }
  ir::Builder& builder() const { return *builder_; }
  /// A name for an operation of this model.
  std::string name(std::string_view what) const { return cat(context_->prefix, what); }
  /// Whether values have a leading axis of rows (ImportOptions::rows).
  bool rows() const { return context_->options.rows; }
  /// An operation with one output, named after `what`. Its `rows` is set as rows() says.
  Result<ir::Value*> op(std::string_view op, std::vector<ir::NamedArg> args, std::string_view what) const;

  /// The only declared input; an error if there is not exactly one.
  Result<const FeatureDescription*> only_input() const;
  Result<const FeatureDescription*> only_output() const;
  /// The value of an input; nullptr when it is optional and absent. Error not_found.
  Result<ir::Value*> input(const FeatureDescription& feature) const;
  /// The value of the input with that name; nullptr when the name is empty or the input is optional and absent.
  Result<ir::Value*> input(std::string_view feature) const;
  /// All inputs, concatenated to a vector of doubles. `expected`: number of elements of an input that does not declare
  /// its shape; -1 makes this an error.
  Result<ir::Value*> vector(int64_t expected) const;

  /// Converts `value` to the declared type of `feature` and adds it to the outputs.
  Status output(const FeatureDescription& feature, ir::Value* value) const;
  /// The outputs of a classifier: the best class and the scores by class.
  Status classify(ir::Value* scores, ir::Tensor classes) const;

  /// Creates a constant and charges it to the memory budget.
  Result<ir::Tensor> tensor(std::span<const double> v) const { return tensor(v, {static_cast<int64_t>(v.size())}); }
  Result<ir::Tensor> tensor(std::span<const double> v, const ir::Shape& shape) const;
  Result<ir::Tensor> tensor(std::span<const float> v, const ir::Shape& shape) const;
  Result<ir::Tensor> tensor(std::span<const int64_t> v) const;
  Result<ir::Tensor> tensor(std::span<const int32_t> v) const;
  Result<ir::Tensor> tensor(std::span<const uint8_t> v, ir::DType dtype) const;
  /// Shares the bytes.
  Result<ir::Tensor> tensor(Bytes bytes, ir::DType dtype, const ir::Shape& shape) const;

 private:
  Status charge(size_t bytes) const;
  Result<ir::Tensor> copy(ir::DType dtype, const ir::Shape& shape, const void* data, size_t bytes) const;

  const ImportContext* context_ = nullptr;
  ir::Builder* builder_ = nullptr;
  Features* features_ = nullptr;
  std::string type_name_;
  FunctionDescription description_;
};

/// Adds NumPy-like access to a repeated field of numbers.
template <class Field>
auto span_of(const Field& field) {
  return std::span(field.data(), static_cast<size_t>(field.size()));
}

/// Keys in ascending order, and the original position of each.
struct SortedKeys {
  ir::Tensor keys;
  std::vector<int64_t> positions;
};
SortedKeys sorted_keys(const proto::StringVector& keys);
Result<SortedKeys> sorted_keys(const Site& site, const proto::Int64Vector& keys);

ir::Tensor strings(const google::protobuf::RepeatedPtrField<std::string>& values);

/// The class labels of a classifier: a vector of strings or int64. Error malformed when there are none.
template <class Message>
Result<ir::Tensor> class_labels(const Site& site, const Message& m) {
  if (m.has_stringclasslabels() && m.stringclasslabels().vector_size() > 0)
    return strings(m.stringclasslabels().vector());
  if (m.has_int64classlabels() && m.int64classlabels().vector_size() > 0)
    return site.tensor(span_of(m.int64classlabels().vector()));
  return fail(ErrorCode::malformed, "classifier without class labels");
}

/// A matrix from rows, each a message with repeated doubles `value`. All rows must have the same length.
template <class Rows>
Result<ir::Tensor> matrix(const Site& site, const Rows& rows, std::string_view what) {
  std::vector<double> flat;
  int columns = rows.empty() ? 0 : rows[0].value_size();
  for (int i = 0; i < rows.size(); ++i) {
    if (rows[i].value_size() != columns)
      return fail(ErrorCode::malformed, what, ", row ", i, ": expected ", columns, " numbers as in row 0, got ",
                  rows[i].value_size());
    flat.insert(flat.end(), rows[i].value().begin(), rows[i].value().end());
  }
  return site.tensor(flat, {rows.size(), columns});
}

}  // namespace moka::import::classic
