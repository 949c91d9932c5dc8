// Address commands: bind and resolve.
#include <fmt/format.h>

#include "doors/ibverbs/refusal.hpp"
#include "doors/rdma_cm/addressing.hpp"
#include "doors/rdma_cm/command.hpp"

namespace fairlead::rdma_cm {
namespace {

/// The caller holds the lock.
int bind_to(Id& id, SocketName name) {
  if (id.connection.state() != State::idle) return EINVAL;
  if (ibverbs::identities().empty()) return ENODEV;
  std::vector<Ip> ips = devices_of(name, id.takes_v6_only);
  if (ips.empty() && !is_any(name.ip)) {
    // It is no device's address. Find out whether it is local: an interface without a device (ENODEV), or nobody's.
    std::uint16_t any = 0;
    const auto held = reserve(std::span(&name.ip, 1), any);
    return held ? ENODEV : held.error();
  }
  if (!id.reuses_address || name.port == 0) {
    auto held = reserve(ips, name.port);
    // Datagram rsockets have a UDP socket of their own at this port and never listen. A later listen would fail.
    const bool may_share = id.connection.is_datagram() && name.port != 0;
    if (!held && !(may_share && held.error() == EADDRINUSE)) return held.error();
    if (held) id.reserved = std::move(*held);
  }
  id.source = name;
  // As in the kernel, a loopback address chooses no device: libfabric would take it for the device's own address, and
  // tell it to other hosts. But datagram rsockets create their queue pair right after this call.
  if (!is_any(name.ip) && (ips.front() == name.ip || id.connection.is_datagram())) {
    id.has_device = true;
    id.device = ips.front();
  }
  return id.connection.bind().error;
}

int bind_command(const Command& command, std::uint32_t handle, const std::optional<SocketName>& name) {
  if (!name) return EINVAL;
  const std::lock_guard guard(command.service.mutex());
  const auto id = command.service.find(handle, *command.file);
  return id ? bind_to(*id, *name) : ENOENT;
}

/// Logs why no device leads to the target. The program gets an event with the errno.
int note_no_way(const Ip& target, int error) {
  const std::string_view family = is_v4(target) ? "IPv4" : "IPv6";
  ibverbs::note_refusal(
      error == ENODEV && !ibverbs::identities().empty()
          ? fmt::format("rdma_resolve_addr: no device has an {} address, which {} needs: `fairlead run --devices N` "
                        "gives the program N of this host's addresses, --address IP another one",
                        family, to_text(target))
      : error == ENODEV
          ? fmt::format("rdma_resolve_addr: the program has no device: `fairlead run --check PROGRAM` tells why")
          : fmt::format("rdma_resolve_addr: this host has no route to {} (errno {}): `ip route get {}`",
                        to_text(target), error, to_text(target)));
  return error;
}

/// Chooses the device that leads to the target. Returns an errno if there is none.
int choose_device(Id& id) {
  if (!id.has_device) {
    auto device = device_towards(id.target.ip);
    // A group needs no route: it is reachable on its interface.
    const auto& all = ibverbs::identities();
    if (!device && is_group(id.target.ip) && !all.empty()) device = all.front().device.gid;
    if (!device) return note_no_way(id.target.ip, device.error());
    id.device = *device;
    id.has_device = true;
  }
  id.peer = is_any(id.target.ip) || is_loopback(id.target.ip) ? id.device : id.target.ip;
  if (is_v4(id.peer) != is_v4(id.device)) {
    ibverbs::note_refusal(
        fmt::format("rdma_resolve_addr: {} and the id's own address {} are of different families: "
                    "bind the id to an address of the same family",
                    to_text(id.peer), to_text(id.device)));
    return ENETUNREACH;
  }
  id.peer_address = listener_address(id.peer, id.target.port);
  return 0;
}

int resolve_command(const Command& command, std::uint32_t handle, const std::optional<SocketName>& source,
                    const std::optional<SocketName>& target) {
  if (!target) return EINVAL;
  Service& service = command.service;
  const std::lock_guard guard(service.mutex());
  const auto id = service.find(handle, *command.file);
  if (!id) return ENOENT;
  if (id->connection.state() > State::bound) return EINVAL;
  if (source && id->connection.state() == State::idle) {
    if (const int error = bind_to(*id, *source); error != 0) return error;
  }
  id->target = *target;
  const int failure = choose_device(*id);
  if (failure == 0) {
    if (id->source.family == Family::none) id->source.family = target->family;
    const bool stays_here = is_any(target->ip) || is_loopback(target->ip);
    if (is_any(id->source.ip)) id->source.ip = stays_here ? target->ip : id->device;
    if (id->source.port == 0) id->source.port = service.next_source_port();
  }
  const Step step = id->connection.resolve_address(failure);
  service.apply(id, step);
  return step.error;
}

}  // namespace

int bind_ip(const Command& command) {
  const auto wanted = command.get<rdma_ucm_bind_ip>();
  return bind_command(command, wanted.id, name_in(wanted.addr));
}

int bind(const Command& command) {
  const auto wanted = command.get<rdma_ucm_bind>();
  if (wanted.reserved != 0) return EINVAL;
  return bind_command(command, wanted.id, name_of_size(wanted.addr, wanted.addr_size));
}

int resolve_ip(const Command& command) {
  const auto wanted = command.get<rdma_ucm_resolve_ip>();
  if (wanted.src_addr.sin6_family != 0 && !name_in(wanted.src_addr)) return EINVAL;
  return resolve_command(command, wanted.id, name_in(wanted.src_addr), name_in(wanted.dst_addr));
}

int resolve_address(const Command& command) {
  const auto wanted = command.get<rdma_ucm_resolve_addr>();
  if (wanted.reserved != 0) return EINVAL;
  const auto source = name_of_size(wanted.src_addr, wanted.src_size);
  if (wanted.src_size != 0 && !source) return EINVAL;
  return resolve_command(command, wanted.id, source, name_of_size(wanted.dst_addr, wanted.dst_size));
}

int resolve_route(const Command& command) {
  const auto wanted = command.get<rdma_ucm_resolve_route>();
  const std::lock_guard guard(command.service.mutex());
  const auto id = command.service.find(wanted.id, *command.file);
  if (!id) return ENOENT;
  const Step step = id->connection.resolve_route(0);
  command.service.apply(id, step);
  return step.error;
}

}  // namespace fairlead::rdma_cm
