#pragma once
// Which descriptors of the process may be our device files: one word per number, so the wrapped libc calls cost other
// files one load. Files close in ways that we cannot see, so a number stays in the table until it is found to be
// another file. The socket's inode decides. A forked child inherits the table but not the files: they are recognised
// and refused.

#include <memory>

#include "doors/rdma_cm/event_file.hpp"

namespace fairlead::rdma_cm {

/// Returns whether it is a device file, of this process or inherited. Safe in any thread and in signal handlers.
bool is_device_file(int descriptor);
/// Adds a device file. Returns false if the number is beyond the table.
bool note_device_file(int descriptor, ino_t inode);
/// Returns whether this process itself has opened any, not a process that forked it.
bool has_device_files();
/// Call after a dup: registers the copy if the original is a device file.
void note_copy(int descriptor, int copy);
/// Returns the file. On failure returns null with errno: EBADF if it is no device file, EIO if it is inherited.
std::shared_ptr<EventFile> file_of(int descriptor);

}  // namespace fairlead::rdma_cm
