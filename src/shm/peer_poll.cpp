// The rare steps of a poll.

#include "shm/peer_poll.hpp"

#include <optional>

namespace fairlead::shm {

/// Reads a record that is not a single inlined message.
[[gnu::noinline]] Inbox::Read PeerPoll::read_other(std::span<const std::byte> body) {
  const Inbox::Read read = inbox_.read_other({handle(), *from_, peer_->arriving, now_}, body);
  return read == Inbox::Read::taken_back && !end_arriving() ? Inbox::Read::malformed : read;
}

/// Ends the message that is arriving, because its sender took it back. Returns false if there is none.
bool PeerPoll::end_arriving() {
  const auto notice = notices_.has_room(1) ? peers_.end_arriving(index_) : std::nullopt;
  if (notice) notices_.push(*notice);
  return notice.has_value();
}

/// The peer has written something invalid: ends its connection, and the poll.
[[gnu::noinline]] std::nullptr_t PeerPoll::refuse() {
  connections_.refuse(slot_, "it wrote invalid data into shared memory");
  has_found_ = true;
  from_ = nullptr;
  return nullptr;
}

}  // namespace fairlead::shm
