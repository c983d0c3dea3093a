// SPDX-License-Identifier: Apache-2.0
#include "import/neuralnetwork/spatial.h"

namespace moka::import::nn {

namespace {
constexpr uint64_t kLargest = (uint64_t{1} << 31) - 1;
}

Result<Ints> pair(const Layer& l, const google::protobuf::RepeatedField<uint64_t>& f, std::string_view what,
                  int64_t if_absent) {
  if (f.empty()) return Ints{if_absent, if_absent};
  if (f.size() != 2) return l.malformed(cat(what, ": expected 2 values, got ", f.size()));
  for (uint64_t v : f)
    if (v == 0 || v > kLargest) return l.malformed(cat(what, ": expected 1 to ", kLargest, ", got ", v));
  return Ints{static_cast<int64_t>(f[0]), static_cast<int64_t>(f[1])};
}

Result<Ints> borders(const Layer& l, const proto::BorderAmounts& amounts, std::string_view what) {
  Ints out{0, 0, 0, 0};
  if (amounts.borderamounts_size() == 0) return out;
  if (amounts.borderamounts_size() != 2)
    return l.malformed(cat(what, ": expected 2 borders, got ", amounts.borderamounts_size()));
  for (int i = 0; i < 2; i++) {
    const auto& edge = amounts.borderamounts(i);
    if (edge.startedgesize() > kLargest || edge.endedgesize() > kLargest)
      return l.malformed(cat(what, ": larger than ", kLargest));
    out[2 * i] = static_cast<int64_t>(edge.startedgesize());
    out[2 * i + 1] = static_cast<int64_t>(edge.endedgesize());
  }
  return out;
}

Result<Padding> valid_padding(const Layer& l, const proto::ValidPadding& valid) {
  Ints b = MOKA_TRY(borders(l, valid.paddingamounts(), "padding"));
  if (b[0] == 0 && b[1] == 0 && b[2] == 0 && b[3] == 0) return Padding{};
  return Padding{"custom", b};
}

Padding same_padding(const proto::SamePadding& same) {
  return {same.asymmetrymode() == proto::SamePadding::TOP_LEFT_HEAVY ? "same_lower" : "same", {}};
}

}  // namespace moka::import::nn
