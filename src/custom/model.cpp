// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <atomic>
#include <cstring>

#include "boundary/arrays.h"
#include "boundary/descriptions.h"
#include "boundary/errors.h"
#include "boundary/inputs.h"
#include "boundary/outputs.h"
#include "boundary/path.h"
#include "custom/layer.h"
#include "import/registered_models.h"

namespace moka {

CustomModel::~CustomModel() = default;

namespace custom {

namespace {

using ir::Type;

/// Writes the pixels of `image` as a tensor with one plane per channel.
Status write_image(const import::FeatureDescription& f, const Image& image, const ir::TensorView& to) {
  const bool gray =
      f.image.color == import::ColorSpace::grayscale || f.image.color == import::ColorSpace::grayscale_float16;
  const int64_t channels = gray ? 1 : 3, pixels = image.width * image.height;
  const bool gray_given = kernel::is_gray(static_cast<kernel::PixelFormat>(image.format));
  if (image.format == PixelFormat::gray_float16) return write_image(f, converted(image, PixelFormat::gray_float32), to);
  if (gray != gray_given || to.count() != channels * pixels || to.shape.rank() < 2 ||
      to.shape[to.shape.rank() - 1] != image.width)
    return fail(ErrorCode::data, "output '", f.name, "': expected ", boundary::to_public(f).formatted_type(), ", got ",
                describe(FeatureValue(image)));
  const size_t step = bytes_per_pixel(image.format);
  const bool first_is_blue = image.format == PixelFormat::bgra8;
  const bool wants_blue = f.image.color == import::ColorSpace::bgr;
  for (int64_t y = 0; y < image.height; y++) {
    const uint8_t* p = image.pixels.get() + y * image.row_bytes;
    for (int64_t x = 0; x < image.width; x++, p += step) {
      const int64_t at = y * image.width + x;
      if (image.format == PixelFormat::gray_float32) {
        float v;
        std::memcpy(&v, p, sizeof v);
        ir::store_f64(to, at, static_cast<double>(v));
      } else if (gray) {
        ir::store_f64(to, at, p[0]);
      } else {
        for (int64_t c = 0; c < 3; c++) ir::store_f64(to, c * pixels + at, p[first_is_blue == wants_blue ? c : 2 - c]);
      }
    }
  }
  return {};
}

/// The type of a value that a model gave for a feature.
Result<Type> type_of(const import::FeatureDescription& f, const FeatureValue& value) {
  const Type declared = MOKA_TRY(import::boundary_type(f, true));
  if (!declared.is_tensor() || declared.is_concrete()) return declared;
  if (const auto* a = std::get_if<MultiArray>(&value))
    return Type::tensor(declared.dtype(), MOKA_TRY(ir::Shape::make(a->shape())));
  if (const auto* s = std::get_if<StringSequence>(&value))
    return Type::tensor(declared.dtype(), ir::Shape{static_cast<int64_t>(s->size())});
  if (const auto* s = std::get_if<Int64Sequence>(&value))
    return Type::tensor(declared.dtype(), ir::Shape{static_cast<int64_t>(s->size())});
  if (const auto* i = std::get_if<Image>(&value)) {
    ir::Shape shape = declared.shape();
    if (shape.rank() < 2) return declared;
    shape[shape.rank() - 2] = i->height;
    shape[shape.rank() - 1] = i->width;
    return Type::tensor(declared.dtype(), shape);
  }
  return declared;
}

void write_dictionary(const Dictionary& from, bool string_keys, ir::Dict& to) {
  to = {};
  to.string_keys = string_keys;
  for (const auto& [key, v] : from.strings) {
    to.text_keys.push_back(key);
    to.values.push_back(v);
  }
  for (const auto& [key, v] : from.ints) {
    if (string_keys)
      to.text_keys.push_back(std::to_string(key));
    else
      to.int_keys.push_back(key);
    to.values.push_back(v);
  }
}

Status write(const import::FeatureDescription& f, const FeatureValue& value, const ir::TensorView& to) {
  const auto wrong = [&] {
    return fail(ErrorCode::data, "output '", f.name, "': expected ", boundary::to_public(f).formatted_type(), ", got ",
                describe(value));
  };
  const auto check = [&]() -> Status {
    Status status = boundary::check_numbers(f, to.dtype, value);
    if (status.ok()) return status;
    return boundary::reclassified(std::move(status).error(), ErrorCode::data).in(cat("output '", f.name, "'"));
  };
  const auto write_number = [&]() -> Status {
    MOKA_TRY(check());
    if (const auto* n = std::get_if<int64_t>(&value)) {
      ir::store_i64(to, 0, *n);
    } else if (const auto* x = std::get_if<double>(&value)) {
      ir::store_f64(to, 0, *x);
    } else {
      return wrong();
    }
    return {};
  };
  switch (f.kind) {
    case import::FeatureKind::int64:
      if (!std::holds_alternative<int64_t>(value)) return wrong();
      return write_number();
    case import::FeatureKind::float64: return write_number();
    case import::FeatureKind::string:
      if (const auto* s = std::get_if<std::string>(&value)) {
        *to.as<std::string>() = *s;
        return {};
      }
      return wrong();
    case import::FeatureKind::dictionary:
      if (const auto* d = std::get_if<Dictionary>(&value)) {
        if (!f.string_keys && !d->strings.empty()) return wrong();
        write_dictionary(*d, f.string_keys, to.dict());
        return {};
      }
      return wrong();
    case import::FeatureKind::sequence:
      if (const auto* s = std::get_if<StringSequence>(&value);
          s != nullptr && f.string_keys && static_cast<int64_t>(s->size()) == to.count()) {
        std::copy(s->begin(), s->end(), to.as<std::string>());
        return {};
      }
      if (const auto* s = std::get_if<Int64Sequence>(&value);
          s != nullptr && !f.string_keys && static_cast<int64_t>(s->size()) == to.count()) {
        std::copy(s->begin(), s->end(), to.as<int64_t>());
        return {};
      }
      return wrong();
    case import::FeatureKind::image:
      if (const auto* i = std::get_if<Image>(&value); i != nullptr && i->pixels != nullptr)
        return write_image(f, *i, to);
      return wrong();
    case import::FeatureKind::multi_array:
    case import::FeatureKind::state: {
      const auto* a = std::get_if<MultiArray>(&value);
      if (a == nullptr) return to.count() == 1 ? write_number() : wrong();
      if (a->count() != to.count() || (a->data() == nullptr && a->count() > 0)) return wrong();
      MOKA_TRY(check());
      ir::copy_array(boundary::view_of(*a), to);
      return {};
    }
  }
  return wrong();
}

/// A custom model as an operation of a program. If only the prediction tells the size of a result, `infer` predicts and
/// keeps the results for `run` on the same thread.
class ModelStep final : public ir::Registered {
 public:
  ModelStep(std::string what, std::unique_ptr<CustomModel> model, import::FunctionDescription function)
      : what_(std::move(what)), model_(std::move(model)), function_(std::move(function)) {}

