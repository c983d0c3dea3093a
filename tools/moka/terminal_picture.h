#pragma once

#include <functional>
#include <string>

#include "io/picture.h"

namespace moka::cli {

/// How a terminal takes pictures: the graphics protocol of kitty, or the inline images of iTerm2.
enum class PictureProtocol { none, kitty, iterm2 };

/// Decides by KITTY_WINDOW_ID, TERM and TERM_PROGRAM, which `variable` reads (null: not set). None inside tmux and
/// screen, which do not hand pictures on.
PictureProtocol picture_protocol(const std::function<const char*(const char* name)>& variable);

/// What shows the picture when a terminal prints it. It ends with a new line.
std::string terminal_picture(const io::Picture& picture, PictureProtocol protocol);

}  // namespace moka::cli
