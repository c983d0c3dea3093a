// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "base/bytes.h"
#include "base/error.h"

namespace moka::format {

/// The apparent kind of a file, as words that end a sentence: "a PNG picture", "a Git LFS pointer, not the file itself
/// (git lfs pull fetches it)". Empty when the kind is not recognized. Call it only for bytes that are not a valid part
/// of a Core ML model: a valid file may resemble another kind, since ONNX and others are protobuf too.
std::string foreign_kind(const Bytes& bytes);

/// Returns an error that names the kind of file if `error` is malformed and the kind is recognized; otherwise `error`.
/// `expected` begins with an article: "a Core ML specification".
Error foreign_or(Error error, const Bytes& bytes, std::string_view expected);

}  // namespace moka::format
