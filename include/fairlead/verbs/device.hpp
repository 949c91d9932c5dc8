#pragma once
// Devices: one for each address of this host that an engine can be bound to. A context is an opened device; contexts
// of one device share its engine within a process.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fairlead/error.hpp>
#include <fairlead/verbs/types.hpp>

namespace fairlead::verbs {

struct Device {
  std::string name{};            ///< "fairlead0", ...
  std::string address{};         ///< "10.0.0.5", the address of GID 0
  std::string interface_name{};  ///< "eth0"; empty if unknown
  std::uint32_t interface_index = 0;
  Gid gid{};
  std::uint64_t guid = 0;  ///< host order, not 0, the same in every process of the host
};

/// The devices of this host: IPv4 before IPv6, loopback addresses last, else in the kernel's order of interfaces. The
/// list is never empty; on failure there is an error. FAIRLEAD_DEVICE=a.b.c.d[,...] selects addresses.
[[nodiscard]] Result<std::vector<Device>> devices();

enum class Personality : std::uint8_t {
  roce,  ///< Ethernet link layer: GIDs name peers, and every address vector needs is_global
  ib,    ///< InfiniBand link layer: LIDs may name peers; a LID is the lower 16 bits of the IPv4 address
};

struct ContextOptions {
  Personality personality = Personality::roce;
  /// Engine settings by name; they override the environment. Only the first context of a device applies them.
  std::vector<std::pair<std::string, std::string>> engine{};
};

/// The device enforces the limits that it advertises.
struct DeviceLimits {
  std::uint64_t max_mr_size = 1ULL << 46;       ///< bytes
  std::uint64_t max_message_size = 1ULL << 30;  ///< bytes
  std::uint32_t max_qp = 16382;                 ///< per process and device, shared by all contexts
  std::uint32_t max_qp_wr = 16384;
  std::uint32_t max_sge = 32;
  std::uint32_t max_inline = 1024;  ///< bytes
  std::uint32_t max_cq = 16384;
  std::uint32_t max_cqe = 1U << 20;
  std::uint32_t max_mr = 65536;
  std::uint32_t max_mw = 65536;
  std::uint32_t max_pd = 65536;
  std::uint32_t max_ah = 65536;
  std::uint32_t max_srq = 16384;
  std::uint32_t max_srq_wr = 16384;
  std::uint32_t max_srq_sge = 32;
  std::uint32_t max_qp_rd_atom = 16;
  std::uint32_t max_res_rd_atom = 16 * 16382;
  std::uint32_t max_pkeys = 1;
  std::uint32_t max_groups = 64;     ///< multicast groups with attached queue pairs, per process and device
  std::uint32_t max_group_qp = 256;  ///< queue pairs per group
  std::uint32_t comp_vectors = 4;
  std::uint8_t local_ca_ack_delay = 15;  ///< 4.096 us * 2^local_ca_ack_delay
};

enum class PortState : std::uint8_t { down = 1, active = 4 };

/// Returns whether this entry of a port's GID table is the device's address. Entry 0 is, and entry 3: scripts for mlx5
/// devices choose 3, which is RoCE v2 over IPv4 there (`-x 3`, `NCCL_IB_GID_INDEX=3`). The others are empty.
constexpr bool has_gid(std::uint32_t index) noexcept {
  return index == 0 || index == 3;
}

struct PortAttributes {
  PortState state = PortState::active;
  Mtu max_mtu = Mtu::bytes_4096;
  Mtu active_mtu = Mtu::bytes_4096;
  std::uint32_t gid_count = 4;  ///< see has_gid()
  std::uint32_t pkey_count = 1;
  std::uint32_t max_message_size = 1U << 30;  ///< bytes
  std::uint16_t lid = 0;                      ///< personality ib
  bool is_infiniband = false;
};

enum class AsyncEventType : std::uint8_t {
  cq_err = 0,
  qp_fatal = 1,
  qp_req_err = 2,
  qp_access_err = 3,
  comm_est = 4,
  sq_drained = 5,
  device_fatal = 8,  ///< the interface was deleted
  port_active = 9,
  port_err = 10,  ///< the interface went down, or lost the device's address
  srq_err = 14,
  srq_limit_reached = 15,
  qp_last_wqe_reached = 16,
  gid_change = 18,  ///< the interface lost the device's address
};

struct AsyncEvent {
  AsyncEventType type = AsyncEventType::device_fatal;
  std::uint64_t cookie = 0;  ///< of the queue pair, completion queue or shared receive queue; port events: the port
                             ///< number
  std::uint64_t ticket = 0;  ///< for ack_async_event()
};

struct ContextState;

/// An opened device. Copies refer to the same context. The context lives until the last object created in it is
/// destroyed. close() reports whether such objects exist.
class Context {
 public:
  [[nodiscard]] static Result<Context> open(const Device& device, const ContextOptions& options = {});

  /// EBUSY, and nothing changed, while objects created in it exist.
  Result<> close();

  const Device& device() const noexcept;
  const DeviceLimits& limits() const noexcept;
  /// EINVAL unless `port` is 1.
  [[nodiscard]] Result<PortAttributes> query_port(std::uint8_t port) const;
  /// The device's address if has_gid(index). Other entries below PortAttributes::gid_count are empty (zero); EINVAL
  /// beyond.
  [[nodiscard]] Result<Gid> query_gid(std::uint8_t port, std::uint32_t index) const;
  /// Index 0: 0xFFFF; EINVAL beyond.
  [[nodiscard]] Result<std::uint16_t> query_pkey(std::uint8_t port, std::uint32_t index) const;

  /// Readable while asynchronous events are pending. It is a semaphore eventfd: each event is a new edge for epoll. The
  /// caller may set O_NONBLOCK. The context owns the descriptor; do not close it.
  int async_descriptor() const noexcept;
  /// Returns the next event. Blocks unless O_NONBLOCK is set on async_descriptor(); then EAGAIN means that there is no
  /// event. EINTR: a signal arrived.
  [[nodiscard]] Result<AsyncEvent> get_async_event();
  /// Acknowledge each fetched event: destroying its object waits for the acknowledgement.
  void ack_async_event(const AsyncEvent& event) noexcept;

  /// Makes progress once, for programs that wait for something other than a completion. True if there was any work.
  bool progress() noexcept;

  /// A report for `--explain`: the queue pair counters that are not 0, one per line, and the state of each peer.
  std::string describe() const;

  const std::shared_ptr<ContextState>& state() const noexcept { return state_; }

 private:
  explicit Context(std::shared_ptr<ContextState> state) noexcept : state_(std::move(state)) {}
  std::shared_ptr<ContextState> state_;
};

}  // namespace fairlead::verbs
