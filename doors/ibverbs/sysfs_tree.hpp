#pragma once
// The files under /sys/class/infiniband* and /dev/infiniband that a host with an RDMA device would have, in a private
// folder of this process. The folder goes at exit; one that a kill has left behind goes when the next process of this
// user makes its own (its lock tells that its owner is gone).

#include <string>

namespace fairlead::ibverbs {

/// Folder that holds the tree (".../sys/class/infiniband", ".../dev/infiniband"), made at the first call; empty if none
/// can be made. Any thread.
std::string sysfs_tree();

}  // namespace fairlead::ibverbs
