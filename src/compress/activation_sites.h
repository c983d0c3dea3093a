#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "compress/activations.h"
#include "editing/program.h"

namespace moka::compress {

/// Which values of a function become integers.
struct ActivationSites {
  /// The parameters of operations that read integers, by the operation's first output.
  std::map<std::string, std::set<std::string>> operands;
  std::set<std::string> quantized;   ///< values
  std::set<std::string> everywhere;  ///< those of which other operations read the rounded value, too
};

/// `ranges` has all values that can be quantized.
Result<ActivationSites> activation_sites(const editing::ProgramFunction& function, const ValueRanges& ranges,
                                         const Activations& activations);

/// Gives casts between floats, which may not run, the range of their input, and the values of each concatenation one
/// range.
Status complete_ranges(const editing::ProgramFunction& function, ValueRanges& ranges);

}  // namespace moka::compress
