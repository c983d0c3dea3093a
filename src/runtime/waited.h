#pragma once

namespace moka::runtime {

/// Seconds that the threads of this process have been ready to run while others ran. 0 where the system does not tell.
double seconds_waited();

}  // namespace moka::runtime
