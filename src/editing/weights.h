#pragma once

#include <functional>

#include "editing/fields.h"
#include "format/source.h"

namespace moka::editing {

/// Calls `visit` for each message of a type inside `message`, which may be one itself. Messages that cannot contain one
/// stay encoded.
Status for_messages(const Message& message, std::string_view type, const std::function<Status(Message)>& visit);

/// Drops weights of ML programs that nothing refers to. A weight file of which everything is used stays as it is.
/// Errors: those of reading the records of the file.
Status drop_unused_weights(format::ModelSource& source);

/// Adds the files of another model to `source`, under free names, and lets the references in `message`, which was part
/// of that model, refer to them.
Status bring_weights(format::ModelSource& source, const format::FileContents& files, const Message& message);

/// Puts all weights that the programs of the model refer to into the file weights/weight.bin, equal ones once.
Status merge_weights(format::ModelSource& source);

}  // namespace moka::editing
