// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include "editing/fields.h"
#include "format/source.h"

namespace moka::editing {

/// Calls `visit` for each message of a type: `message` itself and the messages in it. Messages that cannot contain one
/// are not decoded.
Status for_messages(const Message& message, std::string_view type, const std::function<Status(Message)>& visit);

/// Drops weights that the ML programs of the model do not use. A file without unused weights is not rewritten. Errors:
/// those of reading the records of the file.
Status drop_unused_weights(format::ModelSource& source);

/// Copies the weight files of another model to `source` under free names. `message` is a part of that model; its
/// references to weight files change to the new names.
Status bring_weights(format::ModelSource& source, const format::FileContents& files, const Message& message);

/// Moves all weights that the programs of the model use into the file weights/weight.bin, which stores equal weights
/// once.
Status merge_weights(format::ModelSource& source);

}  // namespace moka::editing
