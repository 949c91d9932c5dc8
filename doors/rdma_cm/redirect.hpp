#pragma once
// Opens the connection manager's device file, for the wrappers of open().

namespace fairlead::rdma_cm {

/// Returns a descriptor; -1 with errno on failure.
int open_device_file(int flags);

}  // namespace fairlead::rdma_cm
