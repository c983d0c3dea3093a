// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>

#include "moka/feature.h"

namespace moka::cli {

/// How a terminal takes pictures: the graphics protocol of kitty, or the inline images of iTerm2.
enum class PictureProtocol { none, kitty, iterm2 };

/// Decides by KITTY_WINDOW_ID, TERM and TERM_PROGRAM, which `variable` reads (null: not set). None inside tmux and
/// screen, which do not hand pictures on.
PictureProtocol picture_protocol(const std::function<const char*(const char* name)>& variable);

/// The text that makes a terminal show the picture. Ends with a newline.
std::string terminal_picture(const Image& picture, PictureProtocol protocol);

}  // namespace moka::cli
