// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "trace/trace.h"

/// Lets other processes of the same user record this one while it runs (docs/seeing.md#a-program-that-runs).
///
/// One that attaches sends a line and gets a line:
///
///   moka-trace/1 list                          moka-trace/1 ok, then a line for each fact, until the end
///   moka-trace/1 record bytes=N seconds=S      moka-trace/1 ok, then packets of the trace until "stop" or the end
///                                              moka-trace/1 error TEXT
///
/// A thread that does nothing else answers. Without MOKA_TRACE_SOCKET, MOKA_TRACE_SIGNAL and allow() it does not exist.
namespace moka::trace {

/// Opens the socket at once. `where`: as Door::open. Returns its path. A process has one such socket: a new place
/// replaces the last one, and "" keeps it. Errors: io, invalid_argument.
Result<std::string> allow(const std::string& where);

/// Whether a socket is to be opened when the library is used first.
bool is_allowed_by_environment();
/// Opens what the environment asks for, and in the child of a fork what the parent had. Errors are shown.
void allow_as_asked();
/// Closes the socket and ends the thread.
void end_live();

/// For a fork, around those of record.h.
void hold_live();
void release_live();
void forget_live();

/// Writes all of the text, unless the other end is gone.
void say(int socket, std::string_view text);

// file.cpp, for the thread:

/// Begins a recording into a socket, of which it takes a copy, after the greeting. Error invalid_argument: the process
/// traces itself.
Status start_recording(int socket, std::string_view greeting, const Ring& ring);
bool is_recording();
/// Ends the recording, if there is one.
void stop_recording();
/// Has the end of the process and forks looked after. Every call but the first does nothing.
void prepare_process();

}  // namespace moka::trace
