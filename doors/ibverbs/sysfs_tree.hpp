#pragma once
// The files that a host with an RDMA device has under /sys/class/infiniband* and /dev/infiniband, emulated in a private
// folder of this process. The process removes the folder at exit. If it was killed, the next process of this user does:
// the free lock shows that the owner is gone.

#include <string>

namespace fairlead::ibverbs {

/// Returns the folder that contains ".../sys/class/infiniband" and ".../dev/infiniband"; creates it on the first call.
/// Empty if that fails. Thread-safe.
std::string sysfs_tree();

}  // namespace fairlead::ibverbs
