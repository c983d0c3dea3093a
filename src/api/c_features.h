#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "moka/feature.h"
#include "moka/moka.h"

/// Pointers for C to values that are not stored as arrays. The getters create them.
struct View {
  std::vector<const char*> strings;
  std::vector<int64_t> ints;
  std::vector<double> values;
};

struct moka_features {
  moka::Features values;
  mutable std::map<std::string, View, std::less<>> views;
  bool copies = false;  ///< arrays and images are copied when they are set
};

namespace moka::api {
/// Runs `f`. What it throws becomes a status and the text of moka_last_error.
moka_status c_status(const std::function<void()>& f) noexcept;
/// An array that borrows its memory. Throws invalid_argument where its members do not fit.
MultiArray borrowed_array(const moka_array& a);
}  // namespace moka::api
