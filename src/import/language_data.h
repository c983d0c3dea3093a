// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

/// The parameters of models that Apple's Natural Language framework trains: text classifiers, word taggers, gazetteers
/// and word embeddings.
namespace moka::import {

/// Describes such bytes: "416 bytes in a container of Natural Language with method 4 (maximum entropy) and 4 parts".
/// For an unknown form, gives the size and the first bytes.
std::string form_of_language_data(const std::string& bytes);

}  // namespace moka::import
