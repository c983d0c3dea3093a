// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "io/line.h"

namespace moka::cli {

/// With ASCII letters in lower case.
std::string in_lower_case(std::string_view text);
/// Whether a file's name ends with `extension`, such as ".onnx", in any letter case.
bool has_extension(std::string_view path, std::string_view extension);
std::string without_trailing_slashes(std::string path);
/// "812 B", "4.21 kB", "17.3 MB", in powers of 1000.
std::string format_bytes(double bytes);
/// "840 ns", "12.3 µs", "4.56 ms", "1.23 s".
std::string format_seconds(double seconds);
/// Five significant digits; whole numbers below 10^9 in full; "nan", "inf".
std::string format_number(double value);
/// "1,234,567".
std::string format_count(int64_t value);
/// "93.2%".
std::string format_percent(double fraction);
/// "1 weight", "2 weights".
std::string plural(int64_t count, std::string_view word);
/// "1 x 3 x 8"; "scalar" when empty.
std::string format_shape(std::span<const int64_t> shape);
/// MIL's "tensor<fp16, [1, 3]>" as "fp16 1 x 3"; other types unchanged.
std::string short_type(std::string_view mil_type);

/// The parts of a weight's MIL type.
struct TensorType {
  std::string element;  ///< "fp16"; the whole text for other types than tensors
  int64_t count = 1;    ///< number of elements; 0 when a dimension is unknown
};
TensorType parse_tensor_type(std::string_view mil_type);

/// A horizontal bar for `fraction` (clamped to 0..1) with `width` cells, in eighths of a cell.
std::string bar(double fraction, int width);
using io::middle_shortened;
using io::shortened;

/// The candidate that most resembles `name`: few edits, where letter case counts little.
std::optional<std::string> nearest(std::string_view name, std::span<const std::string> candidates);
/// "'a', 'b' and 7 more".
std::string quoted_list(std::span<const std::string> names, size_t most = 12);

/// The value at `fraction` (0..1) of sorted, nonempty samples, interpolated.
double percentile(std::span<const double> sorted, double fraction);

/// Parses the whole text as a number. nullopt if it contains anything else.
std::optional<double> parse_number(std::string_view text);
/// A number or a quotient of two: "1/255".
std::optional<double> parse_quotient(std::string_view text);
std::optional<int64_t> parse_integer(std::string_view text);
std::string_view trimmed(std::string_view text);

/// "12 MB of weights prepared for kernels, 3 MB more from the cache".
std::string packed_text(size_t packed_bytes, size_t cached_bytes);

}  // namespace moka::cli
