#pragma once
// What programs do with the library: open, meet another process of this host, exchange, close. Each returns how it
// ended.

#include <string>
#include <utility>

#include <fairlead/error.hpp>

namespace fairlead::tests {

/// Where a process plays its part.
struct Part {
  bool is_first = true;  // of the two; it asks
  int socket = -1;       // to the other: what programs tell each other by other means
  std::string ip;        // of the loopback, and nobody else's
  std::string path = "udp";
};

/// Well, if there is no error. `is_status`: of an operation, whose errors have no text.
struct Ending {
  std::string error{};
  bool is_status = false;
};
inline Ending ended(const Error& error) {
  return {error.message.empty() ? std::string(to_string(error.status)) : error.message};
}
inline Ending ended(Status status) {
  return {std::string(to_string(status)), true};
}
inline Ending other_is_gone() {
  return {"the other is gone", true};
}

/// A value told by one and heard by the other; false if the other is gone.
bool tell(const Part& part, const void* bytes, std::size_t size);
bool hear(const Part& part, void* bytes, std::size_t size);
/// Whether it has closed its end: nothing more is to be waited for.
bool is_other_gone(const Part& part);
/// Each tells the other its own.
template <typename Value>
bool swap(const Part& part, const Value& own, Value& other) {
  return tell(part, &own, sizeof own) && hear(part, &other, sizeof other);
}

/// Messages to and fro, then puts and gets into each other's memory.
Ending transfer_messages(const Part& part);
/// Queue pairs: sends, writes, reads, an atomic, and completion events.
Ending use_queue_pairs(const Part& part);
/// Requests and replies of all sizes.
Ending send_active_messages(const Part& part);

}  // namespace fairlead::tests
