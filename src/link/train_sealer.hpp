#pragma once
// Seals trains as they go out (docs/seal.md).

#include <cstdint>
#include <memory>

#include "link/key_changes.hpp"
#include "link/link_context.hpp"

namespace fairlead::link {

class TrainSealer {
 public:
  TrainSealer(LinkContext& context, KeyChanges& keys);

  /// A train whose datagrams are complete but for their checksums: all of it goes into the staging area, each datagram
  /// with its tag, under a number of its own.
  void seal(Peer& peer, base::Instant now, Train& train);
  /// What a train may have before it is sealed; one segment always.
  static std::uint32_t bytes_before_tags(const Peer& peer, std::uint32_t bytes_max, std::uint32_t datagrams_max);

 private:
  static constexpr std::uint32_t kTrainBytesMost = 65'535;
  static constexpr std::size_t kStagingBytes = kTrainBytesMost + 64 * wire::kTagBytes;

  LinkContext& context_;
  KeyChanges& keys_;
  std::unique_ptr<std::byte[]> staging_;  // null where nothing is sealed
};

}  // namespace fairlead::link
