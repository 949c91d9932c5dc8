#pragma once
// Which descriptors of the process may be device files of ours: one word for each number, so that the wrapped calls of
// libc cost everybody else one load. A number stands in it until it is seen to be another file's, since files close in
// ways that nobody sees; so the socket's inode decides. A forked child inherits the table, but not the files: they are
// recognized and refused.

#include <memory>

#include "doors/rdma_cm/event_file.hpp"

namespace fairlead::rdma_cm {

/// Whether it is a device file, of this process or inherited. Any thread, also in a signal handler.
bool is_device_file(int descriptor);
/// False if the number is beyond the table.
bool note_device_file(int descriptor, ino_t inode);
/// Whether this process, and not one that forked it, has opened any.
bool has_device_files();
/// After a dup: the copy is what the original is.
void note_copy(int descriptor, int copy);
/// Null with errno: EBADF if it is none, EIO if it is inherited.
std::shared_ptr<EventFile> file_of(int descriptor);

}  // namespace fairlead::rdma_cm
