#pragma once
// Queue pairs, shared receive queues and address handles (docs/verbs.md).

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include <fairlead/error.hpp>
#include <fairlead/verbs/completion_queue.hpp>
#include <fairlead/verbs/memory.hpp>
#include <fairlead/verbs/types.hpp>
#include <fairlead/verbs/work_request.hpp>
#include <fairlead/verbs/xrc_domain.hpp>

namespace fairlead::verbs {

struct SharedReceiveState;
struct PairState;
struct AddressState;

/// A checked address vector. Pass vector() to UD sends.
class AddressHandle {
 public:
  /// EINVAL: is_global is false although the personality is roce, the port or sgid_index does not exist, or the GID is
  /// not an IP address.
  [[nodiscard]] static Result<AddressHandle> create(const ProtectionDomain& domain, const AddressVector& vector);
  Result<> destroy();

  const AddressVector& vector() const noexcept;

 private:
  explicit AddressHandle(std::shared_ptr<AddressState> state) noexcept : state_(std::move(state)) {}
  std::shared_ptr<AddressState> state_;
};

/// Returns the sender of a received UD datagram. `grh` is the first 40 bytes of the buffer, if the completion has
/// wc_flags::grh. EINVAL: these bytes are not a network header.
[[nodiscard]] Result<AddressVector> address_of_sender(const WorkCompletion& completion,
                                                      std::span<const std::byte, 40> grh);

struct SharedReceiveOptions {
  std::uint32_t max_wr = 1;
  std::uint32_t max_sge = 1;
  std::uint32_t limit = 0;  ///< fewer entries raise one srq_limit_reached event; 0: no limit
  std::uint64_t cookie = 0;
  const XrcDomain* xrc_domain = nullptr;   ///< XRC: the targets of this domain fill it
  const CompletionQueue* queue = nullptr;  ///< XRC: receives its completions
};

class SharedReceiveQueue {
 public:
  [[nodiscard]] static Result<SharedReceiveQueue> create(const ProtectionDomain& domain,
                                                         const SharedReceiveOptions& options);
  /// EBUSY, and nothing changed, while a queue pair uses it.
  Result<> destroy();
  /// Absent values stay unchanged. EINVAL: max_wr is below the number of posted receives or above the device's limit,
  /// or limit is above max_wr.
  [[nodiscard]] Result<> modify(std::optional<std::uint32_t> max_wr, std::optional<std::uint32_t> limit);
  /// The current options. After its event, limit is 0.
  SharedReceiveOptions query() const;
  /// XRC: the number for SendRequest::remote_srqn.
  std::uint32_t number() const noexcept;

  /// Posts in order; `taken` is the number posted. Returns 0, ENOMEM (the queue is full) or EINVAL (too many SGEs).
  [[nodiscard]] int post(std::span<const ReceiveRequest> requests, std::size_t& taken) noexcept;

  const std::shared_ptr<SharedReceiveState>& state() const noexcept { return state_; }

 private:
  explicit SharedReceiveQueue(std::shared_ptr<SharedReceiveState> state) noexcept : state_(std::move(state)) {}
  std::shared_ptr<SharedReceiveState> state_;
};

/// The address of a queue pair. The packet sequence numbers of both directions begin at 0.
struct PairAddress {
  Gid gid{};
  std::uint32_t number = 0;  ///< of the queue pair
  bool operator==(const PairAddress&) const = default;
};

struct QpCapacity {
  std::uint32_t max_send_wr = 1;
  std::uint32_t max_recv_wr = 1;
  std::uint32_t max_send_sge = 1;
  std::uint32_t max_recv_sge = 1;
  std::uint32_t max_inline = 0;  ///< bytes
};

struct QpOptions {
  QpType type = QpType::rc;
  const CompletionQueue* send_queue = nullptr;
  const CompletionQueue* receive_queue = nullptr;
  const SharedReceiveQueue* shared_receive = nullptr;  ///< RC and UD
  QpCapacity capacity{};
  bool signals_all = false;
  std::uint64_t cookie = 0;
};

/// The attributes that modify() changes, as bits with the values of IBV_QP_*.
namespace qp_mask {
inline constexpr std::uint32_t state = 1U << 0;
inline constexpr std::uint32_t cur_state = 1U << 1;
inline constexpr std::uint32_t en_sqd_async_notify = 1U << 2;
inline constexpr std::uint32_t access_flags = 1U << 3;
inline constexpr std::uint32_t pkey_index = 1U << 4;
inline constexpr std::uint32_t port = 1U << 5;
inline constexpr std::uint32_t qkey = 1U << 6;
inline constexpr std::uint32_t av = 1U << 7;
inline constexpr std::uint32_t path_mtu = 1U << 8;
inline constexpr std::uint32_t timeout = 1U << 9;
inline constexpr std::uint32_t retry_cnt = 1U << 10;
inline constexpr std::uint32_t rnr_retry = 1U << 11;
inline constexpr std::uint32_t rq_psn = 1U << 12;
inline constexpr std::uint32_t max_rd_atomic = 1U << 13;
inline constexpr std::uint32_t alt_path = 1U << 14;
inline constexpr std::uint32_t min_rnr_timer = 1U << 15;
inline constexpr std::uint32_t sq_psn = 1U << 16;
inline constexpr std::uint32_t max_dest_rd_atomic = 1U << 17;
inline constexpr std::uint32_t path_mig_state = 1U << 18;
inline constexpr std::uint32_t capacity = 1U << 19;  ///< always refused
inline constexpr std::uint32_t dest_qp_num = 1U << 20;
}  // namespace qp_mask

struct QpAttributes {
  QpState state = QpState::reset;
  QpState cur_state = QpState::reset;
  Mtu path_mtu = Mtu::bytes_256;
  std::uint8_t path_mig_state = 0;  ///< accepted where allowed, not used
  std::uint32_t qkey = 0;
  std::uint32_t rq_psn = 0;  ///< 24 bits
  std::uint32_t sq_psn = 0;  ///< 24 bits
  std::uint32_t dest_qp_num = 0;
  std::uint32_t access_flags = 0;  ///< access::remote_*: what the peer may do through this queue pair
  AddressVector av{};
  AddressVector alt_av{};  ///< accepted where allowed, not used
  std::uint16_t pkey_index = 0;
  bool en_sqd_async_notify = false;
  bool is_sq_draining = false;  ///< query only
  std::uint8_t max_rd_atomic = 0;
  std::uint8_t max_dest_rd_atomic = 0;
  std::uint8_t min_rnr_timer = 0;  ///< code 0..31
  std::uint8_t port_num = 0;
  std::uint8_t timeout = 0;  ///< 4.096 us * 2^timeout; 0: never
  std::uint8_t retry_cnt = 0;
  std::uint8_t rnr_retry = 0;  ///< 7: retries for ever
  std::uint8_t alt_port_num = 0;
  std::uint8_t alt_timeout = 0;
};

/// A queue pair. Move-only; the destructor destroys it.
class QueuePair {
 public:
  /// EINVAL: a completion queue is missing, or the capacity exceeds the device's limits. EOPNOTSUPP: UC with a shared
  /// receive queue. ENOMEM: a limit is reached. xrc_send needs no receive_queue. For xrc_recv use create_target().
  [[nodiscard]] static Result<QueuePair> create(const ProtectionDomain& domain, const QpOptions& options);