  const std::string& what() const override { return what_; }

  Result<std::vector<Type>> infer(std::span<const ir::Arg> in, std::span<const Type>) const override {
    std::vector<Type> types;
    bool concrete = true;
    for (const import::FeatureDescription& f : function_.outputs) {
      types.push_back(MOKA_TRY(import::boundary_type(f, true)));
      concrete &= !types.back().is_tensor() || (types.back().is_ranked() && types.back().is_concrete());
    }
    if (in.size() != function_.inputs.size())
      return fail(ErrorCode::invalid_argument, "expected ", function_.inputs.size(), " inputs, got ", in.size());
    const bool known = std::all_of(in.begin(), in.end(), [](const ir::Arg& a) { return a.value != nullptr; });
    if (concrete || !known) return types;
    std::vector<ir::TensorView> views;
    for (const ir::Arg& a : in) views.push_back(*a.value);
    Pending& pending = pending_of_thread();
    pending = {};
    Features outputs = MOKA_TRY(predict(views));
    for (size_t i = 0; i < types.size(); i++)
      types[i] = MOKA_TRY_IN(type_of(function_.outputs[i], *outputs.find(function_.outputs[i].name)),
                             cat("output '", function_.outputs[i].name, "'"));
    pending = {number_, std::move(outputs)};
    return types;
  }

