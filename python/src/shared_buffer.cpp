// SPDX-License-Identifier: Apache-2.0
#include "moka/shared_buffer.h"

#include <nanobind/nanobind.h>

#include "bindings.h"

namespace moka::python {

namespace nb = nanobind;

namespace {

extern "C" int shared_buffer_view(PyObject* self, Py_buffer* view, int flags) noexcept {
  const SharedBuffer* buffer = nb::inst_ptr<SharedBuffer>(self);
  return PyBuffer_FillInfo(view, self, buffer->data(), static_cast<Py_ssize_t>(buffer->bytes()), 0, flags);
}

PyType_Slot slots[] = {{Py_bf_getbuffer, reinterpret_cast<void*>(shared_buffer_view)}, {0, nullptr}};

}  // namespace

void bind_shared_buffer(nb::module_& m) {
  nb::class_<SharedBuffer>(m, "SharedBuffer", nb::type_slots(slots), "Memory that processes and devices share.")
      .def(nb::init<size_t>(), nb::arg("bytes"))
      .def_static("open", &SharedBuffer::open, nb::arg("descriptor"), nb::arg("offset") = 0, nb::arg("bytes") = 0)
      .def_prop_ro("nbytes", &SharedBuffer::bytes)
      .def_prop_ro("offset", &SharedBuffer::offset)
      .def("fileno", &SharedBuffer::file_descriptor);
}

}  // namespace moka::python
