#pragma once
// What the kernel holds and has thrown away of the UDP sockets of a port.

#include <cstdint>

namespace fairlead::tests {

struct KernelQueue {
  std::uint64_t waiting = 0, dropped = 0;
};

KernelQueue kernel_queue(int port);

}  // namespace fairlead::tests
