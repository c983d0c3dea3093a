// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "devices/gpu/common/product.h"
#include "ops/common/recurrent.h"

/// Shared by the kernels of recurrent layers and by those of their gradients.
namespace moka::devices::gpu {

constexpr int64_t kMostSteps = 4096;  // each is a dispatch or a few

Function function_of(const ops::Gate& g);

/// The products of steps with weight_hh [gates * hidden, hidden], all of float32. `gates` rows of it are a gate's.
struct StepProducts {
  const Features* card;
  int64_t steps, batch, hidden;
  int gates;

  int64_t state() const { return batch * hidden; }
  int64_t step_gates() const { return gates * state(); }
  int64_t weights() const { return gates * hidden * hidden; }
  /// z = h times the weights of `count` gates from `first` on, plus bias and addend, which may be absent; z and the
  /// addend: [rows, gates * hidden], h: [rows, hidden].
  Status ahead(Recorder& recorder, int64_t rows, int first, int count, const Use& h, const Use& weight, Use bias,
               Use addend, const Use& z) const;
  /// dh = dz [batch, gates * hidden] times the transposed weights of these gates, plus an addend, which may be absent.
  Status back(Recorder& recorder, int first, int count, const Use& dz, const Use& weight, const Use& addend,
              const Use& dh) const;
  /// Why the device cannot run it; empty: it can.
  std::string refusal() const;
  double multiply_adds() const { return 2.0 * static_cast<double>(steps * step_gates()) * static_cast<double>(hidden); }
  /// The groups of a shader that computes one unit of a row in each invocation.
  Groups lines() const { return CommandRecorder::lines(static_cast<uint64_t>(state())); }

 private:
  ProductKernel ahead_of(int64_t rows, int count) const;
  ProductKernel back_of(int count) const;
};

/// Sizes of moka_lstm_gradient and its like, whose inputs `params` and outputs must be of float32. Otherwise sets
/// `refusal`.
std::optional<StepProducts> step_products(const MatchCall& m, int gates, std::initializer_list<std::string_view> params,
                                          std::string& refusal);
/// Copies the states before each step: initial_h, then those of y, if it has a buffer.
void copy_states(Recorder& recorder, const StepProducts& s, const Use& initial_h, const Use& y, const Use& states);
/// An input that may be absent (index -1).
inline Use optional_use(const RecordArgs& args, int i) { return i < 0 ? Use{} : Use::read(view(args.in, i)); }
/// What a binding reads, or as little as possible of `other` if it is absent.
inline Use or_unused(const Use& u, const Use& other) { return u.buffer != nullptr ? u : other.unused(); }

}  // namespace moka::devices::gpu
