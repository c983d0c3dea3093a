// SPDX-License-Identifier: Apache-2.0
#include "import/neuralnetwork/network.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <utility>

#include "base/watch.h"

namespace moka::import::nn {

bool Blob::is_ranked() const {
  const Value* v = form(Form::exact);
  return v == nullptr || v->type.is_ranked();
}

std::vector<Dim> Blob::lead() const {
  return dims.size() <= 3 ? std::vector<Dim>{} : std::vector<Dim>(dims.begin(), dims.end() - 3);
}

std::vector<Dim> dims_of(Value* v) {
  std::vector<Dim> dims;
  for (int i = 0; i < v->type.rank(); i++) {
    int64_t d = v->type.shape()[i];
    dims.push_back(d >= 0 ? Dim{d} : Dim{ir::kAnyDim, v, i});
  }
  return dims;
}

ir::Type unknown_sizes(DType dtype, int rank) {
  Shape s;
  for (int i = 0; i < rank; i++) s.push_back(ir::kAnyDim);
  return ir::Type::tensor(dtype, s);
}

bool all_known(std::span<const Dim> dims) {
  return std::all_of(dims.begin(), dims.end(), [](const Dim& d) { return d.known(); });
}

int64_t product(std::span<const Dim> dims) {
  int64_t n = 1;
  for (const Dim& d : dims)
    if (!d.known() || __builtin_mul_overflow(n, d.size, &n)) return ir::kAnyDim;
  return n;
}

Network Network::inside(ir::Builder& builder) const {
  Network n = *this;
  n.builder_ = &builder;
  n.nesting++;
  return n;
}

Result<Value*> Network::op(std::string_view op, std::vector<NamedArg> args, std::string_view name,
                           const ir::Type* declared) {
  std::string full = context_->prefix + std::string(name);
  ir::OpSpec spec{op, std::move(args), full, {identifier(cat(full, "_", op))}, {}};
  if (declared != nullptr) spec.declared = {*declared};
  return MOKA_TRY(builder_->append(std::move(spec)))->output();
}

Result<Value*> Network::constant(Tensor t, std::string_view name) {
  return builder_->constant(identifier(cat(context_->prefix, name)), std::move(t));
}

Result<Value*> Network::shape_value(std::span<const Dim> dims, std::string_view name) {
  std::vector<Value*> parts;
  std::map<Value*, Value*> shapes;
  for (size_t i = 0; i < dims.size();) {
    size_t j = i;
    if (dims[i].known()) {
      std::vector<int64_t> sizes;
      for (; j < dims.size() && dims[j].known(); j++) sizes.push_back(dims[j].size);
      parts.push_back(MOKA_TRY(constant(Tensor::i32(sizes), cat(name, "_dims"))));
    } else {
      for (j++; j < dims.size() && !dims[j].known() && dims[j].from == dims[i].from &&
                dims[j].axis == dims[i].axis + static_cast<int>(j - i);
           j++) {
      }
      Value*& shape = shapes[dims[i].from];
      if (shape == nullptr) shape = MOKA_TRY(op("shape", {{"x", dims[i].from}}, name));
      int64_t n = static_cast<int64_t>(j - i);
      parts.push_back(MOKA_TRY(
          op("slice_by_index", {{"x", shape}, {"begin", Ints{dims[i].axis}}, {"end", Ints{dims[i].axis + n}}}, name)));
    }
    i = j;
  }
  if (parts.size() == 1) return parts[0];
  return op("concat", {{"values", parts}, {"axis", 0}}, name);
}

Result<Value*> Network::reshape(Value* x, std::span<const Dim> dims, std::string_view name) {
  if (dims.size() > ir::kMaxRank) return fail(ErrorCode::unsupported, name, ": a tensor of rank ", dims.size());
  Ints target;
  int unknown = 0;
  for (const Dim& d : dims) {
    target.push_back(d.known() ? d.size : -1);
    if (!d.known()) unknown++;
  }
  if (dims.empty()) return op("squeeze", {{"x", x}}, name);
  if (unknown == 0 && x->type.is_ranked() && x->type.shape() == Shape(target.span())) return x;
  bool zero = std::any_of(dims.begin(), dims.end(), [](const Dim& d) { return d.size == 0; });
  if (unknown == 0 || (unknown == 1 && !zero)) return op("reshape", {{"x", x}, {"shape", target}}, name);
  return reshape_exactly(x, dims, name);
}

Result<Value*> Network::reshape_exactly(Value* x, std::span<const Dim> dims, std::string_view name) {
  Value* shape = MOKA_TRY(shape_value(dims, name));
  // Type inference only knows the number of entries of the computed shape.
  Shape sizes;
  for (const Dim& d : dims) sizes.push_back(d.known() ? d.size : d.from->type.shape()[d.axis]);
  const ir::Type declared = ir::Type::tensor(x->type.dtype(), sizes);
  return op("reshape", {{"x", x}, {"shape", shape}}, name, &declared);
}

Result<Value*> Network::squeeze(Value* x, const Ints& axes, std::string_view name) {
  std::vector<Dim> left = dims_of(x);
  bool known = true;
  for (int i = axes.size(); i-- > 0;) {
    known &= left[static_cast<size_t>(axes[i])].known();
    left.erase(left.begin() + axes[i]);
  }
  if (known) return op("squeeze", {{"x", x}, {"axes", axes}}, name);
  return reshape_exactly(x, left, name);
}

Result<Blob> Network::blob(Value* v, Form form, std::vector<Dim> lead) {
  if (!v->type.is_tensor() || (form != Form::exact && !v->type.is_ranked()))
    return fail(ErrorCode::unsupported, "a blob of type ", v->type);
  Blob b;
  b.form(form) = v;
  if (!v->type.is_ranked()) return b;
  if (form == Form::exact) {
    b.dims = dims_of(v);
    return b;
  }
  std::vector<Dim> own = dims_of(v);
  b.dims = std::move(lead);
  b.dims.insert(b.dims.end(), own.begin() + 1, own.end());
  if (form == Form::matrix) b.dims.insert(b.dims.end(), 2, Dim{1});
  if (form == Form::nchw && b.rank() == 4) b.form(Form::exact) = v;
  return b;
}

const UpdatableLayer* Network::learning(const proto::NeuralNetworkLayer& layer) const {
  const UpdateDescription* update = context_->update;
  if (!layer.isupdatable() || update == nullptr || nesting > 0 || context_->prefix != update->prefix) return nullptr;
  const auto it = std::find_if(update->layers.begin(), update->layers.end(),
                               [&](const UpdatableLayer& l) { return l.name == layer.name(); });
  return it == update->layers.end() ? nullptr : &*it;
}

Status Network::add(const google::protobuf::RepeatedPtrField<proto::NeuralNetworkLayer>& layers) {
  int done = 0;
  for (const auto& layer : layers) {
    MOKA_TRY(Watch::at("import", static_cast<size_t>(done++), static_cast<size_t>(layers.size())));
    MOKA_TRY(add(layer));
  }
  return {};
}

namespace {

using BlobNames = google::protobuf::RepeatedPtrField<std::string>;

std::vector<BlobSize> sizes_of(const BlobNames& names, const std::map<std::string, Blob, std::less<>>& blobs) {
  std::vector<BlobSize> out;
  for (const std::string& name : names) {
    BlobSize& size = out.emplace_back();
    const auto it = blobs.find(name);
    if (it == blobs.end() || !it->second.is_ranked()) continue;
    size.emplace();
    for (const Dim& d : it->second.dims) size->push_back(d.known() ? d.size : -1);
  }
  return out;
}

}  // namespace

Status Network::add(const proto::NeuralNetworkLayer& layer) {
  int type = static_cast<int>(layer.layer_case());
  if (type == 0)
    return fail(ErrorCode::unsupported, "layer '", layer.name(), "' has no type, or one that is not known");
  const LayerImport* import = find_layer(type);
  if (import == nullptr)
    return fail(ErrorCode::unsupported, "layer '", layer.name(), "' has a type that is not supported (member ", type,
                " of NeuralNetworkLayer)");
  if (record != nullptr) (*record)[&layer] = {sizes_of(layer.input(), blobs), {}};
  Layer l(*this, layer, import->name);
  // Layers of branches and loops are inside another one.
  auto outer = std::exchange(
      builder_->source, std::make_shared<const ir::SourceOp>(ir::SourceOp{layer.name(), std::string(import->name)}));
  Status s = context_->options.placeholders ? add_placeholder(l, import->import) : import->import(l);
  builder_->source = std::move(outer);
  if (!s.ok()) return std::move(s.error()).in(l.place());
  if (record != nullptr) (*record)[&layer].outputs = sizes_of(layer.output(), blobs);
  return {};
}

}  // namespace moka::import::nn
