#include "transport/lost_peers.hpp"

#include <fmt/format.h>

#include <chrono>
#include <cstring>
#include <utility>

#include "base/say.hpp"
#include "wire/segment.hpp"

namespace fairlead::transport {
namespace {

double in_seconds(base::Duration duration) {
  return std::chrono::duration<double>(duration).count();
}

double in_milliseconds(base::Duration duration) {
  return std::chrono::duration<double, std::milli>(duration).count();
}

std::string_view told_by_icmp(link::Obstacle obstacle) {
  switch (obstacle) {
    case link::Obstacle::nobody_listens:
      return "nobody listens there: has the peer's process ended? Start it again";
    case link::Obstacle::prohibited:
      return "a firewall rejects the datagrams: permit UDP to that port in the rules of its host and of the routers "
             "between";
    default:
      return "no way leads to that host: is it up, and the network between?";
  }
}

std::string describe_status(const std::string& peer, const link::Notice& notice, double ago) {
  switch (notice.status) {
    case Status::unreachable:
      return fmt::format("never heard from {} in {:.1f} s ({} attempts): is the peer running, and its address right?",
                         peer, in_seconds(notice.silent_for), notice.resends + 1);
    case Status::refused:
      return fmt::format(
          "nobody listens at {}, or a firewall rejects what is sent there ({:.1f} s ago): start the peer, or check the "
          "port",
          peer, ago);
    case Status::restarted:
      return fmt::format("{} restarted {:.1f} s ago: operations pending to the old process are lost; connect again",
                         peer, ago);
    default:
      return fmt::format(
          "no ack from {} for {:.1f} s (rto {:.1f} ms, {} resends, last heard {:.1f} s ago): is the peer running?",
          peer, in_seconds(notice.silent_for), in_milliseconds(notice.resend_after), notice.resends,
          in_seconds(notice.silent_for) + ago);
  }
}

}  // namespace

bool LostPeers::add(const base::SocketAddress& peer, const link::Notice& notice, base::Instant now,
                    std::string reason) {
  const auto before = losses_.find(peer);
  const bool has_left =
      notice.diagnosis == link::Diagnosis::left || (before != losses_.end() && before->second.has_left);
  if (before != losses_.end() || losses_.size() < kMost)
    base::say(
        [&] { losses_[peer] = {.notice = notice, .when = now, .has_left = has_left, .reason = std::move(reason)}; });
  return has_left;
}

void LostPeers::blame(const base::SocketAddress& peer, Offence offence) {
  if (const auto loss = losses_.find(peer); loss != losses_.end()) loss->second.offence = offence;
}

std::string LostPeers::describe(const base::SocketAddress& peer, base::Instant now) const {
  const auto found = losses_.find(peer);
  if (found == losses_.end()) return {};
  const Loss& loss = found->second;
  const double ago = in_seconds(now - loss.when);
  if (loss.offence != Offence::none)
    return fmt::format("this engine expelled {} {:.1f} s ago: it {}", peer.to_string(), ago,
                       transport::describe(loss.offence));
  if (loss.has_left)
    return fmt::format("{} ended {:.1f} s ago, as it had announced: start it again", peer.to_string(), ago);
  const bool is_without_way =
      loss.notice.diagnosis == link::Diagnosis::no_route || loss.notice.diagnosis == link::Diagnosis::not_sent;
  if (is_without_way && peer.is_loopback())
    return fmt::format("cannot reach {} ({:.1f} s ago): is the interface lo down? `ip link set lo up`",
                       peer.to_string(), ago);
  std::string known = describe_diagnosis(peer.to_string(), loss, ago);
  return known.empty() ? describe_status(peer.to_string(), loss.notice, ago) : known;
}

PeerProblem LostPeers::problem(const base::SocketAddress& peer) const {
  const auto found = losses_.find(peer);
  if (found == losses_.end()) return PeerProblem::none;
  const Loss& loss = found->second;
  if (loss.offence != Offence::none || loss.has_left) return PeerProblem::other;
  const link::Notice& notice = loss.notice;
  switch (notice.diagnosis) {
    case link::Diagnosis::told_by_icmp:
      return notice.obstacle == link::Obstacle::nobody_listens ? PeerProblem::nobody_listens : PeerProblem::other;
    case link::Diagnosis::none:
    case link::Diagnosis::nothing_heard:
      return notice.status == Status::unreachable ? PeerProblem::never_heard
             : notice.status == Status::refused   ? PeerProblem::nobody_listens
                                                  : PeerProblem::other;
    default:
      return PeerProblem::other;
  }
}

/// Empty if the status is explanation enough.
std::string LostPeers::describe_diagnosis(const std::string& peer, const Loss& loss, double ago) const {
  const link::Notice& notice = loss.notice;
  switch (notice.diagnosis) {
    case link::Diagnosis::no_route:
      return fmt::format(
          "cannot reach {} ({:.1f} s ago): this host has no route to it, or no host answers at that address: check the "
          "address, `ip route get` and the interfaces",
          peer, ago);
    case link::Diagnosis::not_let_out:
      return fmt::format(
          "a firewall of this host drops datagrams to {} ({:.1f} s ago): see the output rules (`nft list ruleset`, "
          "`iptables -S OUTPUT`)",
          peer, ago);
    case link::Diagnosis::not_sent:
      return fmt::format(
          "cannot reach {} ({:.1f} s ago): this host's kernel refuses to send there ({}): is the interface up, does it "
          "still have this engine's address, is there a route? See `ip address` and `ip route get`",
          peer, ago, std::strerror(notice.send_errno));
    case link::Diagnosis::prohibited:
      return fmt::format(
          "a firewall rejects datagrams to {} ({:.1f} s ago; ICMP: administratively prohibited): permit UDP to that "
          "port in the rules of its host and of the routers between",
          peer, ago);
    case link::Diagnosis::told_by_icmp:
      return fmt::format("no ack from {} for {:.1f} s, and an ICMP message says that {}", peer,
                         in_seconds(notice.silent_for), told_by_icmp(notice.obstacle));
    case link::Diagnosis::no_host:
      return fmt::format(
          "cannot reach {} ({:.1f} s ago): no host answers at that address (ARP or neighbour discovery, `ip "
          "neighbour`): is the address right, and is that host up?",
          peer, ago);
    case link::Diagnosis::too_long:
      return fmt::format(
          "no ack from {} for {:.1f} s: short datagrams arrive, those of {} bytes do not: raise the MTU on the path to "
          "it",
          peer, in_seconds(notice.silent_for), wire::kDatagramSizeLeast);
    case link::Diagnosis::stuck:
      return fmt::format(
          "{} began a message but sent no more of it for {:.1f} s, although it is heard: is it overloaded? If its path "
          "is that slow, raise give_up_after",
          peer, in_seconds(give_up_after_));
    case link::Diagnosis::refused_there:
      return fmt::format("{} refused this engine ({:.1f} s ago): {}", peer, ago,
                         seal::to_string(notice.refused, seal::Teller::refused));
    case link::Diagnosis::refused_here:
      return fmt::format("traffic with {} has to be sealed, and cannot be: {}", peer,
                         notice.refused == seal::Refused::unknown_key
                             ? "our known peers have no public key for it: add its line (`fairlead keygen "
                               "--public` there)"
                             : "this engine has no key, or an unusable one");
    case link::Diagnosis::keys_not_changed:
      return fmt::format(
          "the session with {} ended ({:.1f} s ago): it did not renew the session keys, so one of the two no longer "
          "accepts the other's key",
          peer, ago);
    case link::Diagnosis::one_direction:
      return fmt::format(
          "{} is heard, but does not hear us ({:.1f} s, {} resends): look for a firewall or a route that lets "
          "datagrams "
          "pass in one direction only",
          peer, ago, notice.resends);
    case link::Diagnosis::process_ended:
      return fmt::format(
          "the process at {} ended {:.1f} s ago without closing its connections: was it killed, or did it crash? Start "
          "it again",
          peer, ago);
    case link::Diagnosis::cut_there:
      return fmt::format(
          "{} ended the connection through shared memory {:.1f} s ago, and still runs: it took this process for "
          "stopped "
          "or faulty (FAIRLEAD_LOG=info there names the reason)",
          peer, ago);
    case link::Diagnosis::cut_here:
      return fmt::format("this engine ended the connection through shared memory to {} {:.1f} s ago: {}", peer, ago,
                         loss.reason);
    case link::Diagnosis::not_shared:
      return fmt::format("cannot reach {} through shared memory, and path=shm permits no other path: {}", peer,
                         loss.reason.empty() ? "is the peer running?" : loss.reason);
    default:
      return {};
  }
}

}  // namespace fairlead::transport
