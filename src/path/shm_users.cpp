#include "path/shm_users.hpp"

#include <unistd.h>

namespace fairlead::path {

bool ShmUsers::is_own(const ShmCredentials& who) const {
  return who.user == ::geteuid();
}

}  // namespace fairlead::path
