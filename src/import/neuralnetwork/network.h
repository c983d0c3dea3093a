// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "format/proto/neural_network.pb.h"
#include "import/common/constants.h"
#include "import/importer.h"
#include "import/neuralnetwork/blob_sizes.h"
#include "import/update/update.h"
#include "ir/program.h"

/// Imports the layers of NeuralNetwork, NeuralNetworkClassifier and NeuralNetworkRegressor as MIL operations.
namespace moka::import::nn {

using ir::DType;
using ir::Ints;
using ir::NamedArg;
using ir::Shape;
using ir::Tensor;
using ir::Value;

/// A dimension of a blob: a size or, when the size is unknown, dimension `axis` of `from`.
struct Dim {
  int64_t size = ir::kAnyDim;
  Value* from = nullptr;
  int axis = 0;
  bool known() const { return size >= 0; }
};

/// How a value holds the elements of a blob. The row-major order is the same in all forms.
enum class Form : uint8_t {
  exact,   ///< the blob's own dimensions
  nchw,    ///< rank 4: everything before the last three dimensions is folded into the first
  matrix,  ///< rank 2: as nchw, for a blob whose last two dimensions are 1
};

/// A blob in Core ML's sense: dimensions, and the same elements in one or more forms. A blob of the legacy mapping has
/// rank 5, [sequence, batch, channel, height, width]. Layers that work on images use its nchw form, so that the other
/// dimensions cost nothing.
struct Blob {
  std::vector<Dim> dims;
  Value* forms[3] = {};
  bool scalar = false;  ///< a scalar, stored with the one dimension that blobs must have; expandDims ignores it
  /// Its sizes may be unknown, because a custom layer became a placeholder (ImportOptions::placeholders).
  bool placeholder = false;

  /// False: the rank is known only at run time, and `dims` is empty.
  bool is_ranked() const;
  int rank() const { return static_cast<int>(dims.size()); }
  Value* form(Form f) const { return forms[static_cast<int>(f)]; }
  Value*& form(Form f) { return forms[static_cast<int>(f)]; }
  /// The dimensions before the last three.
  std::vector<Dim> lead() const;
};

std::vector<Dim> dims_of(Value* v);  ///< precondition: ranked
/// A tensor of that rank whose sizes are unknown.
ir::Type unknown_sizes(DType dtype, int rank);
bool all_known(std::span<const Dim> dims);
/// Product of known dimensions; kAnyDim when one is unknown or the product overflows.
int64_t product(std::span<const Dim> dims);

class Layer;

/// The blobs in scope and the builder that layers append to.
class Network {
 public:
  Network(const ImportContext& context, ir::Builder& builder) : context_(&context), builder_(&builder) {}
  /// A network with the same blobs, for a block inside an operation.
  Network inside(ir::Builder& builder) const;

  const ImportContext& context() const { return *context_; }
  ir::Builder& builder() const { return *builder_; }
  std::map<std::string, Blob, std::less<>> blobs;
  bool exact_arrays = false;  ///< blobs have their own ranks, not rank 5

  /// Imports all layers in order.
  Status add(const google::protobuf::RepeatedPtrField<proto::NeuralNetworkLayer>& layers);
  Status add(const proto::NeuralNetworkLayer& layer);

  /// The value of the blob in that form, converted once and kept. Error unsupported when the blob has no such form.
  Result<Value*> as(Blob& blob, Form form);
  /// The exact form of a value whose leading dimensions are those of `like`, a blob of unknown rank.
  Result<Value*> unfold(Value* v, Form form, const Blob& like, std::string_view name);
  /// A blob whose given form is `v`. `lead`: the dimensions that nchw and matrix fold.
  Result<Blob> blob(Value* v, Form form, std::vector<Dim> lead = {});

  /// Appends an operation with one output. `name`: the layer's name. `declared`: what is known of the result's type.
  Result<Value*> op(std::string_view op, std::vector<NamedArg> args, std::string_view name,
                    const ir::Type* declared = nullptr);
  /// Reshapes to `dims`, known or unknown. The element count must stay the same.
  Result<Value*> reshape(Value* x, std::span<const Dim> dims, std::string_view name);
  /// Reshapes to `dims` without deriving any of them from the element count.
  Result<Value*> reshape_exactly(Value* x, std::span<const Dim> dims, std::string_view name);
  /// Removes `axes`. An axis of unknown size must have size 1 at run time.
  Result<Value*> squeeze(Value* x, const Ints& axes, std::string_view name);
  /// An int32 vector with the values of `dims`.
  Result<Value*> shape_value(std::span<const Dim> dims, std::string_view name);
  Result<Value*> constant(Tensor t, std::string_view name);

  int nesting = 0;                ///< number of branches and loops around the layers being added
  LayerRecord* record = nullptr;  ///< where to note the sizes of layers; may be null

  /// What learns of an update; nullptr: the layer stays as it is.
  const UpdatableLayer* learning(const proto::NeuralNetworkLayer& layer) const;

