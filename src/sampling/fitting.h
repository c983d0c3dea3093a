// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "base/error.h"
#include "moka/description.h"
#include "moka/feature.h"

/// Sizes with which a model can run, found without numbers: only the types of its operations are inferred.
namespace moka::sampling {

/// Sizes of the inputs with which the types of all operations agree.
struct Fitting {
  FunctionDescription function;  ///< with these sizes; the usual ones when they fit or no others are found
  bool is_usual = true;
  std::string refusal;  ///< the error of a prediction with the usual sizes; empty: some sizes fit
  std::string tried;    ///< "; other sizes fit no better (tried: sequences of 1 to 512; not all allowed sizes)"
  ErrorCode code = ErrorCode::invalid_argument;
};

/// What the search asks a model.
struct FittedModel {
  const FunctionDescription& function;
  bool sequences_only = false;  ///< it takes inputs of rank 5 alone
  std::function<bool(std::string_view input)> takes_rank5;
  /// The error of a prediction with inputs of which only the types count. Adds to `visited` how many operations it
  /// cost.
  std::function<Status(const Features& inputs, int64_t& visited)> infers;
  std::function<Error(Error)> explained;  ///< an error of the usual sizes, with its likely cause
};
/// Visits a limited number of operations, the same on every machine.
Fitting fit(const FittedModel& model);

}  // namespace moka::sampling
