#pragma once
// An id as the command interface knows it: names, options, and the connection behind.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/file_descriptor.hpp"
#include "doors/rdma_cm/connection.hpp"
#include "doors/rdma_cm/event_file.hpp"
#include "doors/rdma_cm/places.hpp"
#include "doors/rdma_cm/socket_name.hpp"

namespace fairlead::rdma_cm {

/// A multicast group that an id has joined. Its queue pair is attached by librdmacm.
struct Membership {
  std::uint32_t handle = 0;
  std::uint64_t uid = 0;  // the program's
  Ip group{};
  std::uint32_t events_reported = 0;
};

struct Id {
  static constexpr std::size_t kGroupsMax = 64;

  Id(std::uint32_t number, Connection of) : handle(number), connection(of) {}

  std::uint32_t handle;
  std::uint64_t uid = 0;  // the program's; 0: a request that it has not accepted
  std::shared_ptr<EventFile> file;
  std::uint32_t events_reported = 0;
  std::uint16_t port_space = 0;
  std::uint8_t qp_type = 0;
  Connection connection;

  SocketName source, target;  // as the program gave them, or sees them
  bool has_device = false;
  Ip device{};                                 // address of our device
  Ip peer{};                                   // of the peer's
  std::string peer_address;                    // of its manager
  std::vector<base::FileDescriptor> reserved;  // sockets that keep the port until the id listens

  // A listener's.
  std::vector<Ip> listens;
  Places backlog;  // for requests that the program has not been told of

  Terms terms;  // ours
  std::uint8_t tos = 0;
  std::uint8_t ack_timeout = 0;  // 0: the default
  bool reuses_address = false, takes_v6_only = false;

  std::vector<std::shared_ptr<Membership>> groups;

  Instant armed = kNever;  // as the service's timers have it
};

}  // namespace fairlead::rdma_cm
