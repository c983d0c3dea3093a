// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <exception>
#include <new>

#include "moka/error.h"

namespace moka::api {

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

}  // namespace moka::api
