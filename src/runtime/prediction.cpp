// SPDX-License-Identifier: Apache-2.0
#include "runtime/prediction.h"

#include <algorithm>

#include "runtime/bind_frame.h"
#include "runtime/bound_states.h"
#include "runtime/model.h"
#include "trace/data_copy.h"

namespace moka::runtime {

namespace {

/// Why an array is not used where it lies.
std::string conversion(const ir::ArrayView& from, ir::DType to) {
  const std::string strides = from.strides.empty() ? "" : "its strides are not row-major";
  if (from.dtype == to) return strides;
  return cat(from.dtype, " to ", to, strides.empty() ? "" : ", ", strides);
}

void record(const trace::DataCopy& copy, std::string_view name, const ir::TensorView& to, const std::string& reason) {
  if (const auto bytes = ir::storage_bytes(to.dtype, to.shape); bytes.ok())
    copy.record(name, "convert", *bytes, reason);
}

Status bind_array(const ir::ArrayView& value, const ir::Type& type, std::string_view name, size_t i, Session& s) {
  if (value.strides.empty() && value.dtype == type.dtype()) {
    s.frame->set_input(i, value.data);
    return {};
  }
  const trace::DataCopy copy;
  const ir::TensorView to{type.dtype(), type.shape(), MOKA_TRY(s.staging_for(i, type))};
  ir::copy_array(value, to);
  s.frame->set_input(i, to.data);
  if (copy.is_recorded() && !value.shape.empty()) record(copy, name, to, conversion(value, to.dtype));
  return {};
}

Status bind_picture(const Picture& value, const ir::Type& type, std::string_view name, size_t i, Session& s) {
  if (s.frame->takes_pixels(i)) {
    s.frame->set_pixels(i, value.pixels);
    if (!s.frame->takes_planes(i)) return {};
  }
  if (const void* plane = kernel::plane_of(value.pixels, value.planes, type.dtype()); plane != nullptr) {
    s.frame->set_input(i, plane);
    return {};
  }
  const trace::DataCopy copy;
  const ir::TensorView to{type.dtype(), type.shape(), MOKA_TRY(s.staging_for(i, type))};
  kernel::unpack(value.pixels, value.planes, to);
  s.frame->set_input(i, to.data);
  if (!copy.is_recorded()) return {};
  const ir::DType element = kernel::element_of(value.pixels.format);
  const bool is_plane = value.planes == kernel::PlaneOrder::gray && ir::is_float(element);
  record(copy, name, to,
         is_plane && element == to.dtype ? "its rows have gaps"
         : is_plane                      ? cat(element, " to ", to.dtype)
                                         : cat("pixels to planes of ", to.dtype));
  return {};
}

Status bind_absent(const Absent& value, const ir::Type& type, size_t i, Session& s) {
  if (type.dtype() == ir::DType::string) {
    auto& strings = s.string_staging[i];
    strings.assign(static_cast<size_t>(type.shape().count()), {});
    s.frame->set_input(i, strings.data());
    return {};
  }
  const ir::TensorView to{type.dtype(), type.shape(), MOKA_TRY(s.staging_for(i, type))};
  for (int64_t k = 0; k < to.count(); k++) ir::store_f64(to, k, value.fill);
  s.frame->set_input(i, to.data);
  return {};
}

Status bind_input(const InputValue& value, const ir::Type& type, std::string_view name, size_t i, Session& s) {
  if (const auto* array = std::get_if<ir::ArrayView>(&value)) return bind_array(*array, type, name, i, s);
  if (const auto* picture = std::get_if<Picture>(&value)) return bind_picture(*picture, type, name, i, s);
  if (const auto* frame = std::get_if<const FittedFrame*>(&value)) return bind_frame(**frame, type, name, i, s);
  if (const auto* absent = std::get_if<Absent>(&value)) return bind_absent(*absent, type, i, s);
  if (const auto* strings = std::get_if<const std::string*>(&value))
    s.frame->set_input(i, *strings);
  else
    s.frame->set_input(i, std::get<const ir::Dict*>(value));
  return {};
}

/// `shape` of an output, or the described shape if it has the same number of elements.
ir::Shape described_shape(const import::FeatureDescription& f, const ir::Shape& shape) {
  if (f.kind != import::FeatureKind::multi_array || f.array.shape.empty()) return shape;
  const auto described = ir::Shape::make(f.array.shape);
  if (!described.ok()) return shape;
  const auto count = described->checked_count();
  return count.ok() && *count == shape.count() ? *described : shape;
}

/// The type of the elements that the caller gets; none: what is computed is never used as it is.
ir::DType element_of(const import::FeatureDescription& f) {
  if (f.kind == import::FeatureKind::multi_array) return f.array.dtype;
  const bool is_half = f.kind == import::FeatureKind::image && f.image.color == import::ColorSpace::grayscale_float16;
  return is_half ? ir::DType::fp16 : ir::DType::none;
}

/// Whether a tensor is one plane of an image.
bool is_plane(const ir::Shape& shape) {
  constexpr int64_t kMostPixels = 65536;
  const int rank = shape.rank();
  if (rank < 2) return false;
  for (int i = 0; i < rank - 2; i++)
    if (shape[i] != 1) return false;
  return shape[rank - 2] > 0 && shape[rank - 2] <= kMostPixels && shape[rank - 1] > 0 && shape[rank - 1] <= kMostPixels;
}

/// Has output `i` computed in the memory that is asked for, where it fits.
Status place_output(const OutputMemory& memory, const import::FeatureDescription& f, bool takes_described_shapes,
                    size_t i, Session& s) {
  if (memory.kind == OutputMemory::Kind::session) return {};
  const ir::TensorView* view = s.frame->placeable_output(i);
  if (view == nullptr || view->dtype != element_of(f) || view->dtype == ir::DType::string || view->shape.rank() == 0)
    return {};
  const bool is_image = f.kind == import::FeatureKind::image;
  if (is_image && !is_plane(view->shape)) return {};
  if (memory.kind == OutputMemory::Kind::own) {
    ir::Tensor own = MOKA_TRY_IN(ir::Tensor::uninitialized(view->dtype, view->shape), cat("output '", f.name, "'"));
    if (own.data() == nullptr) return {};
    s.frame->place_output(i, own.mutable_data());
    s.placed.push_back({i, own.owner()});
    return {};
  }
  const ir::Shape shape = takes_described_shapes ? described_shape(f, view->shape) : view->shape;
  const auto dims = is_image ? shape.dims().last(2) : shape.dims();
  if (!std::equal(dims.begin(), dims.end(), memory.shape.begin(), memory.shape.end())) return {};
  s.frame->place_output(i, memory.data);
  s.placed.push_back({i, nullptr});
  return {};
}

const Session::Placed* find_placed(const Session& s, size_t output) {
  for (const Session::Placed& p : s.placed)
    if (p.output == output) return &p;
  return nullptr;
}

}  // namespace

Status Model::compute(const PredictionRequest& request, BoundStates& states, Session& s) const {
  const bool may_replay = may_replay_on(s);
  s.frame->set_saves_states(request.stop != nullptr && !function().states.empty() && s.frame->has_straight_steps());
  for (size_t i = 0; i < request.inputs.size(); i++) {
    const std::string& name = feature(i).name;
    if (StateValue* const* state = std::get_if<StateValue*>(&request.inputs[i]))
      MOKA_TRY(states.bind(name, **state, *s.frame, i, {may_replay, request.stop != nullptr}));
    else
      MOKA_TRY(bind_input(request.inputs[i], request.types[i], name, i, s));
  }
  for (size_t i = 0; i < request.outputs.size(); i++)
    MOKA_TRY(place_output(request.outputs[i], function().outputs[i], request.takes_described_shapes, i, s));
  s.context.trace = request.trace;
  s.context.is_recorded = request.is_recorded;
  s.context.stop = request.stop;
  s.context.capture = request.capture;
  return run(s);
}

Prediction Model::predict(const PredictionRequest& request) const {
  Prediction out(*this, request.takes_described_shapes);
  BoundStates states;
  for (auto session = acquire(request);;) {
    if (!session.ok()) {
      out.status_ = std::move(session).error();
      return out;
    }
    Session& s = **session;
    Status status = compute(request, states, s);
    const bool is_replayed = !status.ok() && may_replay_on(s) && is_fault(status.error());
    if (status.ok())
      states.computed();
    else
      states.failed(*s.frame, status.error(), is_replayed);
    if (!is_replayed) {
      out.session_ = std::move(*session);
      out.status_ = std::move(status);
      return out;
    }
    if (request.trace != nullptr) request.trace->restart();
    if (request.capture != nullptr) request.capture->restart();
    session = acquire_instead(std::move(*session), request, status.error());
  }
}

Prediction::~Prediction() {
  if (session_ == nullptr) return;
  for (const Session::Placed& p : session_->placed) session_->frame->place_output(p.output, nullptr);
  session_->placed.clear();
  model_->release(std::move(session_));
}

ir::TensorView Prediction::output(size_t i) const {
  ir::TensorView view = session_->frame->output(i);
  if (takes_described_shapes_) view.shape = described_shape(model_->function().outputs[i], view.shape);
  return view;
}

bool Prediction::is_in_given(size_t i) const {
  const Session::Placed* placed = find_placed(*session_, i);
  return placed != nullptr && placed->memory == nullptr;
}

std::shared_ptr<const void> Prediction::memory(size_t i) const {
  const Session::Placed* placed = find_placed(*session_, i);
  return placed != nullptr ? placed->memory : nullptr;
}

}  // namespace moka::runtime
