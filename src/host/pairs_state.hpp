#pragma once
// The state of an application's queue pairs at the host engine, for the next program in this process
// (application_pairs_saved.cpp). The state of the queue pairs themselves is the engine's (qp/pairs_state.hpp).

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/saved.hpp"
#include "host/pair_layout.hpp"
#include "qp/completion_stream.hpp"
#include "queue/producer.hpp"

namespace fairlead::host {

struct ServedPairState {
  std::uint32_t index = 0, generation = 0;  // at the engine
  std::uint8_t type = 0;
  std::uint32_t incarnation = 0, domain = 0, cookie = 0;
  std::optional<std::uint32_t> queue;
  std::uint64_t room_bytes = 0, room_completions = 0;
  bool takes_posts = false;
};

struct ServedQueueState {
  std::uint32_t handle_slot = 0, handle_generation = 0;  // at the engine
  std::uint32_t generation = 0, domain = 0, posted = 0, depth = 0, pieces = 0;
  bool is_open = false;
};

struct ServedRegionState {
  std::uint32_t key = 0, domain = 0;
  std::uint64_t skipped = 0, length = 0;  // the region's part of its pieces
  std::vector<MemoryPiece> pieces;
};

struct ServedWindowState {
  std::uint32_t key = 0, domain = 0;
};

struct PairDomainState {
  std::uint32_t domain = 0, number = 0;  // the application's number, and the engine's
};

/// A request that has arrived in part.
struct PairInboxState {
  std::uint64_t consumed = 0;
  std::vector<std::byte> part;  // its elements so far; empty: none
};

struct ApplicationPairsState {
  std::int32_t socket = -1, rings = -1, memory = -1;
  std::uint64_t memory_bytes = 0;
  std::uint64_t lingers = 0;
  std::uint32_t cookies = 0;
  PairInboxState inbox, receives;
  queue::Producer::Position events;
  std::vector<PairDomainState> domains;
  std::vector<ServedPairState> pairs;
  std::vector<ServedQueueState> queues;
  std::vector<ServedRegionState> regions;
  std::vector<ServedWindowState> windows;
  std::vector<qp::PairEvent> completions;  // not delivered
  std::vector<qp::Notice> notices;         // the same; after so many of the completions:
  std::uint64_t notices_after = 0;
};

}  // namespace fairlead::host

namespace fairlead::verbs {

template <typename Archive>
void fields(Archive& archive, WorkCompletion& one) {
  archive(one.wr_id, one.status, one.opcode, one.vendor_err, one.byte_len, one.imm, one.qp_num, one.src_qp,
          one.wc_flags, one.pkey_index, one.slid, one.sl, one.dlid_path_bits, one.timestamp_ns);
}

}  // namespace fairlead::verbs

namespace fairlead::qp {

template <typename Archive>
void fields(Archive& archive, PairEvent& event) {
  archive(event.completion, event.incarnation, event.retires);
}
template <typename Archive>
void fields(Archive& archive, Notice& notice) {
  archive(notice.kind, notice.cookie);
}

}  // namespace fairlead::qp

namespace fairlead::queue {

template <typename Archive>
void fields(Archive& archive, Producer::Position& position) {
  archive(position.produced, position.epoch, position.shape, position.run, position.index, position.is_refused);
}

}  // namespace fairlead::queue

namespace fairlead::host {

template <typename Archive>
void fields(Archive& archive, ServedPairState& one) {
  archive(one.index, one.generation, one.type, one.incarnation, one.domain, one.cookie, one.queue, one.room_bytes,
          one.room_completions, one.takes_posts);
}
template <typename Archive>
void fields(Archive& archive, ServedQueueState& one) {
  archive(one.handle_slot, one.handle_generation, one.generation, one.domain, one.posted, one.depth, one.pieces,
          one.is_open);
}
template <typename Archive>
void fields(Archive& archive, MemoryPiece& piece) {
  archive(piece.offset, piece.length);
}
template <typename Archive>
void fields(Archive& archive, ServedRegionState& one) {
  archive(one.key, one.domain, one.skipped, one.length, one.pieces);
}
template <typename Archive>
void fields(Archive& archive, ServedWindowState& one) {
  archive(one.key, one.domain);
}
template <typename Archive>
void fields(Archive& archive, PairDomainState& one) {
  archive(one.domain, one.number);
}
template <typename Archive>
void fields(Archive& archive, PairInboxState& inbox) {
  archive(inbox.consumed, inbox.part);
}
template <typename Archive>
void fields(Archive& archive, ApplicationPairsState& one) {
  archive(one.socket, one.rings, one.memory, one.memory_bytes, one.lingers, one.cookies, one.inbox, one.receives,
          one.events, one.domains, one.pairs, one.queues, one.regions, one.windows, one.completions, one.notices,
          one.notices_after);
}

}  // namespace fairlead::host
