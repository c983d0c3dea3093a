#pragma once

#include <string>
#include <string_view>

#include "base/bytes.h"
#include "base/error.h"

namespace moka::format {

/// What bytes that should be a part of a Core ML model look like instead, in words that end a sentence: "a PNG
/// picture", "a Git LFS pointer, not the file itself (git lfs pull fetches it)". Empty where nothing is recognised. For
/// bytes that failed to be what they should be: now and then a good file looks like another kind. Formats of protobuf's
/// like ONNX are among them.
std::string foreign_kind(const Bytes& bytes);

/// `error`, or what the bytes are where that is known and the error is that they are malformed. `expected` begins with
/// an article: "a Core ML specification".
Error foreign_or(Error error, const Bytes& bytes, std::string_view expected);

}  // namespace moka::format
