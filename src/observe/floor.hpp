#pragma once
// Measures the kernel's own sockets, between two processes that spin on two cores and do nothing else: the floor for
// each of our figures over UDP. It uses plain system calls and none of our path's code, in the same run as the figure.
// The second process is forked here, and has ended when the function returns.

#include <fairlead/error.hpp>

#include <cstdint>
#include <string>

#include "base/time.hpp"
#include "observe/histogram.hpp"

namespace fairlead::observe {

/// Where one of the two processes has its socket.
struct FloorEnd {
  std::uint32_t address = 0x7f00'0001;  // IPv4, host order
  int network = -1;                     // as of base::NetworkVisit
};

struct FloorOptions {
  std::uint32_t bytes = 8;                     // of a message, up to 1 GiB
  std::uint32_t datagram_size = 1472;          // the kernel cuts longer messages into trains (GSO)
  std::uint32_t in_flight_bytes = 256u << 10;  // of the UDP stream
  base::Duration duration = std::chrono::milliseconds(500);
  int cpu_near = 0;  // of the calling thread, whose affinity is restored
  int cpu_far = 1;
  FloorEnd near = {}, far = {};
  std::string congestion_control = {};  // of TCP; empty: the kernel's default. not_supported if the kernel lacks it
};

struct ExchangeFloor {
  Histogram one_way;  // half of each round trip
};

struct StreamFloor {
  std::uint64_t bytes = 0;  // bytes that arrived
  double gb_per_s = 0;
  double cpu_s_per_gb = 0;  // of both processes
};

/// Ping-pong messages over connected UDP sockets.
Result<ExchangeFloor> floor_udp_exchange(const FloorOptions& options);

/// Trains one way, cut by GSO and merged by GRO. A word in shared memory limits the bytes in flight, at no cost. If
/// `bytes` is below the datagram size, datagrams are that small.
Result<StreamFloor> floor_udp_stream(const FloorOptions& options);

/// Ping-pong messages over one TCP connection (without Nagle's delay). A wait that the end cuts short counts, too.
Result<ExchangeFloor> floor_tcp_exchange(const FloorOptions& options);

/// Writes of `bytes` one way over one TCP connection.
Result<StreamFloor> floor_tcp_stream(const FloorOptions& options);

/// Ping-pong messages through shared memory: one cache line each, if they are short.
Result<ExchangeFloor> floor_shm_exchange(const FloorOptions& options);

/// Messages one way through a ring in shared memory, copied in and out.
Result<StreamFloor> floor_shm_stream(const FloorOptions& options);

}  // namespace fairlead::observe
