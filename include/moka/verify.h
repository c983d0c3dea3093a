// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "moka/model.h"

/// Comparison of a model's answers with those of a reference (docs/checking.md).
namespace moka {

/// Names of a model's features, and of their partners on the other side.
using NamePairs = std::vector<std::pair<std::string, std::string>>;

/// Low and high by an input's name.
using NumberRanges = std::map<std::string, std::pair<double, double>>;

/// How pixels become numbers where the other side takes an array for an image: pixel * scale + bias.
struct PixelScale {
  double scale = 1, bias = 0;
  bool operator==(const PixelScale&) const = default;
};

/// The other side of a comparison: another model, a recording, or a program in another framework.
class MOKA_EXPORT Reference {
 public:
  virtual ~Reference();
  /// For people: "Other.mlpackage", "net.onnx (onnxruntime 1.20.1)".
  virtual std::string name() const = 0;
  virtual const std::vector<FeatureDescription>& inputs() const = 0;
  virtual const std::vector<FeatureDescription>& outputs() const = 0;
  /// One answer for each item, in order. The names are the reference's own. Calls `advance` with the number of finished
  /// items. An Exception becomes VerifiedShape::fault; other exceptions leave verify_model.
  virtual std::vector<Features> predict(const std::vector<Features>& items,
                                        const std::function<void(size_t done)>& advance) = 0;
  /// A recording: the inputs that its answers were computed from, by the model's names. Empty: any inputs may be asked.
  virtual std::vector<Features> recorded_inputs() const { return {}; }
  /// A recording: the number of its answers.
  virtual std::optional<size_t> recorded_answers() const { return std::nullopt; }
  /// Leaves of the model's answers to `item` what the reference has answers for, such as a sample of an array.
  virtual void narrow(size_t item, Features& answers) const;
  /// It may have computed in float16 where its types say float32.
  virtual bool may_be_half() const { return false; }
  /// Its types decide the default threshold. Null: not a Core ML model.
  virtual const Model* model() const { return nullptr; }
};

/// Each prediction has a new state.
MOKA_EXPORT std::unique_ptr<Reference> model_reference(Model model, std::string name);

/// Answers that were computed before, one for each prediction.
struct Recording {
  std::string name;              ///< as Reference::name
  std::vector<Features> inputs;  ///< what the answers were computed from; all empty: unknown
  std::vector<Features> answers;
};
/// `function`: that of the model, which describes the inputs. Throws invalid_argument when there are no answers, or the
/// number of inputs differs from theirs.
MOKA_EXPORT std::unique_ptr<Reference> recorded_reference(Recording recording, const FunctionDescription& function);

/// How far a comparison is: `done` of `total` predictions of "model" or "reference". Begins again for each shape.
struct VerifyProgress {
  std::string_view side;
  size_t done = 0, total = 0;
};

struct VerifyOptions {
  int64_t runs = 3;  ///< random inputs of each shape, where there are neither given nor recorded ones
  uint64_t seed = 1;
  bool all_shapes = false;       ///< every enumerated shape and the corners of ranges (shape_choices)
  std::vector<Features> inputs;  ///< compared instead of random and recorded ones, when there are any
  NamePairs map;                 ///< pairs that names and shapes do not find
  NumberRanges ranges;           ///< of random arrays
  PixelScale pixels;
  std::optional<double> min_snr;    ///< least signal to noise in dB; absent: usual_snr
  std::optional<double> max_error;  ///< largest absolute error of an element
  int64_t top_k = 0;                ///< the reference's best class must be among the k best; 0: not asked for
  /// Called on the calling thread before the first prediction of each side and after each one. Optional. What it throws
  /// leaves verify_model.
  std::function<void(const VerifyProgress&)> progress;
};

/// The error of one output over all compared predictions.
struct OutputError {
  std::string name, other;  ///< names in the model and in the reference
  int64_t elements = 0;
  double signal = 0, noise = 0;       ///< sums of squares: of the reference's elements, and of the differences
  int exponent = -1000;               ///< of the largest element; the sums are of elements times 2^-exponent
  double absolute = 0, relative = 0;  ///< largest; relative to max(|reference|, peak / 1000) of the prediction
  int64_t unlike = 0;                 ///< elements that are NaN or infinite on one side only, or of unlike sign
  int64_t labels = 0, same = 0;       ///< compared texts, integers and keys, and how many are the same
  std::vector<double> ranks;        ///< of classes: the place that the reference's best class has in the model, from 0
  std::vector<std::string> faults;  ///< predictions that cannot be compared: "shape 1 x 3, expected 1 x 4"

  /// Signal to noise in dB; infinite when all elements are equal.
  MOKA_EXPORT double snr() const;
  bool has_numbers() const { return elements > 0; }
  /// The part of the predictions in which the reference's best class is among the `k` best; -1: no classes.
  MOKA_EXPORT double agreement(int64_t k) const;
};

/// The comparison for inputs of one shape.
struct VerifiedShape {
  std::string name;  ///< as ShapeChoice::name; empty for given and recorded inputs
  int64_t predictions = 0;
  std::vector<OutputError> outputs;
  std::string fault;  ///< why the model or the reference cannot predict; empty: it can
};

struct Verification {
  std::string reference;
  double min_snr = 0;       ///< dB
  bool is_default = false;  ///< min_snr follows from the precision of the models
  std::vector<VerifiedShape> shapes;
  std::vector<std::string> uncompared;  ///< outputs without a partner
  std::vector<std::string> failures;    ///< a sentence for each missed threshold
  /// What may explain failures: inputs of the model that the reference does not have, and images whose pixels it took
  /// as numbers from 0 to 255 because `pixels` was not set.
  std::vector<std::string> ungiven, unscaled_images;
  bool passed() const { return failures.empty(); }
};

/// Predicts with both and compares every output that has a partner. A shape that one side refuses is a failure. Throws
/// invalid_argument for names and ranges that do not fit, for an input of the reference or outputs without a partner,
/// and for a recording of another number of predictions; and what random_inputs throws.
MOKA_EXPORT Verification verify_model(const Model& model, Reference& reference, const VerifyOptions& options = {});

/// Pairs features of a model with those of another: by `map`, then by name, then by equal shape in their order, then by
/// order. Those of `from` without a partner are left out.
MOKA_EXPORT NamePairs paired_features(const std::vector<FeatureDescription>& from,
                                      const std::vector<FeatureDescription>& to, const NamePairs& map = {});

/// Whether a model has float16 values or compressed weights.
struct Arithmetic {
  bool half = false, compressed = false;
  bool operator==(const Arithmetic&) const = default;
};
MOKA_EXPORT Arithmetic arithmetic_of(const Model& model);

/// The signal to noise in dB that the arithmetic of the models leaves: 80 for float32, 40 when one of them computes in
/// float16, 20 when one has compressed weights. `other` may be null.
MOKA_EXPORT double usual_snr(const Model& model, const Model* other);

}  // namespace moka
