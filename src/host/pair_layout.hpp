#pragma once
// The layout of the memory that an application with queue pairs shares with the host engine, besides layout.hpp. Both
// map it completely. It consists of a sealed memfd for
//
//   page | requests | receives | events
//
// and one for the memory of its regions.
//
// A request is one element, followed by as many as its data needs. Receives have a ring of their own, of the same form.
// The host engine copies a request once, then checks it. It consumes requests and produces events; its own state lies
// in private memory.

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <type_traits>

#include <fairlead/verbs/queue_pair.hpp>
#include <fairlead/verbs/work_completion.hpp>

#include "queue/layout.hpp"
#include "queue/waiter.hpp"

namespace fairlead::host {

// Per application and engine:
inline constexpr std::uint32_t kPairsMax = 4096, kReceiveQueuesMax = 1024, kPairRegionsMax = 16384,
                               kPairWindowsMax = 4096;
inline constexpr std::uint64_t kQueueBytesMax = 256ULL << 20;      // the host engine's memory for posted requests
inline constexpr std::uint64_t kRegisteredBytesMax = 64ULL << 30;  // of address space
inline constexpr std::uint32_t kPairRequestsMax = 1024, kPairEventsMax = 4096;  // in each ring
inline constexpr std::uint32_t kPairCallsMax = 16;                              // concurrent

/// An element of the ring of requests (sends and calls) or of the ring of receives.
struct PairRequest {
  enum class Kind : std::uint8_t { post_send, post_receive, post_to_queue, call };
  static constexpr std::size_t kBytesHere = 40;

  std::uint64_t id = 0;
  std::uint64_t remote_addr = 0;
  std::uint32_t object = 0, generation = 0;  // the queue pair or shared receive queue
  std::uint32_t rkey = 0, imm = 0;
  std::uint8_t kind = 0;
  std::uint8_t opcode = 0;                    // verbs::SendOpcode or PairCall::Kind
  std::uint8_t flags = 0;                     // verbs::send_flags
  std::uint8_t pieces = 0;                    // number that follow
  std::uint16_t bytes = 0;                    // inline data or a call's bytes that follow
  std::uint16_t slot = 0;                     // of a call: the index of its reply
  std::array<std::byte, 48> words{};          // by opcode: AtomicWords, DatagramWords or verbs::WindowBinding
  std::array<std::byte, kBytesHere> begin{};  // the start of the pieces or bytes; the rest follows in the next elements
};
static_assert(std::is_trivially_copyable_v<PairRequest> && sizeof(PairRequest) == 128);

struct AtomicWords {
  std::uint64_t compare_add = 0, swap = 0;
};
/// verbs::AddressVector in the form that both sides use.
struct PlainVector {
  verbs::Gid dgid{};
  std::uint32_t flow_label = 0;
  std::uint16_t dlid = 0;
  std::uint8_t sgid_index = 0, hop_limit = 0, traffic_class = 0, sl = 0, src_path_bits = 0, static_rate = 0;
  std::uint8_t is_global = 0, port_num = 0;
};
struct DatagramWords {
  PlainVector to{};
  std::uint32_t remote_qpn = 0, remote_qkey = 0;
};

/// verbs::QpAttributes in the form that both sides use.
struct PlainAttributes {
  PlainVector av{}, alt_av{};
  std::uint32_t qkey = 0, rq_psn = 0, sq_psn = 0, dest_qp_num = 0, access_flags = 0;
  std::uint16_t pkey_index = 0;
  std::uint8_t state = 0, path_mtu = 0, path_mig_state = 0, en_sqd_async_notify = 0, is_sq_draining = 0;
  std::uint8_t max_rd_atomic = 0, max_dest_rd_atomic = 0, min_rnr_timer = 0, port_num = 0, timeout = 0, retry_cnt = 0,
               rnr_retry = 0, alt_port_num = 0, alt_timeout = 0;
};

/// A piece of the shared memory.
struct MemoryPiece {
  std::uint64_t offset = 0, length = 0;
};
inline constexpr std::size_t kMemoryPiecesMax = 16;      // per region
inline constexpr std::uint32_t kJoinedPiecesMax = 1024;  // of all regions with several pieces, per application

/// A rare operation, for whose answer the application waits.
struct PairCall {
  enum class Kind : std::uint8_t {
    open_pair,
    close_pair,
    change_pair,
    fail_pair,
    pair_facts,
    open_queue,
    close_queue,
    change_queue,
    queue_facts,
    add_region,
    change_region,
    remove_region,
    add_window,
    remove_window,
    unbind_windows,
    linger,  // no answer: PairPage::lingered tells when all sends are complete
  };

