#pragma once
// Short messages with an owner, found by name between submission and outcome. During this time a message is in a
// segment of the hotel. The segment waits, is in flight, and then joins the news until its outcomes are fetched.

#include <cstdint>
#include <optional>

#include "link/link_context.hpp"
#include "link/send_queues.hpp"

namespace fairlead::link {

class ShortSends {
 public:
  ShortSends(LinkContext& context, SendQueues& queues) : context_(context), queues_(queues) {}

  /// As the functions of Link with these names.
  std::optional<Outcome> end_early(std::uint32_t owner, OperationHandle name);
  std::optional<Outcome> end_any_early(std::uint32_t owner, std::uint32_t& first);
  bool mark_refused(const Peer& peer, OperationHandle name, Status status);
  std::uint64_t count_pending(std::uint32_t owner);
  /// As Link::is_owing(), for messages of any owner that are copied.
  bool are_owing();

 private:
  struct Found {
    Segment* segment = nullptr;  // null: not found
    std::uint32_t index = 0;
  };
  Found find(OperationHandle name);
  Outcome end(Segment& segment, std::uint32_t index);

  LinkContext& context_;
  SendQueues& queues_;
};

}  // namespace fairlead::link
