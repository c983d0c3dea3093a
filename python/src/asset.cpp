// SPDX-License-Identifier: Apache-2.0
#include "asset.h"

#include <nanobind/stl/string.h>

#include <cstring>

#include "values.h"

namespace moka::python {

namespace {

std::vector<std::byte> bytes_of(const nb::bytes& b) {
  std::vector<std::byte> out(b.size());
  std::memcpy(out.data(), b.c_str(), b.size());
  return out;
}

/// Buffers of Python objects, which are released with it.
class Buffers {
 public:
  Buffers() = default;
  Buffers(const Buffers&) = delete;
  ~Buffers() {
    if (!Py_IsInitialized()) return;
    const nb::gil_scoped_acquire locked;
    for (Py_buffer& b : taken_) PyBuffer_Release(&b);
  }
  std::span<const std::byte> add(nb::handle object) {
    Py_buffer b;
    if (PyObject_GetBuffer(object.ptr(), &b, PyBUF_SIMPLE) != 0) throw nb::python_error();
    taken_.push_back(b);
    return {static_cast<const std::byte*>(b.buf), static_cast<size_t>(b.len)};
  }

 private:
  std::vector<Py_buffer> taken_;
};

}  // namespace

std::vector<std::string> texts_of(const std::vector<EmbeddedNetwork>& networks) {
  std::vector<std::string> out;
  for (const EmbeddedNetwork& n : networks) out.push_back(n.text);
  return out;
}

std::map<std::string, std::vector<std::byte>> files_of(const nb::dict& blobs) {
  std::map<std::string, std::vector<std::byte>> out;
  for (auto [name, data] : blobs) {
    if (!nb::isinstance<nb::str>(name) || !nb::isinstance<nb::bytes>(data))
      raise_type("expected weight files as a dict of name to bytes");
    out.emplace(nb::cast<std::string>(name), bytes_of(nb::borrow<nb::bytes>(data)));
  }
  return out;
}

ModelAssetView asset_of(nb::handle specification, const nb::dict& blobs) {
  auto buffers = std::make_shared<Buffers>();
  ModelAssetView asset{buffers->add(specification), {}, buffers};
  for (auto [name, data] : blobs) {
    if (!nb::isinstance<nb::str>(name)) raise_type("expected weight files as a dict of name to bytes");
    asset.blobs.emplace(nb::cast<std::string>(name), buffers->add(data));
  }
  return asset;
}

}  // namespace moka::python
