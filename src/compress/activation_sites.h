// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "compress/value_ranges.h"
#include "editing/program.h"

namespace moka::compress {

/// Which values of a function become integers.
struct ActivationSites {
  /// By an operation's first output: the parameters that become integers.
  std::map<std::string, std::set<std::string>> operands;
  std::set<std::string> quantized;   ///< values
  std::set<std::string> everywhere;  ///< quantized values whose rounded value other operations read, too
};

/// `ranges` has all values that can be quantized.
Result<ActivationSites> activation_sites(const editing::ProgramFunction& function, const ValueRanges& ranges,
                                         const Activations& activations);

/// Completes the measured ranges. A cast whose output was not measured gets the range of its input. The output of a
/// concatenation and those of its inputs with finite ranges share one range, which covers them all.
Status complete_ranges(const editing::ProgramFunction& function, ValueRanges& ranges);

}  // namespace moka::compress
