#pragma once
// Runs the command as an ordinary user. If the test runs as root, setpriv makes the user nobody. If nobody cannot
// access the build folder, the class makes a copy of the command.

#include <string>
#include <vector>

namespace fairlead::tests {

class OrdinaryUser {
 public:
  explicit OrdinaryUser(std::string command);
  /// Removes the copy.
  ~OrdinaryUser();
  OrdinaryUser(const OrdinaryUser&) = delete;
  OrdinaryUser& operator=(const OrdinaryUser&) = delete;

  /// The words before a program's own, which change the user; empty if we are not root.
  const std::vector<std::string>& prefix() const { return prefix_; }
  const std::string& command() const { return command_; }
  bool can_execute(const std::string& program) const;

 private:
  void copy_command();

  std::vector<std::string> prefix_;
  std::string command_, folder_;
};

}  // namespace fairlead::tests
