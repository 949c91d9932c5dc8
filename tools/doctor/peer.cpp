#include "tools/doctor/peer.hpp"

#include <fairlead/net.hpp>

#include <fmt/format.h>
#include <sys/socket.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <ranges>
#include <thread>
#include <utility>

#include "tools/base/address.hpp"
#include "tools/base/describe_failure.hpp"
#include "tools/base/free_port.hpp"
#include "tools/doctor/way.hpp"

namespace fairlead::tools {
namespace {

using Microseconds = std::chrono::duration<double, std::micro>;

constexpr auto kAnswerWithin = std::chrono::seconds(3);
// An unused address: the engine answers for machines that do not exist.
constexpr const char *kPortal = "63", *kTmid = "4095";

/// Probes the engine at an end point.
class Prober {
 public:
  Prober(net::Domain& domain, net::TransferMachine& machine, net::EndPoint peer)
      : machine_(machine), peer_(std::move(peer)), buffer_(net::Buffer::allocate(domain, 64).value()) {
    buffer_->set_callback([this](const net::BufferEvent& event) { status_ = event.status; });
  }

  /// Returns the time until the answer, or nullopt if there was none.
  std::optional<Microseconds> ask() {
    const auto start = std::chrono::steady_clock::now();
    status_.reset();
    const Status added = machine_.add(
        *buffer_, net::MessageSend{.to = peer_, .length = 1, .deadline = start + kAnswerWithin, .is_confirmed = true});
    if (added != Status::ok) {
      status_ = added;
      return std::nullopt;
    }
    while (!status_) {
      if (const auto has_event = machine_.wait(start + 2 * kAnswerWithin); !has_event) break;
      machine_.deliver_all();
    }
    if (!is_answered()) return std::nullopt;
    return std::chrono::steady_clock::now() - start;
  }
  Status status() const { return status_.value_or(Status::silent); }
  std::string why() const { return describe_failure(machine_, peer_, status()); }
  net::PeerFacts facts() const { return machine_.peer_facts(peer_, status()); }
  std::string known() const { return machine_.describe(peer_); }

 private:
  /// Returns whether an engine answered: it has no such machine. The peer's kernel may have refused instead, or the
  /// engine refused this one, for example because of its key.
  bool is_answered() const {
    if (status_ == Status::refused) return facts().problem == net::PeerProblem::no_machine;
    return status_ == Status::no_buffer || status_ == Status::ok;
  }

  net::TransferMachine& machine_;
  net::EndPoint peer_;
  std::unique_ptr<net::Buffer> buffer_;
  std::optional<Status> status_;
};

std::uint64_t counter(const net::TransferMachine& machine, std::string_view name) {
  const auto all = machine.engine_counters();
  const auto found = std::ranges::find(all, name, &net::Counter::name);
  return found == all.end() ? 0 : found->value;
}

/// Counts the probes that lost a datagram on their way there, each probe once.
class LossCount {
 public:
  explicit LossCount(const net::TransferMachine& machine)
      : machine_(machine), sent_again_(counter(machine, kAgain)), needless_(counter(machine, kNeedless)) {}

  /// Call it after each probe.
  void add_probe() {
    const std::uint64_t now = counter(machine_, kAgain);
    probes_ += now > seen_ ? 1 : 0;
    seen_ = now;
  }
  /// Waits for the peer's reports of what has arrived twice, for as long as two more probes may take.
  void wait_for_reports(net::TransferMachine& machine, Microseconds longest) const {
    constexpr std::chrono::milliseconds kLeast{50};
    const auto patience = std::chrono::ceil<std::chrono::milliseconds>(2 * longest) + kLeast;
    const auto end = std::chrono::steady_clock::now() + std::min<std::chrono::milliseconds>(patience, kAnswerWithin);
    while (needless() < sent_again() && std::chrono::steady_clock::now() < end)
      (void)machine.wait(std::min(end, std::chrono::steady_clock::now() + kLeast));
  }

