// The smallest user of an installed Fairlead: one public header and one symbol of the library.
#include <fairlead/error.hpp>

#include <iostream>

int main() {
  std::cout << fairlead::to_string(fairlead::Status::canceled) << "\n";
  return fairlead::to_errno(fairlead::Status::ok);
}
