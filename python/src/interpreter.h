#pragma once

#include <nanobind/nanobind.h>

namespace moka::python {

/// A call into the library, from the conversion of its arguments to that of its results. The end of the interpreter
/// waits for calls that have begun. A thread that begins one later sleeps until the process ends: the interpreter would
/// end it in the middle of the call, which aborts the process. Calls may be nested.
class Call {
 public:
  Call();
  Call(const Call&) = delete;
  ~Call();
};

/// The interpreter's lock is given back while one lives.
class Unlocked {
 public:
  Unlocked();
  Unlocked(const Unlocked&) = delete;
  ~Unlocked();

 private:
  Call call_;
  PyThreadState* state_;
};

/// Lets the end of the interpreter wait for calls.
void bind_end();
/// Warnings go to the logger "moka" of Python's logging module.
void bind_warnings();

}  // namespace moka::python
