#pragma once
// Which device serves which address.

#include <cstdint>
#include <expected>
#include <optional>
#include <span>
#include <vector>

#include "base/file_descriptor.hpp"
#include "doors/ibverbs/identity.hpp"
#include "doors/rdma_cm/socket_name.hpp"

namespace fairlead::rdma_cm {

/// The device with this address, and its place in the list; none if no device has it.
const ibverbs::Identity* find_identity(const Ip& ip);
std::uint32_t index_of(const ibverbs::Identity& identity);

/// The addresses of devices that an end bound to `name` takes requests at; empty if there is none. Loopback is the
/// first device: others of this host reach it there.
std::vector<Ip> devices_of(const SocketName& name, bool takes_v6_only);

/// From which device to reach `target`, by the kernel's routes; an errno if there is no way.
std::expected<Ip, int> device_towards(const Ip& target);

/// Whether the kernel knows that no socket of this host has the UDP port at this address of a device of ours.
bool is_nobody_at(const Ip& ip, std::uint16_t port);

/// Sockets that hold the UDP port at these addresses; port 0: one that is free at all, which is stored. An errno.
std::expected<std::vector<base::FileDescriptor>, int> reserve(std::span<const Ip> ips, std::uint16_t& port);

}  // namespace fairlead::rdma_cm
