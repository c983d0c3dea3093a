// SPDX-License-Identifier: Apache-2.0
#include "custom/layer.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "base/half.h"
#include "boundary/arrays.h"
#include "boundary/descriptions.h"

namespace moka {

ShaderCode ShaderCode::spirv(std::span<const uint32_t> words) {
  return {"spirv", std::string(reinterpret_cast<const char*>(words.data()), words.size_bytes())};
}

ShaderCode ShaderCode::glsl(std::string source) { return {"glsl", std::move(source)}; }

CustomLayer::~CustomLayer() = default;
void CustomLayer::set_weights(const std::vector<MultiArray>&) {}
bool CustomLayer::elementwise() const { return false; }
LayerOrder CustomLayer::order() const { return LayerOrder::row_major; }
LayerPlan CustomLayer::plan(const std::vector<std::vector<int64_t>>&, int) const { return {}; }
std::optional<LayerShader> CustomLayer::shader(const std::vector<std::vector<int64_t>>&) const { return std::nullopt; }

std::vector<std::vector<int64_t>> CustomLayer::output_shapes(const std::vector<std::vector<int64_t>>& inputs) const {
  if (inputs.empty()) throw Exception(ErrorKind::data, "a layer without inputs must say its output shapes");
  return {inputs[0]};
}

namespace custom {

Status guarded(const std::string& what, std::string_view doing, const std::function<void()>& f) {
  try {
    f();
    return {};
  } catch (const Exception& e) {
    return fail(static_cast<ErrorCode>(static_cast<int>(e.kind()) - 1), what, ", ", doing, ": ", e.what());
  } catch (const std::bad_alloc&) {
    return fail(ErrorCode::out_of_budget, what, ", ", doing, ": no memory is left");
  } catch (const std::exception& e) {
    return fail(ErrorCode::data, what, ", ", doing, ": ", e.what());
  } catch (...) {
    return fail(ErrorCode::data, what, ", ", doing, ": it threw something other than a std::exception");
  }
}

Result<MultiArray> to_shared_array(const ir::Tensor& tensor) {
  const DataType type = MOKA_TRY(boundary::from_ir(tensor.dtype()));
  if (reinterpret_cast<uintptr_t>(tensor.data()) % size_of(type) != 0)
    return MOKA_TRY(boundary::to_array(tensor.view()));
  // The owner must outlive the array even where there is none to share.
  auto keep = std::make_shared<ir::Tensor>(tensor);
  return MultiArray(tensor.view().data, type, tensor.shape().to_vector(), {}, keep);
}

Result<ParameterValue> to_parameter(const ir::Constant& constant) {
  if (constant.type.is_list() || constant.type.kind() == ir::Type::Kind::tuple) {
    std::vector<std::string> texts;
    std::vector<double> numbers;
    for (const ir::Constant& part : constant.parts) {
      if (!part.type.is_tensor() || part.tensor.count() != 1)
        return fail(ErrorCode::unsupported, "a parameter of type ", constant.type);
      if (part.tensor.dtype() == ir::DType::string)
        texts.push_back(part.tensor.text());
      else
        numbers.push_back(ir::load_f64(part.tensor.view(), 0));
    }
    if (numbers.empty()) return ParameterValue(std::move(texts));
    MultiArray out(DataType::float64, {static_cast<int64_t>(numbers.size())});
    std::copy(numbers.begin(), numbers.end(), out.as<double>().begin());
    return ParameterValue(std::move(out));
  }
  if (!constant.type.is_tensor()) return fail(ErrorCode::unsupported, "a parameter of type ", constant.type);
  const ir::Tensor& t = constant.tensor;
  if (t.dtype() == ir::DType::string) {
    const auto texts = t.as<std::string>();
    if (t.shape().rank() == 0) return ParameterValue(t.text());
    return ParameterValue(std::vector<std::string>(texts.begin(), texts.end()));
  }
  if (t.shape().rank() > 0) return ParameterValue(MOKA_TRY(to_shared_array(t)));
  if (t.dtype() == ir::DType::boolean) return ParameterValue(ir::load_i64(t.view(), 0) != 0);
  if (ir::is_float(t.dtype())) return ParameterValue(ir::load_f64(t.view(), 0));
  return ParameterValue(ir::load_i64(t.view(), 0));
}

namespace {

using ir::DType;
using ir::Type;
using Shapes = std::vector<std::vector<int64_t>>;

Shapes shapes_of(std::span<const Type> types) {
  Shapes out;
  for (const Type& t : types) out.push_back(t.shape().to_vector());
  return out;
}

/// Sizes that replace unknown dimensions in calls of output_shapes, which show what output dimensions depend on them.
constexpr std::array<int64_t, 3> kProbes = {96, 160, 224};

constexpr size_t kFewArrays = 8;

/// Views of the arrays of a call. Few views need no allocation.
class Views {
 public:
  Views(std::span<const ir::TensorView> of, bool flat) {
    if (of.size() > few_.size()) many_.resize(of.size());
    ArrayView* to = of.size() > few_.size() ? many_.data() : few_.data();
    for (size_t i = 0; i < of.size(); i++) {
      to[i].data = of[i].data;
      to[i].type = *boundary::from_ir(of[i].dtype);
      to[i].shape = flat ? std::span<const int64_t>() : of[i].shape.dims();
      to[i].count = of[i].count();
    }
    views_ = {to, of.size()};
  }
  Views(const Views&) = delete;
  std::span<ArrayView> get() { return views_; }

