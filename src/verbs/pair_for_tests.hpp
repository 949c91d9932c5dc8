#pragma once
// Two ends in one process: in one engine, or in two engines over loopback UDP, with or without injected faults.

#include <fcntl.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <numeric>
#include <string>
#include <string_view>
#include <vector>

#include <fairlead/verbs.hpp>

#include "base/thread_sanitizer.hpp"
#include "host/daemon_for_tests.hpp"
#include "verbs/context_state.hpp"

namespace fairlead::verbs {

// rings: shared memory without one-sided access. cma: shared memory and cross-memory attach.
// host, hosts: through a host engine; both sides use one engine, or one each.
enum class Road { self, shm, udp, faulty, rings, cma, host, hosts };

inline std::string to_string(Road road) {
  constexpr std::array<const char*, 8> kNames{"self", "shm", "udp", "faulty", "rings", "cma", "host", "hosts"};
  return kNames[static_cast<std::size_t>(road)];
}

/// Returns the roads that this build can test. Memory can only be moved to the shared segment in a program without
/// other threads, and ThreadSanitizer adds one.
inline std::vector<Road> roads(std::initializer_list<Road> all) {
  std::vector<Road> usable(all);
#ifdef FAIRLEAD_THREAD_SANITIZER
  std::erase_if(usable, [](Road road) { return road == Road::host || road == Road::hosts; });
#endif
  return usable;
}

/// Returns the value, or ends the test program if there is none.
template <typename T>
T made(Result<T> result) {
  if (!result) exit_with(result.error());
  return std::move(*result);
}

/// One side: everything that a small program needs.
struct Side {
  static constexpr std::size_t kMemory = 4 << 20;
  static constexpr std::uint32_t kAllRights =
      access::local_write | access::remote_write | access::remote_read | access::remote_atomic;

  /// `daemon`: file of the host engine's socket; empty: the one that all tests share.
  Side(std::uint8_t host, Road road, const char* give_up_after_ms = nullptr, const std::string& daemon = {})
      : device{.name = "test",
               .address = "127.0.0." + std::to_string(host),
               .interface_name = {},
               .gid = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF, 127, 0, 0, host}},
        context(made(Context::open(device, options(road, give_up_after_ms, daemon)))),
        domain(*ProtectionDomain::allocate(context)),
        channel(*CompletionChannel::open(context)),
        queue(*CompletionQueue::create(context, {.capacity = 512, .channel = &channel, .cookie = 77})),
        memory(kMemory),
        region(made(MemoryRegion::add(domain, all_of(memory, kAllRights)))) {}

  static Registration all_of(std::vector<std::byte>& bytes, std::uint32_t rights) {
    return {.address = bytes.data(), .length = bytes.size(), .access = rights, .iova = {}};
  }

  static ContextOptions options(Road road, const char* give_up_after_ms, const std::string& daemon) {
    ContextOptions chosen;
    if (give_up_after_ms != nullptr) chosen.engine.emplace_back("give_up_after", give_up_after_ms);
    if (road == Road::shm || road == Road::udp) chosen.engine.emplace_back("path", to_string(road));
    if (road == Road::rings) {
      chosen.engine.emplace_back("path", "shm");
      chosen.engine.emplace_back("shm_shared_max", "0");
    }
    if (road == Road::cma) {
      chosen.engine.emplace_back("path", "shm");
      for (const char* name : {"shm_cma_max", "shm_cma_awake_max"}) chosen.engine.emplace_back(name, "67108864");
    }
    if (road == Road::host || road == Road::hosts) {
      chosen.engine.emplace_back("core", "host");
      chosen.engine.emplace_back("host", daemon.empty() ? host::DaemonForTests::shared().file() : daemon);
    }
    if (road == Road::faulty) {
      chosen.engine.emplace_back("fault", "drop=3%,reorder=10:16,duplicate=2%,seed=7");
    }
    return chosen;
  }

  Sge sge(std::size_t offset, std::uint32_t length) const {
    return {reinterpret_cast<std::uintptr_t>(memory.data()) + offset, length, region.lkey()};
  }
  std::uint64_t remote(std::size_t offset) const { return reinterpret_cast<std::uintptr_t>(memory.data()) + offset; }
  void fill(std::size_t offset, std::size_t length, unsigned salt) {
    for (std::size_t i = 0; i < length; ++i) memory[offset + i] = static_cast<std::byte>((i * 131 + salt) >> 3);
  }

