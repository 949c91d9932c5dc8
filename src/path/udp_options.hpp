#pragma once
// Options of a UDP path, and what the kernel granted.

#include <cstdint>

#include "base/socket_address.hpp"

namespace fairlead::path {

struct UdpOptions {
  /// "::" is any address of both families, "0.0.0.0" any of IPv4; port 0 is any free port.
  base::SocketAddress local;
  /// More than one: the first free port of [local.port, local.port + port_count) is used.
  std::uint32_t port_count = 1;
  std::uint32_t receive_buffer_bytes = 4u << 20;
  std::uint32_t send_buffer_bytes = 4u << 20;
  /// How many connected sockets set_hot() may open beside the main one, 0 to 16. Each has its own buffers.
  std::uint32_t hot_sockets_max = 4;
  /// Longer arrivals are dropped and counted as truncated. 64 KiB holds every UDP datagram.
  std::uint32_t arrival_bytes_max = 65'536;
  /// GSO cuts trains and GRO merges arrivals in the kernel; off only for measurements or tests.
  bool wants_gso = true;
  bool wants_gro = true;
};

/// What opening a path resulted in, to explain a slow run.
struct UdpFacts {
  std::uint32_t receive_buffer_granted = 0;  // less than asked: raise net.core.rmem_max
  std::uint32_t send_buffer_granted = 0;     // less than asked: raise net.core.wmem_max
  bool has_gso = false;
  bool has_gro = false;
  bool has_hot_sockets = false;
  std::uint32_t hot_sockets = 0;  // open now
  std::uint64_t gso_refused = 0;  // trains sent one datagram at a time, because a device refused them whole
};

}  // namespace fairlead::path
