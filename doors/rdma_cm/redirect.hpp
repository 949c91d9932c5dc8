#pragma once
// Opening the connection manager's device file, for the wrappers of open().

namespace fairlead::rdma_cm {

/// A descriptor of it; -1 with errno.
int open_device_file(int flags);

}  // namespace fairlead::rdma_cm