  /// Takes the engine's lock. A program that reads its memory without a completion needs it to order those reads after
  /// the peer's writes (for ThreadSanitizer).
  void meet_engine() const { (void)context.describe(); }

  /// Returns a counter of the engine, for example "qp.direct_writes".
  std::uint64_t counted(std::string_view name) const {
    const auto counters = context.state()->core->facts().counters;
    const auto found = std::ranges::find(counters, name, &observe::CounterFact::name);
    EXPECT_TRUE(found != counters.end()) << name;
    return found == counters.end() ? 0 : found->value;
  }

  Device device;
  Context context;
  ProtectionDomain domain;
  CompletionChannel channel;
  CompletionQueue queue;
  std::vector<std::byte> memory;
  MemoryRegion region;
};

/// Creates a queue pair on one side only.
inline Result<QueuePair> make_pair_at(Side& side, QpType type = QpType::rc, const QpCapacity& capacity = {}) {
  if (type == QpType::xrc_recv) return QueuePair::create_target(*XrcDomain::open(side.context));
  return QueuePair::create(side.domain, {.type = type,
                                         .send_queue = &side.queue,
                                         .receive_queue = &side.queue,
                                         .shared_receive = nullptr,
                                         .capacity = capacity});
}

struct PairOptions {
  QpType type = QpType::rc;
  QpCapacity capacity{.max_send_wr = 128, .max_recv_wr = 128, .max_send_sge = 4, .max_recv_sge = 4, .max_inline = 256};
  bool signals_all = false;
  std::uint32_t rights = Side::kAllRights;
  std::uint8_t max_rd_atomic = 4;
  std::uint8_t max_dest_rd_atomic = 4;
  std::uint8_t timeout = 17;  // 4 s in all, for slow machines
  std::uint8_t retry_cnt = 7;
  std::uint8_t rnr_retry = 7;
  std::uint8_t min_rnr_timer = 1;
  const SharedReceiveQueue* shared = nullptr;
};

inline constexpr std::uint32_t kQueueKey = 0x1234'5678;

inline QpAttributes attributes_for(const PairOptions& options, const Device& peer, std::uint32_t peer_number,
                                   std::uint32_t sq_psn, std::uint32_t rq_psn) {
  QpAttributes attributes;
  attributes.path_mtu = Mtu::bytes_1024;
  attributes.qkey = kQueueKey;
  attributes.rq_psn = rq_psn;
  attributes.sq_psn = sq_psn;
  attributes.dest_qp_num = peer_number;
  attributes.access_flags = options.rights;
  attributes.av = {.dgid = peer.gid, .is_global = true};
  attributes.max_rd_atomic = options.max_rd_atomic;
  attributes.max_dest_rd_atomic = options.max_dest_rd_atomic;
  attributes.min_rnr_timer = options.min_rnr_timer;
  attributes.port_num = 1;
  attributes.timeout = options.timeout;
  attributes.retry_cnt = options.retry_cnt;
  attributes.rnr_retry = options.rnr_retry;
  return attributes;
}

inline std::uint32_t mask_for(QpType type, QpState to) {
  using namespace qp_mask;
  switch (to) {
    case QpState::init:
      return state | pkey_index | port | (type == QpType::ud ? qkey : access_flags);
    case QpState::rtr:
      if (type == QpType::ud) return state;
      return state | av | path_mtu | dest_qp_num | rq_psn |
             (type == QpType::rc || type == QpType::xrc_recv ? max_dest_rd_atomic | min_rnr_timer : 0);
    case QpState::rts:
      if (type == QpType::xrc_recv) return state | sq_psn | timeout;
      return state | sq_psn |
             (type == QpType::rc || type == QpType::xrc_send ? timeout | retry_cnt | rnr_retry | max_rd_atomic : 0);
    default:
      return state;
  }
}

inline void move(QueuePair& pair, QpAttributes attributes, QpState to) {
  attributes.state = to;
  const auto moved = pair.modify(attributes, mask_for(pair.type(), to));
  ASSERT_TRUE(moved) << moved.error().message;
}

