#pragma once
// An id of the command interface: names, options, and its connection.

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

/// A multicast group that an id has joined. librdmacm attaches the queue pair.
struct Membership {
  std::uint32_t handle = 0;
  std::uint64_t uid = 0;  // set by the program
  Ip group{};
  std::uint32_t events_reported = 0;
};

struct Id {
  static constexpr std::size_t kGroupsMax = 64;

  Id(std::uint32_t number, Connection of) : handle(number), connection(of) {}

  std::uint32_t handle;
  std::uint64_t uid = 0;  // set by the program; 0: a request that it has not accepted yet
  std::shared_ptr<EventFile> file;
  std::uint32_t events_reported = 0;
  std::uint16_t port_space = 0;
  std::uint8_t qp_type = 0;
  Connection connection;

  SocketName source, target;  // as the program set them or sees them
  bool has_device = false;
  Ip device{};                                 // address of our device
  Ip peer{};                                   // address of the peer's device
  std::string peer_address;                    // address of the peer's manager
  std::vector<base::FileDescriptor> reserved;  // sockets that hold the port until the id listens

  // Members of a listener.
  std::vector<Ip> listens;
  Places backlog;  // for requests not reported to the program yet

  Terms terms;  // our terms
  std::uint8_t tos = 0;
  std::uint8_t ack_timeout = 0;  // 0: the default
  bool reuses_address = false, takes_v6_only = false;

  std::vector<std::shared_ptr<Membership>> groups;

  Instant armed = kNever;  // the deadline that the service's timers have for it
};

}  // namespace fairlead::rdma_cm
