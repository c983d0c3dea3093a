#pragma once

#include <string>
#include <string_view>

#include "base/bytes.h"
#include "base/error.h"

namespace moka::format {

/// The kind of file that bytes look like, in words that end a sentence: "a PNG picture", "a Git LFS pointer, not the
/// file itself (git lfs pull fetches it)". Empty when nothing is recognised. Call it only for bytes that could not be
/// read as a part of a Core ML model: a good file may look like another kind, since ONNX and others are protobuf too.
std::string foreign_kind(const Bytes& bytes);

/// `error`, or, if it says that the bytes are malformed and their kind is recognised, an error that names the kind.
/// `expected` begins with an article: "a Core ML specification".
Error foreign_or(Error error, const Bytes& bytes, std::string_view expected);

}  // namespace moka::format
