#pragma once

#include <string>

/// Texts about the operations, made from their definitions alone.
namespace moka::opdocs {

std::string operations_markdown();
/// name -> opset -> parameters.
std::string operations_json();
/// Which device takes which operations of the cases in `golden`. Throws std::runtime_error on a malformed case.
std::string support_markdown(const std::string& golden);

}  // namespace moka::opdocs
