// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>

#include "base/lazy_memory.h"
#include "format/age/header.h"
#include "format/message/rope.h"

namespace moka::format::age {

/// Opens the content behind a header: a nonce, then blocks of 64 KiB, each encrypted with its number. Verifies all
/// blocks on several threads, without keeping them. Errors: malformed (altered, cut off or too long; names the block).
Result<std::shared_ptr<const BlockSource>> open_stream(const Bytes& file, size_t begin, const Secret& file_key);

/// Receives a part of what is written.
using Sink = std::function<Status(std::span<const std::byte>)>;
/// Encrypts the content piece by piece.
Status write_stream(const Rope& content, const Secret& file_key, const Sink& sink);

}  // namespace moka::format::age
