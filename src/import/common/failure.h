// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>

#include "base/error.h"

/// Errors of importers that are written as expressions, which return values and not results.
namespace moka::import {

/// Thrown while an operation is imported; the importer returns the error.
struct Failure {
  Error error;
};
template <class... Args>
[[noreturn]] void refuse(ErrorCode code, const Args&... args) {
  throw Failure{fail(code, args...)};
}
template <class T>
T need(Result<T> result) {
  if (!result.ok()) throw Failure{std::move(result).error()};
  return std::move(result).value();
}
inline void need(Status status) {
  if (!status.ok()) throw Failure{std::move(status).error()};
}

/// Runs `fill`, which returns a T, and turns what it throws into an error.
template <class Fill>
auto guarded(const Fill& fill) -> Result<decltype(fill())> {
  try {
    return fill();
  } catch (Failure& f) {
    return std::move(f.error);
  }
}

}  // namespace moka::import
