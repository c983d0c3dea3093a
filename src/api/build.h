#pragma once

#include <utility>

#include "format/message/message.h"
#include "format/source.h"
#include "moka/build.h"

namespace moka {

struct __attribute__((visibility("hidden"))) Message::Impl {
  explicit Impl(format::Message m) : message(std::move(m)) {}
  format::Message message;
};

struct __attribute__((visibility("hidden"))) ModelSource::Impl {
  explicit Impl(format::ModelSource s) : source(std::move(s)) {}
  format::ModelSource source;
};

namespace api {

/// The elements of an array in row-major order, without a copy if they lie so.
Bytes bytes_of(const MultiArray& array);
/// [n] elements of the type.
MultiArray array_of(const Bytes& bytes, DataType type);

}  // namespace api

}  // namespace moka
