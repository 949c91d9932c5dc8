#include "tests/two_namespaces.hpp"

#include <fmt/format.h>

namespace fairlead::tests {
namespace {

using namespace std::chrono_literals;
using Words = TwoNamespaces::Words;

std::optional<std::string> fault_of(const Words& words) {
  const Finished finished = run(words, 20s);
  if (finished.exit_code == 0) return {};
  return fmt::format("{}: {}", fmt::join(words, " "), finished.error_output);
}

}  // namespace

std::optional<std::string> TwoNamespaces::set_up() {
  // Try to be root of a new user namespace, else root of the host.
  for (const Words& unshare : {Words{"unshare", "-Urn"}, Words{"unshare", "-n"}}) {
    first_ = hold(unshare);
    has_own_user_ = unshare.back() == "-Urn";
    if (first_) break;
  }
  if (!first_) return "no permission to make a network namespace";
  second_ = hold(enter(*first_, {"unshare", "-n"}));
  if (!second_) return "no permission to make a second network namespace";
  const std::string second = std::to_string(second_->pid());
  for (const Words& words : {Words{"ip", "link", "add", "fl0", "type", "veth", "peer", "name", "fl1", "netns", second},
                             Words{"ip", "address", "add", "10.77.0.1/24", "dev", "fl0"},
                             Words{"ip", "link", "set", "fl0", "up"}, Words{"ip", "link", "set", "lo", "up"}}) {
    if (auto fault = in_first(words)) return fault;
  }
  for (const Words& words : {Words{"ip", "address", "add", "10.77.0.2/24", "dev", "fl1"},
                             Words{"ip", "link", "set", "fl1", "up"}, Words{"ip", "link", "set", "lo", "up"}}) {
    if (auto fault = in_second(words)) return fault;
  }
  return {};
}

std::optional<std::string> TwoNamespaces::lose(int percent) {
  const std::string lost = std::to_string(100 * percent);
  for (const Words& words : {Words{"nft", "add table inet loss"},
                             Words{"nft", "add chain inet loss input { type filter hook input priority 0; }"},
                             Words{"nft", "add rule inet loss input meta l4proto udp numgen random mod 10000 < " +
                                              lost + " counter drop"}}) {
    if (auto fault = in_first(words)) return fault;
    if (auto fault = in_second(words)) return fault;
  }
  return {};
}

std::optional<std::string> TwoNamespaces::cut_segments() {
  for (const char* device : {"fl0", "fl1"}) {
    const Words words{"ethtool", "-K", device, "tx-udp-segmentation", "off", "tso", "off", "gro", "on"};
    if (auto fault = device == std::string("fl0") ? in_first(words) : in_second(words)) return fault;
  }
  return {};
}

std::optional<std::string> TwoNamespaces::lose_each_fourth_in_second() {
  return in_second({"nft",
                    "add table inet fourth; add chain inet fourth input { type filter hook input priority 0; }; "
                    "add rule inet fourth input meta l4proto udp numgen inc mod 4 == 3 drop"});
}

std::optional<std::string> TwoNamespaces::enlarge_first(int mtu) {
  return in_first({"ip", "link", "set", "fl0", "mtu", std::to_string(mtu)});
}

Words TwoNamespaces::wall(const std::string& hook) {
  return {"nft", fmt::format("add table inet wall; add chain inet wall {0} {{ type filter hook {0} priority 0; }}; "
                             "add rule inet wall {0} meta l4proto udp counter drop",
                             hook)};
}

std::optional<std::string> TwoNamespaces::translate_first() {
  for (const Words& words :
       {Words{"ip", "address", "add", "10.77.0.9/24", "dev", "fl0"}, Words{"nft", "add table ip translated"},
        Words{"nft", "add chain ip translated after { type nat hook postrouting priority 100; }"},
        Words{"nft", "add rule ip translated after ip saddr 10.77.0.1 snat to 10.77.0.9"},
        Words{"nft", "add chain ip translated before { type filter hook prerouting priority -300; }"},
        Words{"nft", "add rule ip translated before iifname fl0 ip daddr 10.77.0.1 drop"}}) {
    if (auto fault = in_first(words)) return fault;
  }
  return {};
}

/// Starts a process that keeps a namespace open.
std::unique_ptr<ChildProcess> TwoNamespaces::hold(Words words) const {
  words.insert(words.end(), {"sh", "-c", "echo here; exec sleep 600"});
  auto holder = std::make_unique<ChildProcess>(words);
  return holder->wait_for_text("here", 10s) ? std::move(holder) : nullptr;
}

Words TwoNamespaces::enter(const ChildProcess& holder, const Words& words) const {
  Words all{"nsenter", "-t", std::to_string(holder.pid()), "-n"};
  if (has_own_user_) all.insert(all.end(), {"-U", "--preserve-credentials"});
  all.insert(all.end(), words.begin(), words.end());
  return all;
}

std::optional<std::string> TwoNamespaces::in_first(const Words& words) const {
  return fault_of(enter_first(words));
}

std::optional<std::string> TwoNamespaces::in_second(const Words& words) const {
  return fault_of(enter_second(words));
}

}  // namespace fairlead::tests
