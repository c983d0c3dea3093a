// SPDX-License-Identifier: Apache-2.0
#include "terminal_picture.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "moka/files.h"
#include "view/base64.h"

namespace moka::cli {
namespace {

/// kitty's limit on the characters of base64 in one sequence.
constexpr size_t kPart = 4096;

std::string kitty(const std::string& data) {
  std::string out;
  for (size_t from = 0; from < data.size(); from += kPart) {
    const bool is_last = from + kPart >= data.size();
    // The first part announces a PNG (f=100) to show at once (a=T), without a reply (q=2).
    out += fmt::format("\033_G{}m={};{}\033\\", from == 0 ? "f=100,a=T,q=2," : "", is_last ? 0 : 1,
                       std::string_view(data).substr(from, kPart));
  }
  return out;
}

}  // namespace

PictureProtocol picture_protocol(const std::function<const char*(const char* name)>& variable) {
  const auto text = [&](const char* name) {
    const char* value = variable(name);
    return std::string_view(value ? value : "");
  };
  const std::string_view term = text("TERM"), program = text("TERM_PROGRAM");
  if (!text("TMUX").empty() || term.starts_with("tmux") || term.starts_with("screen")) return PictureProtocol::none;
  if (!text("KITTY_WINDOW_ID").empty() || term == "xterm-kitty" || term == "xterm-ghostty" || program == "ghostty")
    return PictureProtocol::kitty;
  if (program == "iTerm.app" || program == "WezTerm") return PictureProtocol::iterm2;
  return PictureProtocol::none;
}

std::string terminal_picture(const Image& picture, PictureProtocol protocol) {
  const std::vector<std::byte> png = encode_png(picture);
  const std::string data = base64_of(png);
  if (protocol == PictureProtocol::iterm2)
    return fmt::format("\033]1337;File=inline=1;size={}:{}\a\n", png.size(), data);
  return protocol == PictureProtocol::kitty ? kitty(data) + "\n" : "";
}

}  // namespace moka::cli
