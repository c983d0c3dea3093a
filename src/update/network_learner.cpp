// SPDX-License-Identifier: Apache-2.0
#include "update/network_learner.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "ir/inline.h"
#include "ir/specialize.h"
#include "kernel/parallel.h"
#include "update/cut.h"

namespace moka::update {

namespace {

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

/// A copy that may be changed. It shares the weights.
Result<import::ImportedModel> copy_of(const import::ImportedModel& model) {
  ir::Program program = MOKA_TRY(ir::copy_program(model.program, ops::table(), nullptr));
  return import::ImportedModel{std::move(program), model.description, model.sequences, model.sized};
}

}  // namespace

Result<std::unique_ptr<NetworkLearner>> NetworkLearner::make(const format::ModelFile& file,
                                                             const import::UpdateDescription& update, Options options,
                                                             size_t examples, Read read) {
  std::unique_ptr<NetworkLearner> out(new NetworkLearner(std::move(options), std::move(read)));
  out->loss_ = update.losses.at(0);
  out->kept_.resize(examples);
  import::ImportOptions how;
  how.budget = out->options_.compile.plan.budget;
  how.examples = true;
  out->head_ = MOKA_TRY(import::import_model(file, how));
  ir::Function& f = *out->head_.program.functions[0];
  std::vector<std::string> weights;
  for (const auto& layer : update.layers)
    weights.insert(weights.end(), layer.parameters.begin(), layer.parameters.end());
  MOKA_TRY(runtime::mark_parameters(f, weights, ops::table()));
  // The front computes what the loss reads.
  if (const auto read = between(f); std::find(read.begin(), read.end(), f.body().outputs()[0]) != read.end())
    return fail(ErrorCode::invalid_argument, "the loss '", out->loss_.name, "' depends on no updatable layer");
  out->front_model_ = MOKA_TRY(copy_of(out->head_));
  MOKA_TRY(keep_front(out->front_model_));
  MOKA_TRY(keep_head(out->head_));
  for (const auto& input : out->front_model_.description.functions[0].inputs)
    out->is_rank5_.push_back(input.array.takes_rank5);
  out->front_ = MOKA_TRY(runtime::Model::compile(MOKA_TRY(copy_of(out->front_model_)), out->options_.compile));
  return out;
}

/// The types of what the head reads.
Result<std::vector<ir::Type>> NetworkLearner::between_types(const std::vector<ir::Type>& example, int64_t rows) const {
  import::ImportedModel model = MOKA_TRY(copy_of(front_model_));
  ir::Function& f = *model.program.functions[0];
  std::vector<ir::Type> inputs = example;
  for (size_t i = 0; i < inputs.size(); i++) {
    const int axis = is_rank5_[i] ? 1 : 0;
    ir::Shape shape = inputs[i].shape();
    if (is_rank5_[i] && shape[axis] != 1)
      return fail(ErrorCode::invalid_argument, "input '", f.body().inputs()[i]->name, "': expected one example, got ",
                  shape[axis], " in the shape ", shape);
    if (shape.rank() > axis && shape[axis] == 1) shape[axis] = rows;
    inputs[i] = ir::Type::tensor(inputs[i].dtype(), shape);
  }
  MOKA_TRY(ir::specialize(f, inputs, ops::table()));
  std::vector<ir::Type> out;
  for (const ir::Value* v : f.body().outputs()) out.push_back(v->type);
  return out;
}

Result<ir::Type> NetworkLearner::output_type(const std::vector<ir::Type>& between) const {
  import::ImportedModel model = MOKA_TRY(copy_of(head_));
  ir::Function& f = *model.program.functions[0];
  MOKA_TRY(ir::specialize(f, between, ops::table()));
  return f.body().outputs()[0]->type;
}

namespace {

/// The axis whose size is in proportion to the number of examples.
std::optional<int> axis_that_doubles(const ir::Type& one, const ir::Type& two) {
  std::optional<int> out;
  if (!one.is_concrete() || !two.is_concrete() || one.rank() != two.rank()) return out;
  for (int k = 0; k < one.rank(); k++) {
    if (one.shape()[k] == two.shape()[k]) continue;
    if (out || two.shape()[k] != 2 * one.shape()[k]) return std::nullopt;
    out = k;
  }
  return out;
}

Error no_axis(const ir::Type& type) {
  return fail(ErrorCode::unsupported, "the network has no place for the examples of a mini-batch in a value of type ",
              type, ", which an updatable layer or the loss reads; expected a first dimension of 1");
}

ir::Type with_rows(const ir::Type& one, int axis, int64_t rows) {
  ir::Shape shape = one.shape();
  shape[axis] *= rows;
  return ir::Type::tensor(one.dtype(), shape);
}

}  // namespace

/// An example has one class.
Status NetworkLearner::check_positions(const ir::Type& one) const {
  const auto dims = one.shape().dims();
  if (loss_.kind == import::LossLayer::Kind::mean_squared_error ||
      std::count_if(dims.begin(), dims.end(), [](int64_t d) { return d != 1; }) <= 1)
    return {};
  return fail(ErrorCode::unsupported, "loss '", loss_.name, "': categorical cross entropy compares one class with the ",
              "probabilities of an example, and '", loss_.input, "' has several rows of them: expected one dimension ",
              "that is not 1, got the shape ", one.shape(),
              "; an LSTM that gives the output of its last step only gives one row");
}

Result<const NetworkLearner::Layout*> NetworkLearner::layout(const std::vector<ir::Type>& example, size_t rows) {
  for (const Layout& l : layouts_)
    if (l.rows == rows && l.inputs == example) return &l;
  const auto n = static_cast<int64_t>(rows);
  auto one = MOKA_TRY(between_types(example, 1));
  const auto two = between_types(example, 2);
  Layout out{example, rows, {}, {}};
  std::vector<ir::Type> single, pair, all;
  for (size_t i = 0; i < one.size(); i++) {
    if (one[i].is_concrete() && one[i].rank() == 1) one[i] = ir::Type::tensor(one[i].dtype(), {1, one[i].shape()[0]});
    const ir::Shape& shape = one[i].shape();
    // The front may fold steps of a sequence into the first axis. It may also fix the number of examples, as it only
    // sees one.
    std::optional<int> axis = two.ok() ? axis_that_doubles(one[i], (*two)[i]) : std::nullopt;
    if (axis && *axis > 0 && (one[i].rank() < 3 || *axis > 1 || shape[1] != 1)) axis.reset();
    if (!axis && one[i].is_concrete() && one[i].rank() > 0)
      for (const int k : {one[i].rank() == 5 ? 1 : 0, 0})
        if (!axis && shape[k] == 1) axis = k;
    if (!axis) return no_axis(one[i]);
    single.push_back(one[i]);
    pair.push_back(with_rows(one[i], *axis, 2));
    all.push_back(with_rows(one[i], *axis, n));
    out.between.push_back({all.back(), *axis, shape[*axis]});
  }
  const ir::Type of_one = MOKA_TRY(output_type(single)), of_two = MOKA_TRY(output_type(pair));
  const auto axis = axis_that_doubles(of_one, of_two);
  const ir::Type of_all = MOKA_TRY(output_type(all));
  if (!axis || of_all != with_rows(of_one, *axis, n)) return no_axis(of_one);
  out.output = {of_all, *axis, of_one.shape()[*axis]};
  MOKA_TRY(check_positions(of_one));
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
    out->between.push_back(MOKA_TRY(ir::Tensor::copy_of(done.output(i))));
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
    for (size_t k = 0; k < out[0]->types.size(); k++)
      if (out[i]->types[k] != out[0]->types[k])
        return fail(ErrorCode::data, "example ", examples[i], ": input '", front_->feature(k).name, "': expected ",
                    out[0]->types[k].shape(), ", the shape in example ", examples[0], " of the same mini-batch, got ",
                    out[i]->types[k].shape(), "; mini-batches of 1 take any shape");
  return out;
}

Result<int64_t> NetworkLearner::target_size() {
  const size_t first[] = {0};
  const auto rows = MOKA_TRY(gather(first));
  return MOKA_TRY(layout(rows[0]->types, 1))->output.type.shape().count();
}

Status NetworkLearner::check_target(const ir::Tensor& target, int64_t expected) const {
  const auto refuse = [&](const auto&... text) {
    return fail(ErrorCode::invalid_argument, "'", loss_.training_input, "': expected ", text...);
  };
  const int64_t count = target.count();
  if (loss_.kind == import::LossLayer::Kind::mean_squared_error) {
    if (count == expected) return {};
    return refuse(expected, " numbers, which the loss compares with '", loss_.input, "', got ", count);
  }
  if (count != 1) return refuse("the index of a class, got ", count, " numbers");
  if (target.as<int32_t>()[0] < expected) return {};
  return refuse("a class from 0 to ", expected - 1, ", got ", target.as<int32_t>()[0]);
}

Result<ir::Tensor> NetworkLearner::targets(const Layout& layout, std::span<const size_t> examples,
                                           std::span<const std::shared_ptr<const Computed>> rows) const {
  std::vector<const ir::Tensor*> parts;
  const auto n = static_cast<int64_t>(rows.size());
  const Stacked& output = layout.output;
  for (size_t i = 0; i < rows.size(); i++) {
    MOKA_TRY_IN(check_target(rows[i]->target, output.type.shape().count() / n), cat("example ", examples[i]));
    parts.push_back(&rows[i]->target);
  }
  const bool is_class = loss_.kind == import::LossLayer::Kind::categorical_cross_entropy;
  if (is_class) return stacked(ir::Type::tensor(ir::DType::int32, {n}), 0, 1, parts);
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
  arrays.emplace(loss_.target, MOKA_TRY(targets(layout, examples, rows)));
  if (trainer_ == nullptr) {
    training::TrainerOptions options;
    options.compile = options_.compile;
    options.program.optimizer = options_.optimizer;
    options.program.momentum = options_.momentum;
    const auto kind = loss_.kind == import::LossLayer::Kind::mean_squared_error
                          ? training::Loss::Kind::mean_squared_error
                          : training::Loss::Kind::cross_entropy;
    options.program.losses = {{kind, loss_.input, loss_.target}};
    trainer_ = MOKA_TRY(training::Trainer::make([this] { return copy_of(head_); }, types, std::move(options)));
  }
  return trainer_->step(arrays, numbers);
}

const std::map<std::string, ir::Tensor>& NetworkLearner::parameters() const {
  static const std::map<std::string, ir::Tensor> none;
  return trainer_ == nullptr ? none : trainer_->parameters();
}

}  // namespace moka::update
