#include "net/machine_port.hpp"

#include <fairlead/net/address.hpp>

#include <cerrno>
#include <random>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "net/refused.hpp"

namespace fairlead::net {
namespace {

std::uint64_t random_seed() {
  std::random_device device;
  return std::uint64_t{device()} << 32 | device();
}

Result<std::shared_ptr<engine::Core>> attach(DomainState& domain, base::SocketAddress local) {
  // Inside the process there is no range of ports to search, so `*` means the first port.
  const auto first = static_cast<std::uint16_t>(domain.options.get(engine::Option::port_first));
  if (is_lo(local) && local.port == 0) local.port = first;
  auto core = domain.attach(local, domain.options);
  if (!core && core.error().system_errno == EADDRNOTAVAIL) {
    core.error().status = Status::not_available;
    core.error().message =
        fmt::format("address not local: this host has {}, but not {}",
                    fmt::join(local_nids().value_or(std::vector<std::string>()), ", "), nid_text(local));
  }
  return core;
}

// In the order of transport::PeerProblem.
constexpr PeerProblem kProblems[] = {PeerProblem::none, PeerProblem::never_heard, PeerProblem::nobody_listens,
                                     PeerProblem::other};

Result<engine::PortHandle> open_port(engine::Core& core, NetAddress& address) {
  const std::string where = fmt::format("{}:{}:{}", nid_text(core.address()), core.address().port, address.portal);
  if (address.tmid == 0) {
    std::uint32_t number = 0;
    auto port = core.open_port_dynamic(address.portal << kTmidBits | 1, kTmidMax, number);
    if (!port && port.error().status == Status::not_available) {
      port.error().message = fmt::format("no tmid of {} is free: all {} are in use", where, kTmidMax);
    }
    address.tmid = number & kTmidMax;
    return port;
  }
  auto port = core.open_port(address.port());
  if (!port && port.error().status == Status::in_use) {
    port.error().message =
        fmt::format("{}:{} is in use: take another tmid, or `*` for a free one", where, address.tmid);
  }
  return port;
}

/// Returns which of this domain's settings have no effect: the first domain to attach sets the engine's settings for
/// all.
std::string ignored_settings(const engine::Core& core, const engine::EngineOptions& wanted) {
  const auto differences =
      core.options() != nullptr ? core.options()->differences(wanted) : std::vector<std::string_view>();
  if (differences.empty()) return {};
  return fmt::format(
      "the engine at {} was started before with other settings, and these of this domain mean nothing: {}; open both "
      "domains with the same ones, or take another pid",
      core.address().to_string(), fmt::join(differences, ", "));
}

}  // namespace

MachinePort::MachinePort() : end_points(random_seed()) {}

Result<MachinePort::Opened> MachinePort::open(DomainState& domain, const NetAddress& wanted) {
  if (!wanted.has_good_portal()) {
    return refused(Status::invalid, fmt::format("portal {} is not in 1..{}", wanted.portal, kPortalMax));
  }
  auto core = attach(domain, wanted.engine);
  if (!core) return std::unexpected(std::move(core.error()));
  Opened opened{.core = std::move(*core), .handle = {}, .address = wanted, .ignored = {}};
  opened.address.engine = opened.core->address();
  // Before the port is opened, because this may throw for lack of memory.
  opened.ignored = ignored_settings(*opened.core, domain.options);
  const auto port = open_port(*opened.core, opened.address);
  if (!port) return std::unexpected(port.error());
  opened.handle = *port;
  return opened;
}

void MachinePort::settle(Opened opened) {
  core = std::move(opened.core);
  handle = opened.handle;
  core->watch_drops(handle);
  own = end_points.find_or_make({opened.address.engine, opened.address.port()});
}

Result<EndPoint> MachinePort::create_end_point(std::string_view text) {
  const auto address = parse_address(text);
  if (!address) return std::unexpected(address.error());
  if (address->has_star()) {
    return refused(Status::invalid, fmt::format("\"{}\" names no end point: `*` is for the start only", text));
  }
  if (!address->has_good_portal()) {
    return refused(Status::invalid,
                   fmt::format("portal {} of \"{}\" is not in 1..{}", address->portal, text, kPortalMax));
  }
  if (!is_same_network(address->engine, EndPointState::of(own)->remote.engine)) {
    return refused(Status::unreachable, fmt::format("{} is of another network than {}: start a transfer machine on a "
                                                    "nid of that network (fairlead::net::local_nids())",
                                                    text, own.address()));
  }
  return end_points.find_or_make({address->engine, address->port()});
}

std::string MachinePort::describe(const EndPoint& end_point) const {
  if (!core || !end_point) return {};
  return core->describe_peer(EndPointState::of(end_point)->remote.engine);
}

std::string MachinePort::describe(const EndPoint& end_point, Status status) const {
  if (!core || !end_point) return {};
  const engine::RemotePort& remote = EndPointState::of(end_point)->remote;
  const std::string process = fmt::format("{}:{}", nid_text(remote.engine), remote.engine.port);
  const std::uint32_t portal = remote.port >> kTmidBits, tmid = remote.port & kTmidMax;
  // What the peer itself has answered needs no look at the peer.
  if (status == Status::no_buffer) {
    return fmt::format(
        "no buffer queued at {}:{}:{} could take the message: queue more or larger receive buffers there", process,
        portal, tmid);
  }
  if (status == Status::stale) {
    return fmt::format(
        "the passive buffer at {} is not queued any more: it was used, has ended, or its machine has stopped; queue it "
        "again, and pass on its new descriptor",
        process);
  }
  std::string known = core->describe_failure(remote.engine, status);
  if (status != Status::refused || !known.empty()) return known;
  return fmt::format(
      "the process at {} has no transfer machine {}:{}: is that the port of another program, or has the machine "
      "stopped?",
      process, portal, tmid);
}

PeerFacts MachinePort::peer_facts(const EndPoint& end_point, Status status) const {
  if (!core || !end_point) return {};
  const transport::PeerFacts known = core->peer_facts(EndPointState::of(end_point)->remote.engine);
  const bool has_no_machine =
      status == Status::refused && known.problem == transport::PeerProblem::none && known.is_met;
  return {.problem = has_no_machine ? PeerProblem::no_machine : kProblems[std::to_underlying(known.problem)],
          .is_translated = known.is_translated,
          .release = transport::release_text(known.release),
          .datagram_there = known.datagram_size,
          .datagram_here = known.longest_probe};
}

std::string MachinePort::describe_flight(const EndPoint& end_point) const {
  if (!core || !end_point) return {};
  return core->describe_flight(EndPointState::of(end_point)->remote.engine);
}

}  // namespace fairlead::net
