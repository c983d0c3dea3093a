// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/error.h"

namespace moka::kernel {

/// A name and a value of something that a kernel chose, for people: {"tile", "64 x 64"}.
struct Fact {
  std::string name, value;
};

/// What a kernel says of itself.
class Facts {
 public:
  template <class... Parts>
  Facts& add(std::string name, const Parts&... parts) {
    all_.push_back({std::move(name), cat(parts...)});
    return *this;
  }
  std::vector<Fact> take() { return std::move(all_); }

 private:
  std::vector<Fact> all_;
};

}  // namespace moka::kernel
