#pragma once
// Seals trains before they are sent (docs/seal.md).

#include <cstdint>
#include <memory>

#include "link/key_changes.hpp"
#include "link/link_context.hpp"

namespace fairlead::link {

class TrainSealer {
 public:
  TrainSealer(LinkContext& context, KeyChanges& keys);

  /// Seals a train that is complete but for its checksums. All of it is copied to the staging area; each datagram gets
  /// its own number and tag.
  void seal(Peer& peer, base::Instant now, Train& train);
  /// Returns how many bytes a train may have before it is sealed, so that its tags fit; at least one segment.
  static std::uint32_t bytes_before_tags(const Peer& peer, std::uint32_t bytes_max, std::uint32_t datagrams_max);

 private:
  static constexpr std::uint32_t kTrainBytesMost = 65'535;
  static constexpr std::size_t kStagingBytes = kTrainBytesMost + 64 * wire::kTagBytes;

  LinkContext& context_;
  KeyChanges& keys_;
  std::unique_ptr<std::byte[]> staging_;  // null where nothing is sealed
};

}  // namespace fairlead::link
