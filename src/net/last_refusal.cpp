#include "net/last_refusal.hpp"

#include <string>

namespace fairlead::net {
namespace {

struct LastRefusal {
  Status status = Status::ok;
  const char* why = "";
};
constinit thread_local LastRefusal last;

const char* what_it_says(Status status) {
  switch (status) {
    case Status::ok:
      return "";
    case Status::again:
      return "a bound of the engine is reached: deliver events, then try again";
    case Status::no_memory:
      return "no room for its events or for one more operation: deliver events, or raise events_max or operations_max "
             "(of a host engine: events= or operations= of its rule; `fairlead ps` shows both)";
    case Status::message_size:
      return "longer than the largest message: see message_size_max()";
    case Status::unreachable:
      return "the address is of another network than this machine, or no other engine can be reached from here";
    case Status::stale:
      return "the descriptor is of an earlier life of this machine's own address";
    case Status::not_permitted:
      return "the descriptor is of the wrong kind of queue: active receives want one of a passive send, and the other "
             "way round";
    case Status::too_big:
      return "active receive: shorter than the passive buffer's data; active send: longer than the passive buffer";
    default:
      return "the engine refused it";
  }
}

}  // namespace

Status refuse_add(Status status, const char* why) noexcept {
  last = {status, why != nullptr ? why : what_it_says(status)};
  return status;
}

Error last_refusal() {
  return {last.status, 0, last.why};
}

}  // namespace fairlead::net
