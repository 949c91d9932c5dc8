#pragma once
// Two network namespaces joined by a cable: fl0 (10.77.0.1) in the first, fl1 (10.77.0.2) in the second. They belong to
// processes of the test and go with them.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tests/child_process.hpp"

namespace fairlead::tests {

class TwoNamespaces {
 public:
  using Words = std::vector<std::string>;

  /// Why it is not possible here, or nothing.
  std::optional<std::string> set_up();
  /// So many percent of all UDP datagrams are lost, in both namespaces.
  std::optional<std::string> lose(int percent = 1);
  /// Segments travel alone, as on a wire, and not many in one piece that is lost as one.
  std::optional<std::string> cut_segments();

  /// The first end takes datagrams of so many bytes, the second goes on with 1500: what is longer is dropped at the
  /// first.
  std::optional<std::string> enlarge_first(int mtu);
  /// A firewall rule of the first drops all UDP that is to leave it.
  std::optional<std::string> let_nothing_out_of_first();

  /// The command that runs these words inside.
  Words enter_first(const Words& words) const { return enter(*first_, words); }
  Words enter_second(const Words& words) const { return enter(*second_, words); }

 private:
  std::unique_ptr<ChildProcess> hold(Words words) const;
  Words enter(const ChildProcess& holder, const Words& words) const;
  std::optional<std::string> in_first(const Words& words) const;
  std::optional<std::string> in_second(const Words& words) const;

  bool has_own_user_ = false;
  std::unique_ptr<ChildProcess> first_, second_;
};

}  // namespace fairlead::tests
