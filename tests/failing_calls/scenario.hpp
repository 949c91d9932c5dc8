#pragma once
// Programs that use the library: open, meet another process of this host, exchange, close. Each returns how it ended.

#include <string>
#include <utility>

#include <fairlead/error.hpp>

namespace fairlead::tests {

/// The part of one process in a scenario.
struct Part {
  bool is_first = true;  // the first of the two sends the requests
  int socket = -1;       // connects the two processes outside the library
  std::string ip;        // an address of the loopback that only this process uses
  std::string path = "udp";
};

/// Success if there is no error. `is_status`: the error is an operation's status, which has no text.
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

/// tell() and hear() pass a value to the other process. False if the other process has ended.
bool tell(const Part& part, const void* bytes, std::size_t size);
bool hear(const Part& part, void* bytes, std::size_t size);
/// Whether the other process has closed its end, so that waiting is useless.
bool is_other_gone(const Part& part);
/// Each process sends its own value and receives the other's.
template <typename Value>
bool swap(const Part& part, const Value& own, Value& other) {
  return tell(part, &own, sizeof own) && hear(part, &other, sizeof other);
}

/// Messages in both directions, then puts and gets into each other's memory.
Ending transfer_messages(const Part& part);
/// Queue pairs: sends, writes, reads, an atomic, and completion events.
Ending use_queue_pairs(const Part& part);
/// Requests and replies of all sizes.
Ending send_active_messages(const Part& part);

}  // namespace fairlead::tests
