#pragma once
// Maps addresses to devices.

#include <cstdint>
#include <expected>
#include <optional>
#include <span>
#include <vector>

#include "base/file_descriptor.hpp"
#include "doors/ibverbs/identity.hpp"
#include "doors/rdma_cm/socket_name.hpp"

namespace fairlead::rdma_cm {

/// Returns the device with this address; null if there is none. index_of() returns its place in the list.
const ibverbs::Identity* find_identity(const Ip& ip);
std::uint32_t index_of(const ibverbs::Identity& identity);

/// Returns the device addresses at which an end bound to `name` accepts requests; empty if there is none. A loopback
/// address maps to the device that device_towards() gives to local peers.
std::vector<Ip> devices_of(const SocketName& name, bool takes_v6_only);

/// Returns the device address from which the kernel's routes reach `target`, or an errno if there is no route. For a
/// loopback address: the first device of its family, else the first.
std::expected<Ip, int> device_towards(const Ip& target);

/// Returns whether the kernel reports that no local socket has the UDP port at this device address.
bool is_nobody_at(const Ip& ip, std::uint16_t port);

/// Returns sockets that hold the UDP port at these addresses, or an errno. For port 0, chooses a port that is free at
/// all of them and stores it.
std::expected<std::vector<base::FileDescriptor>, int> reserve(std::span<const Ip> ips, std::uint16_t& port);

}  // namespace fairlead::rdma_cm
