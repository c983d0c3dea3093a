// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nanobind/nanobind.h>

namespace moka::python {

/// A call into the library, from the conversion of its arguments to that of its results. The end of the interpreter
/// waits for running calls. A thread that begins a call later sleeps until the process ends, because the interpreter
/// would end the thread in the middle of the call, which aborts the process. Calls may be nested.
class Call {
 public:
  Call();
  Call(const Call&) = delete;
  ~Call();
};

/// A call that another thread makes later. The end of the interpreter waits for it from now on. Raises RuntimeError
/// when the interpreter ends.
class LaterCall {
 public:
  LaterCall();
  LaterCall(const LaterCall&) = delete;
  ~LaterCall();

  /// The call itself, on its thread, with the interpreter lock.
  class Made {
   public:
    explicit Made(const LaterCall&);
    Made(const Made&) = delete;
    ~Made();

   private:
    PyGILState_STATE state_;
  };
};

/// Releases the interpreter lock during its lifetime.
class Unlocked {
 public:
  Unlocked();
  Unlocked(const Unlocked&) = delete;
  ~Unlocked();

 private:
  Call call_;
  PyThreadState* state_;
};

/// Makes the end of the interpreter wait for calls.
void bind_end();
/// Sends warnings to the logger "moka" of Python's logging module.
void bind_warnings();

}  // namespace moka::python
