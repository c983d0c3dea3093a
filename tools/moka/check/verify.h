// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "json.h"
#include "moka/verify.h"

/// How `moka verify` prints.
namespace moka::cli {

Json to_json(const OutputError& error);
/// "43.2 dB", "equal"; empty without numbers.
std::string decibels(const OutputError& error);
/// "3 of 4", "top 1 100%, top 5 100%"; empty for neither labels nor classes.
std::string agreement(const OutputError& error);
Json to_json(const Verification& verification);
std::string verification_text(const Verification& verification);

}  // namespace moka::cli
