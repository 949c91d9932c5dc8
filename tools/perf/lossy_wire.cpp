#include "tools/perf/lossy_wire.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <charconv>
#include <cmath>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "base/network_namespace.hpp"
#include "tools/process/child_process.hpp"
#include "tools/process/executable.hpp"

namespace fairlead::tools {
namespace {

constexpr double kPartsOfOne = 1e6;

constexpr std::string_view kNearSetup = R"(link add fl0 mtu 1500 type veth peer name fl1 mtu 1500 netns /proc/{}/fd/{}
link add fb0 address 02:00:0a:4d:00:01 type bridge
link set fl0 master fb0
address add 10.77.0.1/24 dev fb0
neighbour add 10.77.0.2 lladdr 02:00:0a:4d:00:02 nud permanent dev fb0
link set lo up
link set fl0 up
link set fb0 up
)";
constexpr std::string_view kFarSetup = R"(link add fb1 address 02:00:0a:4d:00:02 type bridge
link set fl1 master fb1
address add 10.77.0.2/24 dev fb1
neighbour add 10.77.0.1 lladdr 02:00:0a:4d:00:01 nud permanent dev fb1
link set lo up
link set fl1 up
link set fb1 up
)";

// Drops single packets as they leave the veth, or trains as the receiving device merged them. A drop at the sender's
// socket would be reported to the sender.
constexpr std::string_view kLosePackets = R"(table netdev loss {{
  chain wire {{ type filter hook egress device "{}" priority 0;
    meta protocol ip counter
    meta protocol ip numgen random mod 1000000 < {} counter drop
  }}
}}
)";
constexpr std::string_view kLoseTrains = R"(table ip loss {{
  chain wire {{ type filter hook input priority 0;
    counter
    numgen random mod 1000000 < {} counter drop
  }}
}}
)";
constexpr std::string_view kForget = R"(table netdev loss {}
delete table netdev loss
table ip loss {}
delete table ip loss
)";

Result<> run(int network, const std::vector<std::string>& words, std::string_view input = {}) {
  const auto visit = base::NetworkVisit::enter(network);
  if (!visit) return std::unexpected(visit.error());
  auto ran = run_program(words, input);
  if (!ran) return std::unexpected(std::move(ran.error()));
  return {};
}

Result<> cut(int network, std::string_view bridge, std::string_view veth) {
  for (const std::string_view device : {bridge, veth}) {
    auto done = run(network, {"ethtool", "-K", std::string(device), "tso", "off", "tx-udp-segmentation", "off"});
    if (!done) return done;
  }
  return run(network, {"ethtool", "-K", std::string(veth), "gro", "on"});
}

/// Turns off the host's packet filters for the bridge: they would cost more than the wire. Without such filters there
/// is nothing to turn off.
void leave_filters_out(int network) {
  const auto visit = base::NetworkVisit::enter(network);
  for (const char* protocol : {"iptables", "ip6tables", "arptables"})
    std::ofstream(fmt::format("/proc/sys/net/bridge/bridge-nf-call-{}", protocol)) << 0;
}

/// Waits until the bridge works: the kernel may need a second to notice that its port is up.
Result<> wait_until_up(int network) {
  constexpr Duration kPause = std::chrono::milliseconds{5};
  constexpr int kLooksMax = 2000;
  for (int look = 0; look < kLooksMax; ++look) {
    const auto visit = base::NetworkVisit::enter(network);
    if (!visit) return std::unexpected(visit.error());
    const auto listed = run_program({"ip", "-oneline", "link", "show", "up", "type", "bridge"});
    if (!listed) return std::unexpected(listed.error());
    if (listed->contains("state UP")) return {};
    std::this_thread::sleep_for(kPause);
  }
  return std::unexpected(Error{Status::system, 0, "the wire between the two namespaces did not come up"});
}

/// Reads the numbers after "packets" of the two counters, in order.
LossyWire::Tally read_counters(std::string_view text) {
  LossyWire::Tally tally;
  for (std::uint64_t* number : {&tally.passed, &tally.lost}) {
    constexpr std::string_view kWord = "counter packets ";
    const std::size_t at = text.find(kWord);
    if (at == std::string_view::npos) break;
    text.remove_prefix(at + kWord.size());
    std::from_chars(text.data(), text.data() + text.size(), *number);
  }
  return tally;
}

}  // namespace

Result<LossyWire> LossyWire::lay() {
  for (const char* program : {"ip", "ethtool", "nft"}) {
    if (!find_executable(program, kSystemFolders)) {
      return std::unexpected(Error{Status::not_supported, 0,
                                   fmt::format("a wire that loses packets needs the program {}, which is not here: "
                                               "apt-get install iproute2 ethtool nftables",
                                               program)});
    }
  }
  if (auto left = base::leave_host_network(); !left) return std::unexpected(std::move(left.error()));
  auto far = base::make_network();
  if (!far) return std::unexpected(std::move(far.error()));
  LossyWire wire(std::move(*far));
  const int network = wire.far_network();
  auto done = run(-1, {"ip", "-batch", "-"}, fmt::format(kNearSetup, getpid(), network));
  if (done) done = run(network, {"ip", "-batch", "-"}, kFarSetup);
  if (done) done = cut(-1, "fb0", "fl0");
  if (done) done = cut(network, "fb1", "fl1");
  leave_filters_out(-1);
  leave_filters_out(network);
  if (done) done = wait_until_up(-1);
  if (done) done = wait_until_up(network);
  if (!done) return std::unexpected(std::move(done.error()));
  return wire;
}

Result<> LossyWire::lose(double part, Unit unit) {
  const auto limit = std::llround(part * kPartsOfOne);
  for (const bool is_near : {true, false}) {
    const std::string rules = unit == Unit::trains ? fmt::format(kLoseTrains, limit)
                                                   : fmt::format(kLosePackets, is_near ? "fl0" : "fl1", limit);
    auto done = run(is_near ? -1 : far_network(), {"nft", "-f", "-"}, std::string(kForget) + rules);
    if (!done) return done;
  }
  return {};
}

Result<LossyWire::Tally> LossyWire::tally() const {
  Tally sum;
  for (const int network : {-1, far_network()}) {
    const auto visit = base::NetworkVisit::enter(network);
    if (!visit) return std::unexpected(visit.error());
    const auto listed = run_program({"nft", "list", "ruleset"});
    if (!listed) return std::unexpected(listed.error());
    const Tally one = read_counters(*listed);
    sum.passed += one.passed;
    sum.lost += one.lost;
  }
  return sum;
}

}  // namespace fairlead::tools
