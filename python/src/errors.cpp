// SPDX-License-Identifier: Apache-2.0
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <array>
#include <cstring>

#include "bindings.h"
#include "values.h"

namespace moka::python {

namespace {

/// Python exception classes by ErrorKind. They are never released, because the interpreter may end first.
std::array<PyObject*, 12> classes{};

PyObject* class_of(ErrorKind kind) {
  const auto i = static_cast<size_t>(kind);
  return i < classes.size() && classes[i] != nullptr ? classes[i] : PyExc_RuntimeError;
}

}  // namespace

void raise(ErrorKind kind, const std::string& message) { throw Exception(kind, message); }

void raise_type(const std::string& message) { throw nb::type_error(message.c_str()); }

void bind_errors(nb::module_& m) {
  const auto add = [&](ErrorKind kind, const char* name, const char* doc, PyObject* bases) {
    PyObject* made = PyErr_NewExceptionWithDoc((std::string("moka.") + name).c_str(), doc, bases, nullptr);
    if (made == nullptr) throw nb::python_error();
    classes.at(static_cast<size_t>(kind)) = made;
    m.attr(name) = nb::handle(made);
  };
  PyObject* base = PyErr_NewExceptionWithDoc("moka.Error", "Everything that moka raises except TypeError.",
                                             PyExc_RuntimeError, nullptr);
  if (base == nullptr) throw nb::python_error();
  m.attr("Error") = nb::handle(base);
  nb::tuple value = nb::make_tuple(nb::handle(base), nb::handle(PyExc_ValueError));
  add(ErrorKind::invalid_argument, "InvalidArgumentError",
      "A value, name, shape or type given by the caller does not fit the model.", value.ptr());
  add(ErrorKind::malformed, "MalformedModelError", "The model's bytes contradict themselves or their format.", base);
  add(ErrorKind::unsupported, "UnsupportedError", "Well-formed, but moka cannot do it; the message names what.", base);
  add(ErrorKind::not_found, "NotFoundError", "A file, function, feature or weight that does not exist.", base);
  add(ErrorKind::io, "IOError", "The operating system refused.", base);
  add(ErrorKind::out_of_budget, "OutOfBudgetError", "Would exceed memory_budget.", base);
  add(ErrorKind::data, "DataError", "A value met while predicting breaks a rule of an operation.", base);
  add(ErrorKind::internal, "InternalError", "A bug in moka.", base);
  add(ErrorKind::device_lost, "DeviceLostError", "A device stopped working while it computed.", base);
  add(ErrorKind::cancelled, "CancelledError", "The caller asked to stop.", base);
  nb::tuple late = nb::make_tuple(nb::handle(base), nb::handle(PyExc_TimeoutError));
  add(ErrorKind::deadline_exceeded, "DeadlineExceededError", "Not done at the time that the caller gave.", late.ptr());
  nb::register_exception_translator([](const std::exception_ptr& p, void*) {
    try {
      std::rethrow_exception(p);
    } catch (const Exception& e) {
      // An interrupt that a callback met, such as that of a custom layer, counts more than what became of it.
      if (PyErr_CheckSignals() != 0) return;
      // Messages may quote bytes of files that are not valid UTF-8.
      PyObject* text =
          PyUnicode_DecodeUTF8(e.what(), static_cast<Py_ssize_t>(std::strlen(e.what())), "backslashreplace");
      if (text == nullptr) return;
      PyErr_SetObject(class_of(e.kind()), text);
      Py_DECREF(text);
    }
  });
}

}  // namespace moka::python
