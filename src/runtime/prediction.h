// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "ir/array_view.h"
#include "kernel/pixels.h"
#include "runtime/fitted_frame.h"
#include "runtime/sessions.h"
#include "runtime/state_value.h"

namespace moka::runtime {

class Model;

/// An input without a value: its numbers become `fill`, its strings empty.
struct Absent {
  double fill = 0;
};

/// A picture for an input of planes.
struct Picture {
  kernel::Pixels pixels;
  kernel::PlaneOrder planes;
};

/// The value of an input or of a state. An array has as many elements as the input, of any type. What it points to
/// outlives the prediction, which only reads it but for a state.
using InputValue =
    std::variant<Absent, ir::ArrayView, const std::string*, const ir::Dict*, Picture, const FittedFrame*, StateValue*>;

/// The memory in which an output is computed if the plan allows to choose it and the types agree. Otherwise it is the
/// session's.
struct OutputMemory {
  enum class Kind { session, own, given };
  Kind kind = Kind::session;
  void* data = nullptr;            ///< given: dense and row-major, of the described type
  std::span<const int64_t> shape;  ///< of `data`
};

struct PredictionRequest {
  const std::vector<ir::Type>& types;     ///< of the inputs and states of the function's body
  std::span<const InputValue> inputs;     ///< parallel to `types`
  std::span<const OutputMemory> outputs;  ///< parallel to FunctionDescription::outputs; empty: all the session's
  /// Outputs get their described shape where it has as many elements.
  bool takes_described_shapes = false;
  bool is_recorded = false;    ///< goes into the trace that is being written
  TraceSink* trace = nullptr;  ///< receives the steps
  bool is_observed = false;    ///< `trace` also receives the values that devices compute
  /// Ends it between steps. The states are then as they were before. May be null.
  const Stop* stop = nullptr;
  CaptureSink* capture = nullptr;  ///< receives what runs, and what devices tell of their commands
};

/// A prediction that has ended. Its outputs are valid while it exists, which its model outlives.
class Prediction {
 public:
  Prediction(Prediction&&) = default;
  ~Prediction();

  /// Whether it succeeded, and so has outputs. To be called once, first.
  Status take_status() { return std::move(status_); }
  /// False: there was no plan or no memory for it. Only the status may be asked for.
  bool is_planned() const { return session_ != nullptr; }
  ir::TensorView output(size_t i) const;
  const ir::Type& output_type(size_t i) const { return session_->frame->output_type(i); }
  /// Whether output `i` is in the memory that was given for it.
  bool is_in_given(size_t i) const;
  /// The owner of the memory of output `i`, which may outlive the prediction; nullptr: it may not.
  std::shared_ptr<const void> memory(size_t i) const;
  /// For the user: which devices failed.
  const std::vector<std::string>& remarks() const { return session_->remarks; }
  const std::shared_ptr<const plan::Plan>& plan() const { return session_->plan; }

 private:
  friend class Model;
  Prediction(const Model& model, bool takes_described_shapes)
      : model_(&model), takes_described_shapes_(takes_described_shapes) {}

  const Model* model_;
  bool takes_described_shapes_;
  std::unique_ptr<Session> session_;
  Status status_;
};

}  // namespace moka::runtime
