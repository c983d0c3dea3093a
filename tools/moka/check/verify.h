// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "check/measure.h"
#include "check/pairing.h"
#include "check/reference.h"
#include "json.h"
#include "moka/model.h"

namespace moka::cli {

struct VerifyOptions {
  int64_t runs = 3;  ///< random inputs of each shape; 0: none
  uint64_t seed = 1;
  bool all_shapes = false;
  std::vector<Features> inputs;     ///< compared instead of random ones, when there are any
  std::vector<std::string> map;     ///< "name=other"
  std::vector<std::string> ranges;  ///< "name=low:high", of random arrays of floats
  PixelScale pixels;
  std::optional<double> min_snr, max_error;  ///< dB; largest absolute error
  int64_t top_k = 0;                         ///< 0: not asked for
};

/// The comparison for inputs of one shape.
struct VerifiedShape {
  std::string name;  ///< empty for given and recorded inputs
  int64_t predictions = 0;
  std::vector<OutputError> outputs;
  std::string fault;  ///< why the model or the reference cannot predict; empty: it can
};

struct Verification {
  std::string reference;
  double min_snr = 0;
  bool is_default = false;  ///< min_snr follows from the precision of the models
  std::vector<VerifiedShape> shapes;
  std::vector<std::string> uncompared;  ///< outputs without a partner
  std::vector<std::string> failures;    ///< a sentence for each missed threshold
  std::string hint;                     ///< what may explain the failures; may be empty
  bool passed() const { return failures.empty(); }
};

/// Predicts with both and compares. Throws UsageError, IoError, Exception; a shape that one side refuses is a failure.
Verification verified(const Model& model, Reference& reference, const VerifyOptions& options);

/// Whether a model has float16 values or compressed weights.
struct Arithmetic {
  bool half = false, compressed = false;
  bool operator==(const Arithmetic&) const = default;
};
Arithmetic arithmetic_of(const Model& model);

/// The signal to noise in dB that the arithmetic of the models leaves: 80 for float32, 40 when one of them computes in
/// float16, 20 when one has compressed weights.
double usual_snr(const Model& model, const Model* other);

Json to_json(const OutputError& error);
/// "43.2 dB", "equal"; empty without numbers.
std::string decibels(const OutputError& error);
/// "3 of 4", "top 1 100%, top 5 100%"; empty for neither labels nor classes.
std::string agreement(const OutputError& error);
Json to_json(const Verification& verification);
std::string verification_text(const Verification& verification);

}  // namespace moka::cli
