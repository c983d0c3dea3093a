// SPDX-License-Identifier: Apache-2.0
#include "base/half.h"
#include "format/model_file.h"
#include "import/neuralnetwork/network.h"
#include "ir/registered.h"

namespace moka::import::nn {

namespace {

using ir::Constant;

Result<Constant> parameter(const proto::CustomLayerParams::CustomLayerParamValue& v) {
  using Value = proto::CustomLayerParams::CustomLayerParamValue;
  switch (v.value_case()) {
    case Value::kDoubleValue: return Constant(Tensor::scalar(DType::fp64, v.doublevalue()));
    case Value::kStringValue: return Constant(Tensor::text(v.stringvalue()));
    case Value::kIntValue: return Constant(Tensor::scalar_i64(DType::int32, v.intvalue()));
    case Value::kLongValue: return Constant(Tensor::scalar_i64(DType::int64, v.longvalue()));
    case Value::kBoolValue: return Constant(Tensor::boolean(v.boolvalue()));
    default: return fail(ErrorCode::malformed, "it has no value");
  }
}

/// One weight as the class gets it: a vector that shares the file's memory, or the floats that quantized numbers
/// encode.
Result<Tensor> weight(Layer& l, const proto::WeightParams& w, std::string_view what) {
  using Kind = format::WeightData::Kind;
  const format::WeightData d = MOKA_TRY(l.net.context().file.weight_data(w));
  const bool quantized = w.quantization().has_linearquantization() || w.quantization().has_lookuptablequantization();
  const auto vector = [&](DType dtype, size_t bytes) -> Result<Tensor> {
    const Shape shape{static_cast<int64_t>(d.bytes.size() / bytes)};
    if (reinterpret_cast<uintptr_t>(d.bytes.data()) % bytes == 0 && d.bytes.owner != nullptr)
      return Tensor::wrap(dtype, shape, d.bytes);
    return Tensor::wrap(dtype, shape, Bytes::copy_of(d.bytes.span));
  };
  switch (d.kind) {
    case Kind::none: return Tensor::zeros(DType::fp32, Shape{0});
    case Kind::float32: return vector(DType::fp32, 4);
    case Kind::float16: return vector(DType::fp16, 2);
    case Kind::raw:
    case Kind::int8_raw: break;
  }
  if (!quantized) return vector(d.kind == Kind::int8_raw ? DType::int8 : DType::uint8, 1);
  return l.numbers(w, Shape{MOKA_TRY(l.count(w, what))}, what);
}

/// All inputs in one form: elementwise layers work on that which costs no conversion, others on the blob's own shape.
Result<Form> form_of(Layer& l, const ir::Registered& instance) {
  if (l.inputs() == 0) return Form::exact;
  if (instance.elementwise()) return l.common_form();
  if (!instance.channels_last()) return Form::exact;
  for (int i = 0; i < l.inputs(); i++)
    if (MOKA_TRY(l.blob(i))->rank() != 5) return Form::exact;
  return Form::nchw;
}

Status custom(Layer& l) {
  const auto& p = l.p.custom();
  const bool checked = l.net.context().options.placeholders;
  const auto entry = checked ? nullptr : ir::registered_class(ir::RegisteredKind::layer, p.classname());
  if (entry == nullptr && !checked)
    return l.unsupported(cat("custom layer '", p.classname(), "'",
                             p.description().empty() ? "" : cat(" (", p.description(), ")"), ": ",
                             ir::register_hint("register_layer")));
  if (l.outputs() == 0) return l.malformed("expected at least one output, got none");
  ir::RegisteredSpec spec;
  spec.name = l.p.name();
  spec.class_name = p.classname();
  spec.description = p.description();
  for (const auto& [key, value] : p.parameters())
    spec.parameters.emplace(key, MOKA_TRY_IN(parameter(value), cat("parameter '", key, "'")));
  for (int i = 0; i < p.weights_size(); i++)
    spec.weights.push_back(MOKA_TRY(weight(l, p.weights(i), cat("weight", i))));
  if (checked) {
    for (int i = 0; i < l.inputs(); i++) MOKA_TRY(l.any_blob(i));
    return l.unsupported("a layer whose sizes only its class knows");
  }
  spec.input_count = static_cast<size_t>(l.inputs());
  spec.output_count = static_cast<size_t>(l.outputs());
  const auto instance = MOKA_TRY(entry->make(std::move(spec)));
  const Form form = MOKA_TRY(form_of(l, *instance));
  std::vector<Value*> inputs;
  for (int i = 0; i < l.inputs(); i++) inputs.push_back(MOKA_TRY(l.in(i, form)));
  ir::OpSpec op = ir::registered_spec(instance, p.classname(), std::move(inputs));
  op.name = l.net.context().prefix + l.p.name();
  const ir::Op* made = MOKA_TRY(l.net.builder().append(std::move(op)));
  for (int i = 0; i < l.outputs(); i++) MOKA_TRY(l.set(i, made->output(static_cast<size_t>(i)), form));
  return {};
}

}  // namespace

std::span<const LayerImport> layers_custom() {
  static const LayerImport list[] = {{proto::NeuralNetworkLayer::kCustom, "custom", custom}};
  return list;
}

}  // namespace moka::import::nn