  std::uint64_t sent_again() const { return counter(machine_, kAgain) - sent_again_; }
  /// Returns how many of these the peer had received already: its answer was late or lost, and not the probe.
  std::uint64_t needless() const { return std::min(counter(machine_, kNeedless) - needless_, sent_again()); }
  std::uint64_t lost() const { return std::min(probes_, sent_again() - needless()); }

 private:
  static constexpr std::string_view kAgain = "link.resends", kNeedless = "link.duplicates_reported";

  const net::TransferMachine& machine_;
  std::uint64_t sent_again_, needless_, seen_ = sent_again_;
  std::uint64_t probes_ = 0;  // during which something was sent again
};

void tell_loss(Findings& findings, const LossCount& count, unsigned probes) {
  std::string text = fmt::format("{} of {} probes were lost on the way there", count.lost(), probes);
  if (count.sent_again() > 0) {
    text += fmt::format(" ({} sent again; {} of those had arrived: only the answer was late or lost)",
                        count.sent_again(), count.needless());
  }
  const bool is_lossy = count.lost() > 0;
  findings.push_back({is_lossy ? Verdict::note : Verdict::good, "loss", std::move(text),
                      is_lossy ? "fairlead explain link.resends" : ""});
}

void tell_release(Findings& findings, const std::string& release) {
  if (release.empty()) return;  // through shared memory, where connections need the same release
  if (release == FAIRLEAD_VERSION)
    return findings.push_back({Verdict::good, "version", fmt::format("both ends have release {}", release), {}});
  findings.push_back({Verdict::note, "version",
                      fmt::format("the peer has release {}, this is {}", release, FAIRLEAD_VERSION),
                      "run the same release at both ends"});
}

/// Asks the peer until probes of the path MTU by both sides have ended, or none is sent for some time.
void tell_datagrams(Findings& findings, Prober& prober, const net::TransferMachine& machine, const Way& way) {
  constexpr auto kQuiet = std::chrono::milliseconds(1500);  // longer than the time between two probes of the link
  constexpr auto kAtMost = std::chrono::seconds(10);
  const auto end = std::chrono::steady_clock::now() + kAtMost;
  auto quiet_at = std::chrono::steady_clock::now() + kQuiet;
  auto sizes = datagram_sizes_of(prober.facts(), way);
  for (std::uint64_t seen = 0;
       sizes && !are_final(*sizes) && std::chrono::steady_clock::now() < std::min(quiet_at, end);
       sizes = datagram_sizes_of(prober.facts(), way)) {
    const std::uint64_t probes = counter(machine, "link.probes_sent") + counter(machine, "link.probes_received");
    if (std::exchange(seen, probes) != probes) quiet_at = std::chrono::steady_clock::now() + kQuiet;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  if (!sizes) return;  // through shared memory
  findings.push_back(judge(*sizes));
  findings.push_back({Verdict::good, "firewall", "datagrams pass both ways after this side has sent the first", {}});
}

/// Returns what else may help. Causes that are certain name their remedy themselves.
std::string remedy_of(net::PeerProblem problem) {
  if (!is_program_missing(problem)) return {};
  return "start a program that uses Fairlead there, such as fairlead bulkping server; look at the firewalls on both "
         "hosts (UDP, also back to our port)";
}

/// Returns nullopt if no datagrams lead there, as at 0@lo.
std::optional<Way> way_to(const net::TransferMachine& machine, const std::string& address) {
  const auto own = engine_address_in(machine.end_point().address()), peer = engine_address_in(address);
  return own && peer ? std::optional(Way{*own, *peer}) : std::nullopt;
}

void ask(Findings& findings, net::Domain& domain, net::TransferMachine& machine, const std::string& address,
         unsigned probes) {
  auto to = machine.create_end_point(address);
  if (!to) return findings.push_back({Verdict::trouble, "peer", to.error().message, {}});
  Prober prober(domain, machine, std::move(*to));
  const auto way = way_to(machine, address);
  std::vector<double> took;
  LossCount losses(machine);
  for (unsigned i = 0; i < probes; ++i) {
    const auto one = prober.ask();
    if (!one) {
      const net::PeerProblem problem = prober.facts().problem;
      findings.push_back({Verdict::trouble, "peer", prober.why(), remedy_of(problem)});
      if (way && problem == net::PeerProblem::never_heard) findings.push_back(find_blocked_direction(*way));
      return;
    }
    took.push_back(one->count());
    losses.add_probe();
  }
  const net::PeerFacts facts = prober.facts();
  findings.push_back(
      {facts.is_translated ? Verdict::trouble : Verdict::good, "peer", prober.known(),
       facts.is_translated ? "use addresses that both hosts can reach, such as those of the hosts' network" : ""});
  tell_release(findings, facts.release);
  std::ranges::sort(took);
  findings.push_back({Verdict::good,
                      "latency",
                      fmt::format("{} probes: least {:.1f}, median {:.1f}, 99 % {:.1f} us there and back", took.size(),
                                  took.front(), took[took.size() / 2], took[took.size() * 99 / 100]),
                      {}});
  losses.wait_for_reports(machine, Microseconds(took.back()));
  tell_loss(findings, losses, probes);
  if (way) tell_datagrams(findings, prober, machine, *way);
}

/// Starts a machine at a nid.
Result<std::unique_ptr<net::TransferMachine>> start_at(net::Domain& domain, const std::string& nid) {
  // A free port, because a server that starts soon wants the first one of the range.
  const std::uint16_t port = free_port(SOCK_DGRAM);
  const auto address =
      complete_address(nid, {.pid = port == 0 ? "*" : std::to_string(port), .portal = "62", .tmid = "*"});
  if (!address) return std::unexpected(address.error());
  auto machine = std::make_unique<net::TransferMachine>(domain);
  if (auto chosen = machine->deliver_synchronously(); !chosen) return std::unexpected(std::move(chosen.error()));
  if (auto started = machine->start_and_wait(*address); !started) return std::unexpected(std::move(started.error()));
  return machine;
}

/// Starts a machine at any address of this host, the loopback first: a host engine may serve only some of them. At 0@lo
/// an engine would open no socket, read no key, share no memory and attach to no daemon.
Result<std::unique_ptr<net::TransferMachine>> start_anywhere(net::Domain& domain) {
  auto first = start_at(domain, "127.0.0.1@udp");
  if (first) return first;
  const auto nids = net::local_nids();
  if (!nids) return first;
  constexpr std::size_t kNidsMost = 16;
  for (const std::string& nid : *nids | std::views::take(kNidsMost)) {
    if (nid == "0@lo" || nid == "127.0.0.1@udp") continue;
    if (auto other = start_at(domain, nid)) return other;
  }
  return first;
}

}  // namespace

Findings examine_engine(const std::string& peer, unsigned probes) {
  Findings findings;
  const auto trouble = [&](const Error& error) {
    findings.push_back({Verdict::trouble, "engine", error.message, {}});
    return std::move(findings);
  };
  std::string target, nid;
  if (!peer.empty()) {
    auto full = look_up_address(peer, {.portal = kPortal, .tmid = kTmid});
    if (!full) return trouble(full.error());
    target = std::move(*full);
    auto towards = nid_towards(target);
    if (!towards) return trouble(towards.error());
    nid = std::move(*towards);
  }
  auto domain = net::Domain::open({});
  if (!domain) return trouble(domain.error());
  const auto machine = target.empty() ? start_anywhere(*domain) : start_at(*domain, nid);
  if (!machine) return trouble(machine.error());
  findings.push_back({Verdict::good, "engine", fmt::format("starts at {}", (*machine)->end_point().address()), {}});
  if (!target.empty()) ask(findings, *domain, **machine, target, probes);
  return findings;
}

}  // namespace fairlead::tools