 private:
  /// `form` of a blob of unknown rank.
  Result<Value*> fold(Blob& blob, Form form);
  /// add, for a layer that is, contains or reads a placeholder. A layer that cannot be imported without knowing the
  /// sizes is one, too.
  Status add_placeholder(Layer& layer, Status (*import)(Layer& layer));

  const ImportContext* context_;
  ir::Builder* builder_;
};

/// A layer during import: its parameters, inputs and outputs. Every error names the layer and its type.
class Layer {
 public:
  Layer(Network& network, const proto::NeuralNetworkLayer& message, std::string_view type)
      : net(network), p(message), learning_(network.learning(message)), type_(type) {}

  Network& net;
  const proto::NeuralNetworkLayer& p;

  int inputs() const { return p.input_size(); }
  int outputs() const { return p.output_size(); }
  /// Error malformed unless the numbers of inputs and outputs are in range.
  Status arity(int in_min, int in_max, int out_min = 1, int out_max = 1) const;

  /// Input i. Error unsupported when its rank is known only at run time.
  Result<Blob*> blob(int i);
  Result<Value*> in(int i);
  /// Input i, which may have an unknown rank.
  Result<Blob*> any_blob(int i);
  Result<Value*> in(int i, Form form);
  Result<Value*> any(int i) { return in(i, Form::exact); }
  /// Input i, which must have that rank at run time if its rank is unknown now.
  Result<Value*> with_rank(int i, int rank);
  Result<Value*> nchw(int i) { return in(i, Form::nchw); }
  /// The form of input i that elementwise operations can use without a conversion.
  Result<Form> cheap_form(int i);
  /// A form in which all inputs broadcast like their blobs.
  Result<Form> common_form();
  /// An axis of `x`, not negative if the rank of x is known. Error malformed: x has no such axis.
  Result<int> axis(int64_t axis, const Value* x);
  /// Input i as an int32 tensor (indices, sizes).
  Result<Value*> int32(int i);
  /// Input i, a shape or one entry per dimension, as an int32 vector. Files store such blobs with any rank.
  Result<Value*> int32_vector(int i);

  /// Input i as nchw, for layers that work on each channel separately. A blob of rank 2 is [N, C], of rank 1 [C].
  Result<Value*> channels(int i);
  /// Sets output i to a value computed from channels(0), with the rank of that input.
  Status set_channels(int i, Value* v);

  /// Sets output i. `like`: the input that supplies the leading dimensions of nchw and matrix values.
  Status set(int i, Value* v, Form form = Form::exact, int like = 0);
  Status set_folded(int i, Value* v, Form form, std::vector<Dim> lead);

  Result<Value*> op(std::string_view op, std::vector<NamedArg> args, const ir::Type* declared = nullptr);
  Result<ir::Op*> multi(std::string_view op, std::vector<NamedArg> args);
  Result<Value*> f32(Value* v) { return op("cast", {{"x", v}, {"dtype", "fp32"}}); }
  Result<Value*> constant(Tensor t, std::string_view what);
  Result<Value*> fp32_constant(std::initializer_list<float> values, const Shape& shape, std::string_view what);

  /// A weight: a constant, or the operation that expands it. `channel_axis` applies to per-channel quantization.
  Result<Value*> weight(const proto::WeightParams& w, const Shape& shape, std::string_view what, int channel_axis = 0);
  /// A weight as fp32 numbers, for small weights and those that must be rearranged.
  Result<Tensor> numbers(const proto::WeightParams& w, const Shape& shape, std::string_view what, int channel_axis = 0);
  /// How many numbers the weight holds. Error for raw bytes.
  Result<int64_t> count(const proto::WeightParams& w, std::string_view what);
  /// A shape from a count or list in the file, every entry within 1..2^31.
  Result<Shape> shape(std::initializer_list<uint64_t> dims, std::string_view what);

  /// The name that those of its weights begin with.
  const std::string& own_name() const { return learning_ == nullptr ? p.name() : learning_->own_name; }

  Error malformed(std::string_view what) const;
  Error unsupported(std::string_view what) const;
  std::string place() const;

 private:
  /// Gives weights that learn the name that the update's description has for them.
  Value* named(Value* v, std::string_view what) const;

  const UpdatableLayer* learning_;
  std::string_view type_;
};

/// The most inputs of layers that take any number of them.
constexpr int kManyInputs = 1 << 16;

/// Describes how to import one kind of layer.
struct LayerImport {
  int type;               ///< member of NeuralNetworkLayer.layer, by field number
  std::string_view name;  ///< Core ML's name of that member
  Status (*import)(Layer& layer);
};

/// Finds the entry among all of layers/<family>.cpp, which are sorted by type.
const LayerImport* find_layer(int type);

/// Imports `model` (types neuralNetwork, neuralNetworkClassifier, neuralNetworkRegressor).
Status import_network(const proto::Model& model, const ImportContext& context, ir::Builder& builder,
                      Features& features);

}  // namespace moka::import::nn
