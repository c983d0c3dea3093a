// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace moka::runtime {

/// The threads whose waiting counts.
enum class Waiting { process, thread };

/// Seconds that the threads of this process, or the calling thread, were ready to run but waited for a processor. 0 if
/// the system does not report it.
double seconds_waited(Waiting whose);
/// The type of seconds_waited, which tests replace.
using Waited = double (*)(Waiting whose);

}  // namespace moka::runtime
