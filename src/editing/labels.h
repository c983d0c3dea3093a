// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "editing/features.h"

namespace moka::editing {

using Labels = std::variant<std::vector<std::string>, std::vector<int64_t>>;

/// Gives class labels to a model. An ML program or a neural network whose output `probabilities` has one element per
/// label becomes a classifier with the outputs `label` and `dictionary`; an empty name stands for the only output. The
/// labels of a classifier are replaced by as many others, and the other arguments are ignored.
/// Errors: not_found, invalid_argument (the number of labels, two equal ones), unsupported (a kind of model that has no
/// labels).
Status set_labels(Message model, const Labels& labels, const std::string& probabilities, const std::string& label,
                  const std::string& dictionary);

/// Turns a classifier into a plain ML program or neural network that returns the array of probabilities. Errors:
/// invalid_argument (no classifier), unsupported (other kinds of classifiers).
Status remove_labels(Message model);

}  // namespace moka::editing
