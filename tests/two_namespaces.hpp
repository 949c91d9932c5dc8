#pragma once
// Two network namespaces joined by a veth pair: fl0 (10.77.0.1) in the first, fl1 (10.77.0.2) in the second. They end
// with the test's processes.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tests/child_process.hpp"

namespace fairlead::tests {

class TwoNamespaces {
 public:
  using Words = std::vector<std::string>;

  /// Returns why it is not possible here, or nothing.
  std::optional<std::string> set_up();
  /// Drops that percentage of all UDP datagrams in both namespaces.
  std::optional<std::string> lose(int percent = 1);
  /// Switches segmentation offload off, so that the loss of one segment does not take a whole GSO batch with it.
  std::optional<std::string> cut_segments();

  /// Drops each fourth UDP datagram that arrives in the second namespace.
  std::optional<std::string> lose_each_fourth_in_second();

  /// Raises the MTU of the first end. The second keeps 1500, so the first end drops longer datagrams.
  std::optional<std::string> enlarge_first(int mtu);
  /// Adds a firewall rule that drops all UDP; `hook`: input or output.
  std::optional<std::string> drop_at_first(const std::string& hook) const { return in_first(wall(hook)); }
  std::optional<std::string> drop_at_second(const std::string& hook) const { return in_second(wall(hook)); }

  /// Adds a NAT in the first namespace: the second sees 10.77.0.9 instead of 10.77.0.1, which it cannot reach.
  std::optional<std::string> translate_first();

  /// Returns the command that runs `words` in the namespace.
  Words enter_first(const Words& words) const { return enter(*first_, words); }
  Words enter_second(const Words& words) const { return enter(*second_, words); }

 private:
  static Words wall(const std::string& hook);
  std::unique_ptr<ChildProcess> hold(Words words) const;
  Words enter(const ChildProcess& holder, const Words& words) const;
  std::optional<std::string> in_first(const Words& words) const;
  std::optional<std::string> in_second(const Words& words) const;

  bool has_own_user_ = false;
  std::unique_ptr<ChildProcess> first_, second_;
};

}  // namespace fairlead::tests
