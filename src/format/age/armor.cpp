// SPDX-License-Identifier: Apache-2.0
#include "format/age/armor.h"

#include <algorithm>
#include <vector>

#include "format/age/header.h"

namespace moka::format::age {
namespace {

constexpr std::string_view kBegin = "-----BEGIN AGE ENCRYPTED FILE-----", kEnd = "-----END AGE ENCRYPTED FILE-----";
constexpr std::string_view kSpaces = " \t\r\n";
constexpr size_t kColumns = 64, kMostSpaces = 1024;

Error bad(size_t line, std::string_view what) {
  return fail(ErrorCode::malformed, "line ", line, " of the encrypted text: ", what);
}

}  // namespace

bool is_armored(const Bytes& file) {
  const size_t first = file.text().substr(0, kMostSpaces).find_first_not_of(kSpaces);
  return first != std::string_view::npos && file.text().substr(first).starts_with(kBegin);
}

Result<Bytes> read_armor(const Bytes& file) {
  const std::string_view text = file.text();
  size_t at = std::min(text.find_first_not_of(kSpaces), text.size()), number = 0;
  auto next = [&]() -> std::string_view {
    const size_t end = std::min(text.find('\n', at), text.size());
    std::string_view line = text.substr(at, end - at);
    at = std::min(end + 1, text.size());
    ++number;
    if (line.ends_with('\r')) line.remove_suffix(1);
    return line;
  };
  if (next() != kBegin) return bad(number, cat("expected '", kBegin, "'"));
  auto out = std::make_shared<std::vector<std::byte>>();
  out->reserve(text.size() / 4 * 3);
  for (bool last = false;;) {
    if (at >= text.size()) return bad(number, cat("the text ends without '", kEnd, "'"));
    const std::string_view line = next();
    if (line == kEnd) break;
    if (last) return bad(number - 1, "only the last line may be shorter than 64 characters");
    if (line.empty() || line.size() > kColumns) return bad(number, "expected 1 to 64 characters");
    last = line.size() < kColumns || line.ends_with('=');
    const auto bytes = read_base64(line, Padding::yes);
    if (!bytes.ok()) return bad(number, bytes.error().message());
    const auto* begin = reinterpret_cast<const std::byte*>(bytes->data());
    out->insert(out->end(), begin, begin + bytes->size());
  }
  const std::string_view rest = text.substr(at);
  if (rest.size() > kMostSpaces || rest.find_first_not_of(kSpaces) != std::string_view::npos)
    return bad(number + 1, "expected nothing after the end");
  if (out->empty()) return bad(number, "the text holds nothing");
  return Bytes{*out, out};
}

}  // namespace moka::format::age
