// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "import/neuralnetwork/network.h"

/// Shared by layers that slide windows over height and width (and depth).
namespace moka::import::nn {

/// A pair of sizes from a repeated field of length 0 or 2. Error malformed otherwise, or for sizes not in 1..2^31-1.
Result<Ints> pair(const Layer& l, const google::protobuf::RepeatedField<uint64_t>& f, std::string_view what,
                  int64_t if_absent);

/// [top, bottom, left, right]; zeros when absent. Error malformed for a length other than 0 or 2 or huge amounts.
Result<Ints> borders(const Layer& l, const proto::BorderAmounts& amounts, std::string_view what);

/// pad_type and pad of MIL's windowed operations.
struct Padding {
  std::string type = "valid";
  Ints pad;
  void append(std::vector<NamedArg>& args) const {
    args.emplace_back("pad_type", type);
    if (!pad.empty()) args.emplace_back("pad", pad);
  }
};
Result<Padding> valid_padding(const Layer& l, const proto::ValidPadding& valid);
Padding same_padding(const proto::SamePadding& same);

}  // namespace moka::import::nn
