#pragma once
// Sabotage: what engines would do that do not check the records of their peers. It changes the records in the rings
// before a pass reads them.

#include "shm/connections.hpp"

namespace fairlead::sim {

/// Makes all invalid records harmless, as if the engine skipped them and kept the peer.
void skip_invalid_records(shm::Connections& connections);
/// Changes the last byte of another peer's record if there is an invalid one, as if the engine had copied beyond the
/// end of a buffer. Returns whether it did.
bool overrun_invalid_record(shm::Connections& connections);

}  // namespace fairlead::sim
