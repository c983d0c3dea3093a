// SPDX-License-Identifier: Apache-2.0
#include "format/message/rope.h"

namespace moka::format {

std::vector<Bytes> Rope::pieces() const {
  std::vector<Bytes> out = pieces_;
  if (!tail_.empty()) out.push_back(Bytes::from(tail_));
  return out;
}

Bytes Rope::joined() const {
  if (pieces_.empty()) return Bytes::from(tail_);
  if (pieces_.size() == 1 && tail_.empty()) return pieces_[0];
  std::string all;
  all.reserve(size_);
  for (const Bytes& piece : pieces_) all += piece.text();
  return Bytes::from(std::move(all += tail_));
}

}  // namespace moka::format
