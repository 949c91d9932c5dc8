#pragma once
// A full barrier in all threads of the processes that registered, paid by the one who asks. It takes the place of the
// fence on the other side of a handshake: whoever publishes often and is asked seldom then needs none.

namespace fairlead::base {

/// Puts this process under the barriers of others; false where the kernel cannot (then nobody may rely on it). Once is
/// enough, more do no harm.
bool register_for_barriers() noexcept;

/// After this, each registered process that runs sees our earlier writes, and its writes before are seen by us. Only
/// after register_for_barriers() said true. Takes microseconds.
void barrier_everywhere() noexcept;

}  // namespace fairlead::base
