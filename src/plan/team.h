#pragma once

namespace moka::plan {

/// Puts the threads of the calling thread's OpenMP team on processors of their own, once for each size of the team. New
/// threads often begin on their creator's processor, where each waits for the other's time slice until the system moves
/// one of them. Afterwards they may run anywhere again. Does nothing where threads are bound by the caller.
void spread_team(int threads);

}  // namespace moka::plan
