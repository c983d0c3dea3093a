// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <mutex>
#include <optional>
#include <vector>

#include "base/error.h"
#include "compress/blocks.h"
#include "compress/site.h"

namespace moka::compress {

/// Sets made[i] to make(i), a Result, for all i in `work`, on several threads. Returns an error if one of them failed.
template <class Made, class Make>
Status make_all(const std::vector<size_t>& work, std::vector<Made>& made, const Make& make, const Progress& progress) {
  std::mutex mutex;
  std::optional<Error> failed;
  size_t done = 0;
  in_parallel(work.size(), [&](size_t k) {
    auto result = make(work[k]);
    // The decoded weight has been checked, and keeping all of them would fill the memory.
    if (result.ok() && result->encoding) result->encoding->decoded = {};
    std::lock_guard lock(mutex);
    if (!result.ok())
      failed = std::move(result).error();
    else
      made[work[k]] = *std::move(result);
    if (progress) progress(++done, work.size());
  });
  if (failed) return *std::move(failed);
  return {};
}

}  // namespace moka::compress