 private:
  std::array<ArrayView, kFewArrays> few_;
  std::vector<ArrayView> many_;
  std::span<ArrayView> views_;
};

class LayerStep final : public ir::Registered {
 public:
  LayerStep(std::string what, std::unique_ptr<CustomLayer> layer, size_t inputs, size_t outputs,
            std::vector<Type> declared)
      : what_(std::move(what)),
        layer_(std::move(layer)),
        inputs_(inputs),
        outputs_(outputs),
        declared_(std::move(declared)) {}

  Status start(const std::vector<MultiArray>& weights) {
    MOKA_TRY(guarded(what_, "set_weights", [&] { layer_->set_weights(weights); }));
    return guarded(what_, "its properties", [&] {
      elementwise_ = layer_->elementwise();
      channels_last_ = layer_->order() == LayerOrder::channels_last;
    });
  }

  const std::string& what() const override { return what_; }
  bool elementwise() const override { return elementwise_; }
  bool channels_last() const override { return channels_last_; }

  Result<std::vector<Type>> infer(std::span<const ir::Arg> in, std::span<const Type> known) const override {
    if (in.size() != inputs_)
      return fail(ErrorCode::invalid_argument, "expected ", inputs_, " inputs, got ", in.size());
    std::vector<Type> types;
    bool concrete = true;
    for (const ir::Arg& a : in) {
      if (!a.type->is_tensor() || !boundary::from_ir(a.type->dtype()).ok())
        return fail(ErrorCode::unsupported, "an input of type ", *a.type, "; expected arrays of numbers");
      concrete &= a.type->is_ranked() && a.type->is_concrete();
      types.push_back(*a.type);
    }
    if (concrete) return said(types, known);
    if (!declared_.empty()) {
      std::vector<Type> out;
      for (size_t i = 0; i < outputs_; i++)
        out.push_back(declared_[i].is_ranked() ? Type::tensor(element(i, types), declared_[i].shape())
                                               : Type::unranked(element(i, types)));
      return out;
    }
    return probed(types);
  }

  Result<ir::RegisteredPlan> plan(std::span<const Type> in, std::span<const Type> out, int threads) const override {
    ir::RegisteredPlan p;
    const bool same = std::all_of(in.begin(), in.end(), [&](const Type& t) { return t == out[0]; });
    if (elementwise_) {
      if (in.empty() || out.size() != 1 || !same)
        return fail(ErrorCode::data, what_,
                    ": it says that it is elementwise: expected inputs and one output of one type and shape");
      p.elementwise = true;
      p.in_place = 0;
      return p;
    }
    LayerPlan said;
    MOKA_TRY(guarded(what_, "plan", [&] { said = layer_->plan(shapes_of(in), threads); }));
    if (said.tiles < 1) return fail(ErrorCode::data, what_, ", plan: expected at least 1 tile, got ", said.tiles);
    if (said.scratch > kMostScratch || said.thread_scratch > kMostScratch)
      return fail(ErrorCode::out_of_budget, what_, ", plan: more than ", kMostScratch, " bytes of scratch");
    if (said.in_place >= 0 &&
        (static_cast<size_t>(said.in_place) >= in.size() || !(in[static_cast<size_t>(said.in_place)] == out[0])))
      return fail(ErrorCode::data, what_, ", plan: input ", said.in_place,
                  " cannot hold output 0, whose type or shape is another");
    p.channels_last = channels_last_;
    p.in_place = said.in_place;
    p.tiles = said.tiles;
    p.scratch = said.scratch;
    p.thread_scratch = said.thread_scratch;
    p.seconds = said.seconds;
    return p;
  }