  Result<ir::RegisteredPlan> plan(std::span<const Type>, std::span<const Type>, int) const override {
    return ir::RegisteredPlan{};
  }

  Status run(const ir::RegisteredCall& call) const override {
    Pending& pending = pending_of_thread();
    Features outputs;
    if (pending.of == number_)
      outputs = std::exchange(pending, {}).outputs;
    else
      outputs = MOKA_TRY(predict(call.in));
    for (size_t i = 0; i < function_.outputs.size(); i++)
      MOKA_TRY_IN(write(function_.outputs[i], *outputs.find(function_.outputs[i].name), call.out[i]), what_);
    return {};
  }

 private:
  struct Pending {
    uint64_t of = 0;  ///< a number instead of an address, because addresses are reused
    Features outputs;
  };
  static Pending& pending_of_thread() {
    thread_local Pending pending;
    return pending;
  }

  static uint64_t next() {
    static std::atomic<uint64_t> last{0};
    return ++last;
  }

  Result<Features> predict(std::span<const ir::TensorView> in) const {
    Features inputs, outputs;
    for (size_t i = 0; i < in.size(); i++) {
      const import::FeatureDescription& f = function_.inputs[i];
      const Type type = in[i].dtype == ir::DType::none ? MOKA_TRY(import::boundary_type(f, true))
                                                       : Type::tensor(in[i].dtype, in[i].shape);
      MOKA_TRY_IN(boundary::store_output(f, type, in[i], inputs[f.name]), what_);
    }
    MOKA_TRY(guarded(what_, "predict", [&] { outputs = model_->predict(inputs); }));
    for (const import::FeatureDescription& f : function_.outputs)
      if (outputs.find(f.name) == nullptr)
        return fail(ErrorCode::data, what_, ", predict: expected a value for the output '", f.name, "', got none");
    return outputs;
  }

  const uint64_t number_ = next();
  const std::string what_;
  const std::unique_ptr<CustomModel> model_;
  const import::FunctionDescription function_;
};

}  // namespace

}  // namespace custom

void register_model(const std::string& name, ModelFactory factory) {
  custom::check_registration(name, static_cast<bool>(factory));
  const auto make =
      [factory = std::move(factory)](import::CustomModelSpec spec) -> Result<std::shared_ptr<const ir::Registered>> {
    const std::string what = cat("custom model '", spec.name, "'");
    CustomModelInfo info{spec.name, spec.description, {}, boundary::to_public(spec.function)};
    for (const auto& [key, value] : spec.parameters)
      info.parameters.emplace(key, MOKA_TRY_IN(custom::to_parameter(value), cat(what, ", parameter '", key, "'")));
    std::unique_ptr<CustomModel> model;
    MOKA_TRY(custom::guarded(what, "its factory", [&] { model = factory(info); }));
    if (model == nullptr) return fail(ErrorCode::data, what, ", its factory: it made no model");
    return std::shared_ptr<const ir::Registered>(
        std::make_shared<custom::ModelStep>(what, std::move(model), std::move(spec.function)));
  };
  import::register_model(name, {make, {}});
}

void register_model_file(const std::string& name, const std::filesystem::path& path) {
  if (name.empty() || path.empty())
    throw Exception(ErrorKind::invalid_argument, cat("registering '", name, "': expected a name and a path"));
  import::register_model(name, {nullptr, boundary::native(path)});
}

bool unregister_model(const std::string& name) { return import::unregister_model(name); }
std::vector<std::string> registered_models() { return import::registered_model_names(); }
void set_linked_model_folders(const std::vector<std::filesystem::path>& folders) {
  import::set_linked_folders(boundary::native(folders));
}

}  // namespace moka
