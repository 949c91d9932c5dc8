#pragma once
// How an ordinary user runs the command. Of root, setpriv makes the user nobody; and nobody gets a copy of the command
// where the build lies in a folder that is closed to others.

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

  /// What the words of a program are put behind; nothing if we are not root.
  const std::vector<std::string>& prefix() const { return prefix_; }
  const std::string& command() const { return command_; }
  bool can_execute(const std::string& program) const;

 private:
  void copy_command();

  std::vector<std::string> prefix_;
  std::string command_, folder_;
};

}  // namespace fairlead::tests