  std::uint64_t number = 0;                         // of the call; repeated in the answer
  std::uint64_t skipped = 0, length = 0, iova = 0;  // of a region, whose memory pieces follow
  std::uint32_t key = 0, access = 0, domain = 0;    // of a region or window
  std::uint32_t object = 0, generation = 0;         // queue pair or receive queue
  std::uint32_t incarnation = 0;                    // of a queue pair, from now on
  std::uint32_t depth = 0, pieces = 0, limit = 0;   // of a receive queue
  std::uint32_t queue = 0, queue_generation = 0;    // of a queue pair: the shared receive queue that it uses
  std::uint32_t max_send_wr = 0, max_recv_wr = 0, max_send_sge = 0, max_recv_sge = 0, max_inline = 0;
  std::uint8_t type = 0;  // of a queue pair or window
  std::uint8_t shares_receives = 0, signals_all = 0;
  std::uint8_t from = 0;  // of change_pair
  PlainAttributes attributes{};
};
static_assert(std::is_trivially_copyable_v<PairCall>);

struct PairAnswer {
  std::uint32_t status = 0;
  std::int32_t system_errno = 0;
  std::uint32_t key = 0, object = 0, generation = 0, number = 0;
  std::uint32_t depth = 0, limit = 0, posted = 0;
  PlainAttributes attributes{};
  std::array<char, 256> text{};  // of an error
};

/// The place of a call's answer.
struct PairReply {
  std::atomic<std::uint64_t> answered{0};  // the call's number; released after the answer
  PairAnswer answer{};
};

/// A completion of a request, or an event of a queue pair or receive queue: one element of the events.
struct PairNews {
  // Flags in `retires`, besides those of qp::PairEvent.
  static constexpr std::uint32_t kIsNotice = 1U << 29, kOfQueue = 1U << 28;

  verbs::WorkCompletion completion{};  // of a notice: byte_len is its kind, wr_id its object
  std::uint32_t incarnation = 0;       // as named by the application
  std::uint32_t retires = 0;
};
static_assert(std::is_trivially_copyable_v<PairNews> && sizeof(PairNews) == 64);

struct PairPage {
  queue::SleepFlag notices;                                           // a sleeper waits for notices
  queue::SleepFlag completions;                                       // a sleeper waits for completions
  queue::SleepFlag room;                                              // the host engine waits for room among the events
  std::atomic<std::uint64_t> lingered{0};                             // number of the last linger call that is over
  std::array<std::atomic<std::uint32_t>, kReceiveQueuesMax> taken{};  // total taken from each receive queue
  std::array<PairReply, kPairCallsMax> replies;
};

/// The offset of each part, in bytes.
class PairLayout {
 public:
  static constexpr std::uint64_t requests() { return whole_pages(sizeof(PairPage)); }
  static constexpr std::uint64_t requests_bytes() {
    return whole_pages(queue::segment_bytes(sizeof(PairRequest), kPairRequestsMax + 1));
  }
  static constexpr std::uint64_t receives() { return requests() + requests_bytes(); }
  static constexpr std::uint64_t events() { return receives() + requests_bytes(); }
  static constexpr std::uint64_t events_bytes() {
    return whole_pages(queue::segment_bytes(sizeof(PairNews), kPairEventsMax + 1));
  }
  static constexpr std::uint64_t bytes() { return events() + events_bytes(); }

 private:
  static constexpr std::uint64_t whole_pages(std::uint64_t bytes) { return (bytes + 4095) / 4096 * 4096; }
};

PlainVector to_plain(const verbs::AddressVector& vector);
verbs::AddressVector from_plain(const PlainVector& vector);
PlainAttributes to_plain(const verbs::QpAttributes& attributes);
/// Returns nullopt if no queue pair can have these attributes.
std::optional<verbs::QpAttributes> from_plain(const PlainAttributes& plain);
/// Most bytes of a request's pieces, inline data or call, including the part in its first element.
inline constexpr std::size_t kPairRequestMost = 1024;

}  // namespace fairlead::host
