// SPDX-License-Identifier: Apache-2.0
#include "interpreter.h"

#include <cxxabi.h>
#include <nanobind/stl/string.h>
#include <pthread.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <stdexcept>
#include <string>

#include "moka/model.h"

namespace moka::python {

namespace nb = nanobind;

namespace {

/// The threads that are inside a Call. Never freed, because threads may outlive static objects.
struct Calls {
  std::mutex mutex;
  std::condition_variable changed;
  int running = 0;
  bool ending = false;
  bool is_over = false;  ///< the interpreter ends without waiting any longer
  pthread_t last{};      ///< the thread that ends the interpreter; it must not block

  void finish() {
    bool is_awaited;
    {
      const std::lock_guard lock(mutex);
      running--;
      is_awaited = ending;
    }
    if (is_awaited) changed.notify_all();
  }
};
Calls& calls = *new Calls;
thread_local int depth = 0;  ///< number of calls that this thread is in

[[noreturn]] void sleep_forever() {
  for (;;) ::pause();
}

void end() {
  // Threads that never wake up keep their objects.
  if (nb::cast<int>(nb::module_::import_("threading").attr("active_count")()) > 1) nb::set_leak_warnings(false);
  PyThreadState* state = PyEval_SaveThread();
  bool interrupted = false;
  {
    std::unique_lock lock(calls.mutex);
    calls.ending = true;
    calls.last = pthread_self();
    while (calls.running > 0 && !interrupted) {
      if (calls.changed.wait_for(lock, std::chrono::milliseconds(100), [] { return calls.running == 0; })) break;
      lock.unlock();
      PyEval_RestoreThread(state);
      interrupted = PyErr_CheckSignals() != 0;
      state = PyEval_SaveThread();
      lock.lock();
    }
  }
  PyEval_RestoreThread(state);
  if (!interrupted) return;
  {
    const std::lock_guard lock(calls.mutex);
    calls.is_over = true;
  }
  // The end of the process would wait for the threads of the library's queue, which sleep from now on.
  std::atexit([] {
    std::fflush(nullptr);
    std::_Exit(130);
  });
  throw nb::python_error();
}

}  // namespace

Call::Call() {
  if (depth++ > 0) return;
  {
    const std::lock_guard lock(calls.mutex);
    if (!calls.ending || pthread_equal(calls.last, pthread_self())) {
      calls.running++;
      return;
    }
  }
  PyEval_SaveThread();
  sleep_forever();
}

Call::~Call() {
  if (--depth == 0) calls.finish();
}

LaterCall::LaterCall() {
  const std::lock_guard lock(calls.mutex);
  if (calls.ending) throw std::runtime_error("the interpreter ends: no prediction can be queued");
  calls.running++;
}

LaterCall::~LaterCall() { calls.finish(); }

LaterCall::Made::Made(const LaterCall&) {
  {
    const std::lock_guard lock(calls.mutex);
    if (calls.is_over) sleep_forever();
  }
  depth++;
  state_ = PyGILState_Ensure();
}

LaterCall::Made::~Made() {
  PyGILState_Release(state_);
  depth--;
}

Unlocked::Unlocked() : state_(PyEval_SaveThread()) {}

Unlocked::~Unlocked() {
  try {
    PyEval_RestoreThread(state_);
  } catch (abi::__forced_unwind&) {
    // The interpreter ended without waiting. Before 3.14, CPython ends threads that return to the interpreter later.
    sleep_forever();
  }
}

void bind_end() {
  nb::module_::import_("atexit").attr("register")(nb::cpp_function(&end));
  pthread_atfork([] { calls.mutex.lock(); }, [] { calls.mutex.unlock(); },
                 [] {
                   // A child has no other thread, and keeps what those of its parent held.
                   if (calls.running > (depth > 0 ? 1 : 0)) nb::set_leak_warnings(false);
                   calls.running = depth > 0 ? 1 : 0;
                   calls.mutex.unlock();
                 });
}

void bind_warnings() {
  set_warning_handler([](const std::string& text) {
    const nb::gil_scoped_acquire locked;
    try {
      nb::module_::import_("moka._log").attr("warning")(text);
    } catch (nb::python_error& e) {
      e.discard_as_unraisable("moka's warning");
    }
  });
}

}  // namespace moka::python
