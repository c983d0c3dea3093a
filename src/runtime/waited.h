#pragma once

namespace moka::runtime {

/// Whose waiting counts.
enum class Waiting { process, thread };

/// Seconds that the threads of this process, or the calling one, have been ready to run while others ran. 0 where the
/// system does not tell.
double seconds_waited(Waiting whose);
/// seconds_waited, or what a test has in its place.
using Waited = double (*)(Waiting whose);

}  // namespace moka::runtime
