// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "import/onnx/node.h"

namespace moka::import::onnx {

/// The strings or the integers of two attributes, of which a classifier has one. Refuses a node with neither.
Tensor class_labels(const Node& n, std::string_view strings, std::string_view integers);

/// The outputs of a classifier: the label of each row's largest score, and the scores, [rows, classes].
void set_classified(Node& n, const Tensor& labels, Value* scores);

/// A vector of strings or of integers of 64 bits.
Tensor list_of(const std::vector<std::string>& strings);
Tensor list_of(const std::vector<int64_t>& integers);

}  // namespace moka::import::onnx