  Result<std::optional<ir::RegisteredShader>> shader(std::span<const Type> in, std::span<const Type>) const override {
    std::optional<LayerShader> said;
    MOKA_TRY(guarded(what_, "shader", [&] { said = layer_->shader(shapes_of(in)); }));
    if (!said) return std::optional<ir::RegisteredShader>();
    ir::RegisteredShader s{{},           std::move(said->constants), std::move(said->parameters), said->groups, {},
                           said->seconds};
    for (ShaderCode& code : said->code) s.code.push_back({std::move(code.kind), std::move(code.bytes)});
    for (const MultiArray& b : said->buffers) {
      const MultiArray dense = b.is_contiguous() ? b : b.converted(b.type());
      const auto* data = static_cast<const std::byte*>(dense.data());
      s.buffers.push_back(
          {{data, static_cast<size_t>(dense.count()) * size_of(dense.type())}, std::make_shared<MultiArray>(dense)});
    }
    return std::optional(std::move(s));
  }

  Status run(const ir::RegisteredCall& call) const override {
    for (const auto* list : {&call.in, &call.out})
      for (const ir::TensorView& v : *list)
        if (v.dtype == DType::fp16) return run_widened(call);
    return run_as_is(call);
  }

 private:
  static constexpr size_t kMostScratch = size_t{1} << 40;

  /// The layer gets float16 values as float32. Its result is float32, too, unless an input is still float16.
  DType element(size_t i, std::span<const Type> in) const {
    if (declared_.empty()) return DType::fp32;
    const DType t = declared_[i].dtype();
    if (t != DType::fp16) return t;
    const bool wide = std::any_of(in.begin(), in.end(), [](const Type& x) { return x.dtype() == DType::fp32; });
    return wide ? DType::fp32 : DType::fp16;
  }

  Result<Shapes> ask(const Shapes& in) const {
    Shapes out;
    MOKA_TRY(guarded(what_, "output_shapes", [&] { out = layer_->output_shapes(in); }));
    if (out.size() != outputs_)
      return fail(ErrorCode::data, "output_shapes: expected ", outputs_, " shapes, got ", out.size());
    for (const auto& s : out) {
      const ir::Shape shape = MOKA_TRY_IN(ir::Shape::make(s), "output_shapes");
      for (int64_t d : s)
        if (d < 0) return fail(ErrorCode::data, "output_shapes: expected sizes of 0 or more, got ", shape);
      MOKA_TRY_IN(shape.checked_count(), "output_shapes");
    }
    return out;
  }

  Result<std::vector<Type>> said(std::span<const Type> types, std::span<const Type> known) const {
    const Shapes shapes = MOKA_TRY(ask(shapes_of(types)));
    std::vector<Type> out;
    for (size_t i = 0; i < outputs_; i++) {
      out.push_back(Type::tensor(element(i, types), ir::Shape(std::span<const int64_t>(shapes[i]))));
      const std::span<const Type> expected = known.size() == outputs_ ? known : std::span<const Type>(declared_);
      if (i >= expected.size() || !expected[i].is_ranked()) continue;
      const Type same_element = Type::tensor(out[i].dtype(), expected[i].shape());
      if (!ir::is_compatible(out[i], same_element))
        return fail(ErrorCode::data, "output_shapes: output ", i, ": expected ", expected[i].shape(), ", got ",
                    out[i].shape());
    }
    return out;
  }

  /// Output dimensions that are the same for several sizes of the unknown input dimensions count as known. `said`
  /// checks them once all sizes are known.
  Result<std::vector<Type>> probed(std::span<const Type> types) const {
    std::vector<Type> unknown(outputs_, Type::unranked(DType::fp32));
    for (const Type& t : types)
      if (!t.is_ranked()) return unknown;
    std::vector<Shapes> answers;
    for (int64_t size : kProbes) {
      Shapes in = shapes_of(types);
      for (auto& s : in)
        for (int64_t& d : s)
          if (d < 0) d = size;
      auto answer = ask(in);
      if (!answer.ok()) return unknown;
      answers.push_back(std::move(*answer));
    }
    std::vector<Type> out;
    for (size_t i = 0; i < outputs_; i++) {
      const auto& first = answers[0][i];
      if (std::any_of(answers.begin(), answers.end(), [&](const Shapes& a) { return a[i].size() != first.size(); }))
        return unknown;
      ir::Shape shape;
      for (size_t d = 0; d < first.size(); d++) {
        const bool fixed =
            std::all_of(answers.begin(), answers.end(), [&](const Shapes& a) { return a[i][d] == first[d]; });
        shape.push_back(fixed ? first[d] : ir::kAnyDim);
      }
      out.push_back(Type::tensor(DType::fp32, shape));
    }
    return out;
  }

