// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "compress/choice.h"
#include "compress/trials.h"
#include "format/source.h"
#include "measuring/noise.h"
#include "moka/compress.h"

namespace moka::measuring {

/// Loads a model from a specification and its weight files. Models share what they pack from the same memory.
using LoadInMemory = std::function<Model(const Bytes& specification, const std::map<std::string, Bytes>& files)>;

/// A form that was measured for a weight; the first of each weight keeps it.
struct MeasuredForm {
  WeightCompression compression;
  size_t bytes = 0;
  double noise = 0;  ///< the mean noise share of the outputs
};

/// What the forms of each weight alone do to the outputs.
class Sensitivity {
 public:
  /// `model` must outlive it.
  Sensitivity(const format::ModelSource& model, const CompressionSearch& search, LoadInMemory load);

  const Model& base() const { return *base_; }
  const std::vector<compress::Site>& sites() const { return trials_.sites(); }
  /// The forms of each site. A shared one only stays.
  const std::vector<std::vector<MeasuredForm>>& forms() const { return forms_; }
  /// Measures all weights on these inputs.
  void measure(const OutputNoise& noise, std::span<const size_t> inputs);
  compress::Options options() const;

 private:
  void measure(size_t site, const std::vector<WeightCompression>& forms, bool fixed, const OutputNoise& noise,
               std::span<const size_t> inputs);

  const CompressionSearch& search_;
  const LoadInMemory load_;
  compress::Trials trials_;
  std::map<std::string, Bytes> files_;
  std::optional<Model> base_;
  std::vector<std::vector<MeasuredForm>> forms_;
  bool changes_ = false;  ///< a form has changed an output
};

}  // namespace moka::measuring
