#include "link/train_sealer.hpp"

#include <algorithm>

#include "base/ensure.hpp"

namespace fairlead::link {

TrainSealer::TrainSealer(LinkContext& context, KeyChanges& keys) : context_(context), keys_(keys) {
  if (context.tag_bytes_at_most != 0) staging_ = std::make_unique<std::byte[]>(kStagingBytes);
}

void TrainSealer::seal(Peer& peer, base::Instant now, Train& train) {
  SealedSession& session = *peer.sealed;
  const auto tags = static_cast<std::uint32_t>(train.datagrams * wire::kTagBytes);
  ENSURE(train.bytes + tags <= kStagingBytes, "a train of {} bytes in a staging_ area of {}", train.bytes,
         kStagingBytes);
  std::byte* to = staging_.get();
  std::size_t piece = 0;
  for (std::uint32_t left = train.bytes; left != 0;) {
    const std::uint32_t size = std::min(left, train.datagram_size);
    left -= size;
    iovec* const first = train.pieces + piece;
    std::size_t taken = 0;
    for (; taken < size; ++piece) taken += train.pieces[piece].iov_len;
    ENSURE(taken == size, "a train is cut within a piece: {} bytes instead of {}", taken, size);

    const auto* const header = static_cast<const std::byte*>(first->iov_base);
    std::copy_n(header, wire::kSegmentHeaderBytes, to);
    *first = {const_cast<std::byte*>(header) + wire::kSegmentHeaderBytes, first->iov_len - wire::kSegmentHeaderBytes};
    const seal::SessionKeys::Mark mark = session.keys.next_mark();
    wire::mark_sealed(to, mark.epoch, static_cast<std::uint32_t>(mark.number));
    const seal::Bytes associated(to, wire::kSegmentHeaderBytes);
    to += wire::kSegmentHeaderBytes;
    session.keys.seal(mark, associated, {first, train.pieces + piece}, to);
    to += size - wire::kSegmentHeaderBytes + wire::kTagBytes;
  }
  train.bytes += tags;
  train.datagram_size += static_cast<std::uint32_t>(wire::kTagBytes);
  train.pieces[0] = {staging_.get(), train.bytes};
  train.piece_count = 1;
  context_.counters.bytes_sent += tags;
  keys_.watch(peer, now);
}

std::uint32_t TrainSealer::bytes_before_tags(const Peer& peer, std::uint32_t bytes_max, std::uint32_t datagrams_max) {
  if (peer.tag_bytes == 0) [[likely]]
    return bytes_max;
  const auto tags = static_cast<std::uint32_t>(datagrams_max * wire::kTagBytes);
  return std::max(std::min(bytes_max, kTrainBytesMost) - std::min(tags, bytes_max / 2), peer.datagram_size);
}

}  // namespace fairlead::link