  Status run_as_is(const ir::RegisteredCall& call) const {
    Views in(call.in, elementwise_), out(call.out, elementwise_);
    LayerCall layer{in.get(), out.get(), {}, {}, call.begin, call.end, call.thread};
    if (elementwise_)
      for (auto views : {in.get(), out.get()})
        for (ArrayView& v : views) v.shape = {&v.count, 1};
    layer.scratch = {call.scratch, call.scratch_bytes};
    layer.thread_scratch = {call.own, call.own_bytes};
    const auto evaluate = [&](const LayerCall& c) -> Status {
      // Does not use `guarded`, because this runs for every tile and `guarded` makes a std::function.
      try {
        layer_->evaluate(c);
        return {};
      } catch (...) {
        const auto thrown = std::current_exception();
        return guarded(what_, "evaluate", [&] { std::rethrow_exception(thrown); });
      }
    };
    if (checks_layers()) return evaluate_guarded(what_, layer, evaluate);
    return evaluate(layer);
  }

  /// Runs the layer on float32 copies of float16 values, which exist with Precision::exact.
  Status run_widened(const ir::RegisteredCall& call) const {
    ir::RegisteredCall wide = call;
    std::vector<ir::Tensor> held;
    std::vector<ir::TensorView> in(call.in.begin(), call.in.end()), out(call.out.begin(), call.out.end());
    for (auto* list : {&in, &out})
      for (ir::TensorView& v : *list) {
        if (v.dtype != DType::fp16) continue;
        held.push_back(MOKA_TRY(ir::Tensor::zeros(DType::fp32, v.shape)));
        if (list == &in)
          half_to_float(v.as<uint16_t>(), held.back().mut<float>().data(), static_cast<size_t>(v.count()));
        v = held.back().view();
      }
    wide.in = in;
    wide.out = out;
    MOKA_TRY(run_as_is(wide));
    for (size_t i = 0; i < out.size(); i++)
      if (call.out[i].dtype == DType::fp16)
        float_to_half(out[i].as<float>(), call.out[i].as<uint16_t>(), static_cast<size_t>(out[i].count()));
    return {};
  }

  const std::string what_;
  const std::unique_ptr<CustomLayer> layer_;
  const size_t inputs_, outputs_;
  const std::vector<Type> declared_;
  bool elementwise_ = false, channels_last_ = false;
};

ir::RegisteredFactory factory_of(std::string_view kind, LayerFactory factory) {
  return [kind = std::string(kind),
          factory = std::move(factory)](ir::RegisteredSpec spec) -> Result<std::shared_ptr<const ir::Registered>> {
    const std::string what = cat(kind, " '", spec.class_name, "'");
    LayerInfo info{spec.name, spec.class_name, spec.description, {}, spec.inputs, spec.input_count, spec.output_count};
    for (const auto& [key, value] : spec.parameters)
      info.parameters.emplace(key, MOKA_TRY_IN(to_parameter(value), cat(what, ", parameter '", key, "'")));
    std::vector<MultiArray> weights;
    for (const ir::Tensor& t : spec.weights)
      weights.push_back(MOKA_TRY_IN(to_shared_array(t), cat(what, ", weight ", weights.size())));
    std::unique_ptr<CustomLayer> layer;
    MOKA_TRY(guarded(what, "its factory", [&] { layer = factory(info); }));
    if (layer == nullptr) return fail(ErrorCode::data, what, ", its factory: it made no layer");
    auto step = std::make_shared<LayerStep>(what, std::move(layer), spec.input_count, spec.output_count,
                                            std::move(spec.declared));
    MOKA_TRY(step->start(weights));
    return std::shared_ptr<const ir::Registered>(std::move(step));
  };
}

}  // namespace

void check_registration(const std::string& name, bool has_factory) {
  if (name.empty()) throw Exception(ErrorKind::invalid_argument, "registering: expected a name, got ''");
  if (!has_factory) throw Exception(ErrorKind::invalid_argument, cat("registering '", name, "': expected a factory"));
}

}  // namespace custom

void register_layer(const std::string& class_name, LayerFactory factory) {
  custom::check_registration(class_name, static_cast<bool>(factory));
  ir::register_class(ir::RegisteredKind::layer, class_name,
                     {custom::factory_of("custom layer", std::move(factory)), {}, {}});
}
bool unregister_layer(const std::string& class_name) {
  return ir::unregister_class(ir::RegisteredKind::layer, class_name);
}

void register_operation(const std::string& name, LayerFactory factory, OperationSignature signature) {
  custom::check_registration(name, static_cast<bool>(factory));
  if (ops::table().find(name) != nullptr)
    throw Exception(ErrorKind::invalid_argument, cat("registering '", name, "': it is an operation of Moka's own"));
  ir::register_class(ir::RegisteredKind::operation, name,
                     {custom::factory_of("registered operation", std::move(factory)), std::move(signature.inputs),
                      std::move(signature.weights)});
}
bool unregister_operation(const std::string& name) { return ir::unregister_class(ir::RegisteredKind::operation, name); }

std::vector<std::string> registered_layers() { return ir::registered_names(ir::RegisteredKind::layer); }
std::vector<std::string> registered_operations() { return ir::registered_names(ir::RegisteredKind::operation); }

}  // namespace moka