  /// XRC: creates a target of the domain. Programs cannot post to a target. Its receives complete in the completion
  /// queue of the shared receive queue that the request names; qp_num is the target's.
  [[nodiscard]] static Result<QueuePair> create_target(const XrcDomain& domain, std::uint64_t cookie = 0);
  /// Opens another handle to a target of the domain. The target ends with its last handle. EINVAL: the domain has no
  /// target of that number.
  [[nodiscard]] static Result<QueuePair> open_target(const XrcDomain& domain, std::uint32_t number);

  QueuePair(QueuePair&&) noexcept = default;
  QueuePair& operator=(QueuePair&&) noexcept;
  ~QueuePair();

  /// Discards posted requests and completions that were not polled yet. Returns when nothing is in flight any more and
  /// all its asynchronous events are acknowledged. EBUSY, and nothing changed, while it is attached to a multicast
  /// group.
  Result<> destroy();

  std::uint32_t number() const noexcept;
  /// The address that a peer needs to connect to it (connection.hpp).
  PairAddress address() const noexcept;
  QpType type() const noexcept;
  /// The granted capacity, at least as much as requested.
  const QpCapacity& capacity() const noexcept;

  /// Changes all attributes, or none. EINVAL names the attribute that is missing, not allowed, or out of range in this
  /// transition.
  [[nodiscard]] Result<> modify(const QpAttributes& attributes, std::uint32_t mask);
  QpAttributes query() const;
  QpState state() const noexcept;

  /// UD: joins a multicast group. The queue pair then receives all datagrams to `group` that carry its queue key
  /// (senders set remote_qpn to kMulticastQpn and dgid to the group). Senders are on this host, or on hosts that IP
  /// multicast of the device's interface reaches. `group` is ff..., or an IPv4 group as ::ffff:a.b.c.d. Attaching twice
  /// has no further effect. `lid` is another name of the group here, for senders with personality ib that give no GID.
  ///
  /// EINVAL: the queue pair is not UD, or `group` is not a group. ENOMEM: a limit is reached. EPERM: the settings
  /// forbid unsealed traffic with the group's address. Otherwise the kernel's errno, with the remedy.
  [[nodiscard]] Result<> attach_multicast(const Gid& group, std::uint16_t lid = 0);
  /// EINVAL: the queue pair is not attached to this group.
  [[nodiscard]] Result<> detach_multicast(const Gid& group);

  /// Post in order; `taken` is the number posted. Return 0, ENOMEM (the queue is full) or EINVAL (opcode, number of
  /// SGEs, inline length or state).
  [[nodiscard]] int post_send(std::span<const SendRequest> requests, std::size_t& taken) noexcept;
  [[nodiscard]] int post_receive(std::span<const ReceiveRequest> requests, std::size_t& taken) noexcept;
  /// Posts all requests, or none; returns the first error.
  [[nodiscard]] int post_send_all(std::span<const SendRequest> requests) noexcept;

  /// Post one request.
  [[nodiscard]] int post_send(const SendRequest& request) noexcept {
    std::size_t taken = 0;
    return post_send({&request, 1}, taken);
  }
  [[nodiscard]] int post_receive(const ReceiveRequest& request) noexcept {
    std::size_t taken = 0;
    return post_receive({&request, 1}, taken);
  }

  const std::shared_ptr<PairState>& inner() const noexcept { return state_; }

 private:
  explicit QueuePair(std::shared_ptr<PairState> state) noexcept : state_(std::move(state)) {}
  std::shared_ptr<PairState> state_;
};

}  // namespace fairlead::verbs
