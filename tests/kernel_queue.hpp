#pragma once
// Bytes that the kernel holds for the UDP sockets of a port, and datagrams that it has dropped.

#include <cstdint>

namespace fairlead::tests {

struct KernelQueue {
  std::uint64_t waiting = 0, dropped = 0;
};

KernelQueue kernel_queue(int port);

}  // namespace fairlead::tests
