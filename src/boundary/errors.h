// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <exception>
#include <new>
#include <type_traits>
#include <utility>

#include "base/error.h"
#include "moka/error.h"

/// Connects the public types of values with the library's own.
namespace moka::boundary {

[[noreturn]] void raise(const Error& error);

template <class T>
T unwrap(Result<T> result) {
  if (!result.ok()) raise(result.error());
  if constexpr (!std::is_void_v<T>) return std::move(result).value();
}

/// The same error with `code` if it is invalid_argument: an operation refused an argument, and the kind of the error
/// depends on where that came from.
Error reclassified(Error error, ErrorCode code);

/// Returns `tell(kind, message)` for the exception that is being handled: call it in a catch block.
template <class Tell>
auto tell_caught(const Tell& tell) {
  try {
    throw;
  } catch (const Exception& e) {
    return tell(e.kind(), e.what());
  } catch (const std::bad_alloc&) {
    return tell(ErrorKind::out_of_budget, "no memory is left");
  } catch (const std::exception& e) {
    return tell(ErrorKind::internal, e.what());
  } catch (...) {
    return tell(ErrorKind::internal, "an exception of unknown type");
  }
}

}  // namespace moka::boundary
