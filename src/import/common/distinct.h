// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <unordered_map>
#include <vector>

namespace moka::import {

/// Labels without repetitions.
template <class T>
struct Distinct {
  std::vector<T> values;          ///< ascending
  std::vector<int64_t> of_label;  ///< the position in `values` of each label
};

template <class Labels, class T = typename Labels::value_type>
Distinct<T> distinct_of(const Labels& labels) {
  using Key = std::conditional_t<std::is_same_v<T, std::string>, std::string_view, T>;
  Distinct<T> out;
  std::unordered_map<Key, int64_t> order;  // of appearance
  // The last label of each kind is found without the map.
  struct Last {
    Key key;
    int64_t at = -1;
  };
  constexpr size_t kKinds = 256;
  std::array<Last, kKinds> last;
  const auto kind = [](const Key& key) -> size_t {
    if constexpr (std::is_same_v<T, std::string>)
      return key.empty() ? 0
                         : key.size() + 7 * static_cast<uint8_t>(key.front()) + 31 * static_cast<uint8_t>(key.back());
    else
      return static_cast<size_t>(key);
  };
  out.of_label.reserve(static_cast<size_t>(labels.size()));
  for (const T& label : labels) {
    const Key key(label);
    Last& known = last[kind(key) % kKinds];
    if (known.at < 0 || known.key != key)
      known = {key, order.try_emplace(key, static_cast<int64_t>(order.size())).first->second};
    out.of_label.push_back(known.at);
  }
  for (const auto& [label, at] : order) out.values.emplace_back(label);
  std::sort(out.values.begin(), out.values.end());
  std::vector<int64_t> position(out.values.size());
  for (size_t i = 0; i < out.values.size(); ++i)
    position[static_cast<size_t>(order.at(Key(out.values[i])))] = static_cast<int64_t>(i);
  for (int64_t& at : out.of_label) at = position[static_cast<size_t>(at)];
  return out;
}

}  // namespace moka::import
