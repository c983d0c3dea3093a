// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "compress/encoding.h"
#include "editing/fields.h"
#include "format/source.h"

namespace moka::compress {

using editing::text_of;

/// How an operation reads a constant.
struct Use {
  std::string type, parameter;
  bool transposed = false;
};

/// A constant in a program.
struct Found {
  format::Message operation;
  std::string name, file;
  uint64_t offset = 0;
  Shape shape;
  bool half = false;
  std::vector<Use> uses;
  Form form = Form::ios16;
  size_t function = 0;  ///< its number among the functions of the model
  size_t number = 0;    ///< among the operations of the function, which count before those in their blocks
};

/// The name of an operation's first result.
Result<std::string> result_name(const format::Message& operation);
/// The number in the name of an opset: 8 for "CoreML8", which is iOS 18. 0: the name has another form.
int opset_number(const std::string& name);
Result<int> opset_of(const format::Message& function);
constexpr int kOpsetOfIos16 = 6, kOpsetOfIos17 = 7, kOpsetOfIos18 = 8;
/// The blocks of a function, one for each opset.
Result<std::vector<format::Message>> blocks_of(const format::Message& function);

/// Calls `visit` with each message of the type inside, at any depth.
template <class Visit>
Status each(const format::Message& message, std::string_view type, const Visit& visit) {
  if (message.def().name == type) MOKA_TRY(visit(message));
  for (const std::string& name : MOKA_TRY(message.names())) {
    if (message.def().find(std::string_view(name))->kind != format::FieldKind::message) continue;
    for (const format::Message& child : MOKA_TRY(message.children(name))) MOKA_TRY(each(child, type, visit));
  }
  return {};
}

/// The axes of output and input channels, as coremltools.optimize chooses them; nullopt: the uses differ.
struct Axes {
  int64_t output, input;
  bool operator==(const Axes&) const = default;
};
std::optional<Axes> axes_of(const Found& found);

/// All constants of floats of rank 2 or more in weight files. Errors: unsupported (a program for iOS 15), malformed.
Result<std::vector<Found>> constants_of(const format::ModelSource& source);

}  // namespace moka::compress
