// SPDX-License-Identifier: Apache-2.0
#include "moka/encryption.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstring>
#include <memory>

#include "bindings.h"
#include "interpreter.h"
#include "values.h"

namespace moka::python {
namespace {

/// A Python object whose last reference any thread may drop.
std::shared_ptr<nb::object> held(nb::object object) {
  return {new nb::object(std::move(object)), [](nb::object* o) {
            if (!Py_IsInitialized()) return;
            const nb::gil_scoped_acquire locked;
            delete o;
          }};
}

KeySource source_of(nb::object function) {
  if (function.is_none()) return nullptr;
  return [function = held(std::move(function))](const KeyRequest& request) {
    const nb::gil_scoped_acquire locked;
    return nb::cast<std::string>((*function)(request.model, request.passphrase));
  };
}

EncryptionOptions options_of(std::vector<std::string> recipients, std::string passphrase, unsigned work_factor) {
  EncryptionOptions options;
  options.recipients = std::move(recipients);
  options.passphrase = std::move(passphrase);
  options.work_factor = work_factor;
  return options;
}

ModelReader reader_of(const nb::object& object) {
  ModelReader out;
  out.size = nb::cast<uint64_t>(object.attr("size"));
  out.read = [read = held(object.attr("read"))](uint64_t offset, std::span<std::byte> to) {
    const nb::gil_scoped_acquire locked;
    const nb::object bytes = (*read)(offset, to.size());
    Py_buffer view;
    if (PyObject_GetBuffer(bytes.ptr(), &view, PyBUF_SIMPLE) != 0) throw nb::python_error();
    const bool whole = static_cast<size_t>(view.len) == to.size();
    if (whole) std::memcpy(to.data(), view.buf, to.size());
    const auto got = std::to_string(view.len);
    PyBuffer_Release(&view);
    if (!whole)
      throw Exception(ErrorKind::io, "the model's reader returned " + got + " bytes from " + std::to_string(offset) +
                                         " on, expected " + std::to_string(to.size()));
  };
  return out;
}

}  // namespace

void bind_encryption(nb::module_& m) {
  m.def(
      "set_key", [](ModelConfiguration& c, nb::object function) { c.key = source_of(std::move(function)); },
      nb::arg("configuration"), nb::arg("function").none());
  m.def(
      "load_reader",
      [](const nb::object& object, const ModelConfiguration& c) {
        const ModelReader reader = reader_of(object);
        const Unlocked unlocked;
        return Model::load(reader, c);
      },
      nb::arg("reader"), nb::arg("configuration"));
  m.def("generate_key_pair", [] {
    const KeyPair pair = generate_key_pair();
    return std::pair(pair.identity, pair.recipient);
  });
  m.def(
      "read_identity_file", [](const std::string& path) { return read_identity_file(path); }, nb::arg("path"));
  m.def(
      "encrypt_model",
      [](const std::string& path, const std::string& destination, std::vector<std::string> recipients,
         std::string passphrase, unsigned work_factor, bool force) {
        EncryptionOptions options = options_of(std::move(recipients), std::move(passphrase), work_factor);
        options.overwrite = overwrite(force);
        encrypt_model(path, destination, options);
      },
      nb::arg("path"), nb::arg("destination"), nb::arg("recipients"), nb::arg("passphrase"), nb::arg("work_factor"),
      nb::arg("force") = false, nb::call_guard<Unlocked>());
  m.def(
      "decrypt_model",
      [](const std::string& path, const std::string& destination, nb::object function, bool force) {
        const KeySource key = source_of(std::move(function));
        const Unlocked unlocked;
        decrypt_model(path, destination, key, overwrite(force));
      },
      nb::arg("path"), nb::arg("destination"), nb::arg("function").none(), nb::arg("force") = false);
}

}  // namespace moka::python