inline void move_up(QueuePair& pair, const QpAttributes& attributes, QpState to) {
  for (const QpState step : {QpState::init, QpState::rtr, QpState::rts}) {
    move(pair, attributes, step);
    if (step == to) break;
  }
}

/// Collects up to `most` completions of one side's queue, and drives both sides. Gives up after half a minute.
inline std::vector<WorkCompletion> collect(Side& from, Side& other, std::size_t most) {
  std::vector<WorkCompletion> all;
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (all.size() < most && std::chrono::steady_clock::now() < end) {
    std::array<WorkCompletion, 16> some;
    const int count = from.queue.poll(std::span(some).first(std::min<std::size_t>(16, most - all.size())));
    if (count < 0) break;
    all.insert(all.end(), some.begin(), some.begin() + count);
    other.context.progress();
  }
  return all;
}

/// Two connected sides a and b.
class Connected {
 public:
  static constexpr std::uint32_t kPsnOfA = 0xFF'FFF0;  // soon wraps beyond 24 bits
  static constexpr std::uint32_t kPsnOfB = 0x12'3456;

  explicit Connected(Road road, const PairOptions& options = {}, QpState state_of_b = QpState::rts)
      : options_(options),
        a(road == Road::faulty ? 3 : 1, road),
        b(road == Road::self || road == Road::host ? 1
          : road == Road::faulty                   ? 4
                                                   : 2,
          road),
        pa(make(a)),
        pb(make(b)) {
    move_up(pa, attributes_of_a(), QpState::rts);
    if (state_of_b != QpState::reset) move_up(pb, attributes_of_b(), state_of_b);
  }

  QpAttributes attributes_of_a() const { return attributes_for(options_, b.device, pb.number(), kPsnOfA, kPsnOfB); }
  QpAttributes attributes_of_b() const { return attributes_for(options_, a.device, pa.number(), kPsnOfB, kPsnOfA); }

  std::vector<WorkCompletion> at_a(std::size_t most) { return collect(a, b, most); }
  std::vector<WorkCompletion> at_b(std::size_t most) { return collect(b, a, most); }
  WorkCompletion one_at_a() { return one(at_a(1)); }
  WorkCompletion one_at_b() { return one(at_b(1)); }

  std::uint64_t counted_at_b(std::string_view name) const { return b.counted(name); }
  /// Drives both sides until the counter, which has no completion, exceeds `before`. Returns false after a time limit.
  bool wait_until_counted_at_b(std::string_view name, std::uint64_t before) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (counted_at_b(name) <= before && std::chrono::steady_clock::now() < end) {
      a.context.progress();
      b.context.progress();
    }
    return counted_at_b(name) > before;
  }

  /// Returns the asynchronous events of a side that are available now.
  static std::vector<AsyncEventType> events(Side& side) {
    std::vector<AsyncEventType> types;
    const int flags = ::fcntl(side.context.async_descriptor(), F_GETFL);
    ::fcntl(side.context.async_descriptor(), F_SETFL, flags | O_NONBLOCK);
    while (const auto event = side.context.get_async_event()) {
      types.push_back(event->type);
      side.context.ack_async_event(*event);
    }
    return types;
  }

  /// Returns them as soon as there is one. A host engine may tell of an event after the completion that caused it.
  static std::vector<AsyncEventType> next_events(Side& side) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    std::vector<AsyncEventType> types = events(side);
    for (; types.empty() && std::chrono::steady_clock::now() < end; types = events(side)) side.context.progress();
    return types;
  }

 private:
  static WorkCompletion one(const std::vector<WorkCompletion>& all) {
    EXPECT_EQ(all.size(), 1u);
    return all.empty() ? WorkCompletion{.wr_id = ~0ULL, .status = WcStatus::general_err} : all[0];
  }
  QueuePair make(Side& side) const {
    return std::move(*QueuePair::create(side.domain, {.type = options_.type,
                                                      .send_queue = &side.queue,
                                                      .receive_queue = &side.queue,
                                                      .shared_receive = &side == &b ? options_.shared : nullptr,
                                                      .capacity = options_.capacity,
                                                      .signals_all = options_.signals_all}));
  }

  PairOptions options_;

 public:
  Side a, b;
  QueuePair pa, pb;
};

}  // namespace fairlead::verbs
