#pragma once

#include "format/message/message.h"
#include "format/source.h"
#include "moka/build.h"

namespace moka {

struct __attribute__((visibility("hidden"))) Message::Impl {
  format::Message message;
};

struct __attribute__((visibility("hidden"))) ModelSource::Impl {
  format::ModelSource source;
};

namespace api {

/// The elements of an array in row-major order, without a copy if they lie so.
Bytes bytes_of(const MultiArray& array);
/// [n] elements of the type.
MultiArray array_of(const Bytes& bytes, DataType type);

}  // namespace api

}  // namespace moka
