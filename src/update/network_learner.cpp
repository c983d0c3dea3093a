#include "update/network_learner.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "ir/specialize.h"
#include "kernel/parallel.h"
#include "update/cut.h"

namespace moka::update {

namespace {

Result<ir::Tensor> copied(const ir::TensorView& view) {
  ir::Tensor out = MOKA_TRY(ir::Tensor::zeros(view.dtype, MOKA_TRY(ir::Shape::make(view.shape.dims()))));
  std::memcpy(out.mutable_data(), view.data, out.bytes());
  return out;
}

Status check_finite(const ir::Tensor& t) {
  if (t.dtype() != ir::DType::fp32) return {};
  for (const float v : t.as<float>())
    if (!std::isfinite(v)) return fail(ErrorCode::data, "expected finite numbers, got ", v);
  return {};
}

size_t bytes_of(std::span<const ir::Tensor> values) {
  size_t out = 0;
  for (const ir::Tensor& v : values) out += v.bytes();
  return out;
}

}  // namespace

Result<import::ImportedModel> NetworkLearner::import() const {
  import::ImportOptions options;
  options.budget = options_.compile.plan.budget;
  options.examples = true;
  import::ImportedModel model = MOKA_TRY(import::import_model(file_, options));
  MOKA_TRY(runtime::mark_parameters(*model.program.functions[0], patterns_, ops::table()));
  return model;
}

Result<std::unique_ptr<NetworkLearner>> NetworkLearner::make(format::ModelFile file,
                                                             const import::UpdateDescription& update, Options options,
                                                             size_t examples, Read read) {
  std::unique_ptr<NetworkLearner> out(new NetworkLearner(std::move(file), std::move(options), std::move(read)));
  for (const auto& layer : update.layers)
    out->patterns_.insert(out->patterns_.end(), layer.parameters.begin(), layer.parameters.end());
  out->loss_ = update.losses.at(0);
  out->kept_.resize(examples);
  import::ImportedModel front = MOKA_TRY(out->import());
  MOKA_TRY(keep_front(front));
  for (const auto& input : front.description.functions[0].inputs) out->axes_.push_back(input.array.takes_rank5 ? 1 : 0);
  runtime::CompileOptions compile = out->options_.compile;
  out->front_ = MOKA_TRY(runtime::Model::compile(std::move(front), compile));
  return out;
}

/// The types of what the head reads, and at last of its output.
Result<std::vector<ir::Type>> NetworkLearner::types(const std::vector<ir::Type>& example, int64_t rows) const {
  import::ImportedModel model = MOKA_TRY(import());
  ir::Function& f = *model.program.functions[0];
  std::vector<ir::Type> inputs = example;
  for (size_t i = 0; i < inputs.size(); i++) {
    ir::Shape shape = inputs[i].shape();
    if (shape[axes_[i]] != 1)
      return fail(ErrorCode::invalid_argument, "input '", f.body().inputs()[i]->name, "': expected one example, got ",
                  shape[axes_[i]], " in the shape ", shape);
    shape[axes_[i]] = rows;
    inputs[i] = ir::Type::tensor(inputs[i].dtype(), shape);
  }
  std::vector<ir::Value*> values = parts_of(f).between;
  values.push_back(f.body().outputs()[0]);
  MOKA_TRY(ir::specialize(f, inputs, ops::table()));
  std::vector<ir::Type> out;
  for (const ir::Value* v : values) out.push_back(v->type);
  return out;
}

Result<const NetworkLearner::Layout*> NetworkLearner::layout(const std::vector<ir::Type>& example, size_t rows) {
  for (const Layout& l : layouts_)
    if (l.rows == rows && l.inputs == example) return &l;
  const auto one = MOKA_TRY(types(example, 1)), two = MOKA_TRY(types(example, 2));
  const auto all = MOKA_TRY(types(example, static_cast<int64_t>(rows)));
  Layout out{example, rows, {}, {}};
  for (size_t i = 0; i < all.size(); i++) {
    const bool is_output = i + 1 == all.size();
    const auto refuse = [&] {
      return fail(ErrorCode::unsupported, "the network computes a value without an axis of examples: ", one[i],
                  " for one, ", two[i], " for two");
    };
    if (!one[i].is_concrete() || !all[i].is_concrete() || one[i].rank() != two[i].rank()) return refuse();
    Stacked s{all[i], -1, 1};
    for (int k = 0; k < one[i].rank(); k++) {
      if (one[i].shape()[k] == two[i].shape()[k]) continue;
      if (s.axis >= 0 || two[i].shape()[k] != 2 * one[i].shape()[k]) return refuse();
      s.axis = k;
      s.count = one[i].shape()[k];
    }
    if (s.axis < 0 || all[i].shape()[s.axis] != s.count * static_cast<int64_t>(rows)) return refuse();
    if (is_output)
      out.output = s;
    else
      out.between.push_back(s);
  }
  layouts_.push_back(std::move(out));
  return &layouts_.back();
}

namespace {

/// Puts the parts of all examples together.
Result<ir::Tensor> stacked(const ir::Type& type, int axis, int64_t count, std::span<const ir::Tensor* const> parts) {
  ir::Tensor out = MOKA_TRY(ir::Tensor::zeros(type.dtype(), type.shape()));
  const int rank = type.rank();
  const int64_t outer = type.shape().count(0, axis), inner = type.shape().count(axis + 1, rank);
  const size_t bytes =
      static_cast<size_t>(inner) * out.bytes() / static_cast<size_t>(std::max<int64_t>(out.count(), 1));
  const auto rows = static_cast<int64_t>(parts.size());
  auto* to = static_cast<std::byte*>(out.mutable_data());
  for (int64_t i = 0; i < outer * count; i++)
    for (int64_t r = 0; r < rows; r++, to += bytes)
      std::memcpy(to,
                  static_cast<const std::byte*>(parts[static_cast<size_t>(r)]->data()) + static_cast<size_t>(i) * bytes,
                  bytes);
  return out;
}

}  // namespace

Result<std::shared_ptr<const NetworkLearner::Computed>> NetworkLearner::compute(Example read) const {
  runtime::Prediction done = front_->predict({read.types, read.inputs, {}});
  MOKA_TRY(done.take_status());
  auto out = std::make_shared<Computed>();
  for (size_t i = 0; i < front_->function().outputs.size(); i++) {
    out->between.push_back(MOKA_TRY(copied(done.output(i))));
    MOKA_TRY(check_finite(out->between.back()));
  }
  out->types = std::move(read.types);
  out->target = std::move(read.target);
  return std::shared_ptr<const Computed>(std::move(out));
}

Result<std::vector<std::shared_ptr<const NetworkLearner::Computed>>> NetworkLearner::gather(
    std::span<const size_t> examples) {
  std::vector<std::shared_ptr<const Computed>> out(examples.size());
  std::vector<size_t> missing;
  for (size_t i = 0; i < examples.size(); i++)
    if ((out[i] = kept_[examples[i]]) == nullptr) missing.push_back(i);
  std::vector<Example> read(missing.size());
  for (size_t i = 0; i < missing.size(); i++)
    MOKA_TRY_IN(read_(examples[missing[i]], read[i]), cat("example ", examples[missing[i]]));
  std::vector<Status> results(missing.size());
  kernel::parallel_for(std::max(1, options_.compile.plan.threads), static_cast<int64_t>(missing.size()),
                       [&](int64_t i, int) {
                         const auto n = static_cast<size_t>(i);
                         auto computed = compute(std::move(read[n]));
                         if (computed.ok())
                           out[missing[n]] = std::move(*computed);
                         else
                           results[n] = std::move(computed).error().in(cat("example ", examples[missing[n]]));
                       });
  for (size_t i = 0; i < missing.size(); i++) {
    MOKA_TRY(std::move(results[i]));
    const auto& computed = out[missing[i]];
    const size_t bytes = bytes_of(computed->between) + computed->target.bytes();
    if (kept_bytes_ + bytes > options_.kept_bytes) continue;
    kept_bytes_ += bytes;
    kept_[examples[missing[i]]] = computed;
  }
  for (size_t i = 1; i < out.size(); i++)
    if (out[i]->types != out[0]->types)
      return fail(ErrorCode::data, "examples ", examples[0], " and ", examples[i],
                  " of one mini-batch have inputs of different sizes, ", out[0]->types[0], " and ", out[i]->types[0],
                  "; mini-batches of 1 take any");
  return out;
}

Result<ir::Tensor> NetworkLearner::targets(const Layout& layout,
                                           std::span<const std::shared_ptr<const Computed>> rows) const {
  std::vector<const ir::Tensor*> parts;
  for (const auto& row : rows) parts.push_back(&row->target);
  const auto n = static_cast<int64_t>(rows.size());
  if (loss_.kind == import::LossLayer::Kind::categorical_cross_entropy)
    return stacked(ir::Type::tensor(ir::DType::int32, {n}), 0, 1, parts);
  const Stacked& output = layout.output;
  const int64_t expected = output.type.shape().count() / n;
  for (const ir::Tensor* part : parts)
    if (part->count() != expected)
      return fail(ErrorCode::invalid_argument, "'", loss_.training_input, "': expected ", expected,
                  " numbers, which the loss compares with '", loss_.input, "', got ", part->count());
  return stacked(output.type, output.axis, output.count, parts);
}

Result<double> NetworkLearner::step(std::span<const size_t> examples, const training::Numbers& numbers) {
  const auto rows = MOKA_TRY(gather(examples));
  const Layout& layout = *MOKA_TRY(this->layout(rows[0]->types, rows.size()));
  std::map<std::string, ir::Tensor> arrays;
  std::vector<ir::Type> types;
  for (size_t i = 0; i < layout.between.size(); i++) {
    const Stacked& s = layout.between[i];
    std::vector<const ir::Tensor*> parts;
    for (const auto& row : rows) parts.push_back(&row->between[i]);
    arrays.emplace(front_->function().outputs[i].name, MOKA_TRY(stacked(s.type, s.axis, s.count, parts)));
    types.push_back(s.type);
  }
  arrays.emplace(loss_.target, MOKA_TRY(targets(layout, rows)));
  if (trainer_ == nullptr) {
    training::TrainerOptions options;
    options.compile = options_.compile;
    options.program.optimizer = options_.optimizer;
    options.program.momentum = options_.momentum;
    const auto kind = loss_.kind == import::LossLayer::Kind::mean_squared_error
                          ? training::Loss::Kind::mean_squared_error
                          : training::Loss::Kind::cross_entropy;
    options.program.losses = {{kind, loss_.input, loss_.target}};
    const auto import_head = [this]() -> Result<import::ImportedModel> {
      import::ImportedModel model = MOKA_TRY(import());
      MOKA_TRY(keep_head(model));
      return model;
    };
    trainer_ = MOKA_TRY(training::Trainer::make(import_head, types, std::move(options)));
  }
  return trainer_->step(arrays, numbers);
}

const std::map<std::string, ir::Tensor>& NetworkLearner::parameters() const {
  static const std::map<std::string, ir::Tensor> none;
  return trainer_ == nullptr ? none : trainer_->parameters();
}

}  // namespace moka::update
