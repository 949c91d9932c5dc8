#pragma once
// Two engines on virtual time over the simulated network, each with queue pairs.

#include <gtest/gtest.h>
#include <sys/eventfd.h>

#include <array>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "engine/engine.hpp"
#include "path/sim_network.hpp"
#include "qp/queue_pairs.hpp"

namespace fairlead::qp {

using namespace std::chrono_literals;

struct PairEngine {
  std::unique_ptr<engine::Engine> engine;
  std::unique_ptr<NoticeStream> notices;
  CompletionStream* stream = nullptr;
  std::vector<std::byte> memory = std::vector<std::byte>(1 << 20);
  std::uint32_t key = 0;

  QueuePairs& pairs() const { return engine->pairs(); }
  std::uint64_t address(std::size_t offset) const { return reinterpret_cast<std::uintptr_t>(memory.data()) + offset; }
  verbs::Sge sge(std::size_t offset, std::uint32_t length) const { return {address(offset), length, key}; }
  std::vector<verbs::WorkCompletion> completions() {
    std::vector<verbs::WorkCompletion> all(256);
    all.resize(stream->take(all.data(), 256, pairs().accounts()));
    return all;
  }
};

class PairWorld {
 public:
  static constexpr std::uint32_t kRights = verbs::access::local_write | verbs::access::remote_write |
                                           verbs::access::remote_read | verbs::access::remote_atomic;

  /// Wraps the path of each engine.
  using Wrap = std::function<std::unique_ptr<path::Path>(std::unique_ptr<path::Path>)>;

  PairWorld(std::uint64_t its_seed, const engine::EngineOptions& its_options, Wrap its_wrap = {})
      : network(its_seed), seed(its_seed), options(its_options), wrap(std::move(its_wrap)) {
    for (std::uint8_t i = 0; i < 2; ++i) start(i);
  }

  /// Starts a host, at the same address as before.
  void start(std::size_t index) {
    PairEngine& host = hosts[index];
    const auto at = *base::SocketAddress::from_ip("10.0.0." + std::to_string(index + 1), 20480);
    ++lives;
    std::unique_ptr<path::Path> path = *network.attach(at);
    if (wrap) path = wrap(std::move(path));
    host.engine = std::make_unique<engine::Engine>(std::move(path), at, options, 99U + lives, seed * 7 + lives - 1);
    host.notices = std::make_unique<NoticeStream>(base::FileDescriptor(::eventfd(0, EFD_SEMAPHORE)));
    host.stream = host.pairs().open_completions({.capacity = 4096, .events = host.notices.get()});
    host.key = host.pairs().regions().add({.base = host.memory.data(),
                                           .length = host.memory.size(),
                                           .iova = host.address(0),
                                           .access = kRights,
                                           .domain = 1});
  }

  /// Ends the process of a host. `says_so`: it announces its end.
  void end(std::size_t index, bool says_so) {
    PairEngine& host = hosts[index];
    if (says_so) host.engine->farewell(now);
    host.engine.reset();
    host.notices.reset();
    host.stream = nullptr;
  }

  struct End {
    PairHandle handle;
    std::uint32_t number = 0;
  };

  End open(std::size_t index, verbs::QpType type) {
    PairEngine& host = hosts[index];
    End end;
    const Status status = host.pairs().open_pair(
        {.type = type,
         .capacity = {.max_send_wr = 64, .max_recv_wr = 64, .max_send_sge = 2, .max_recv_sge = 2, .max_inline = 64},
         .domain = 1,
         .send_stream = host.stream,
         .receive_stream = host.stream,
         .shared_receives = {},
         .events = host.notices.get()},
        end.handle, end.number);
    EXPECT_EQ(status, Status::ok);
    return end;
  }

  /// Brings a queue pair from RESET to RTS, connected to `peer` on the other host.
  void connect(std::size_t index, const End& end, const End& peer, std::uint32_t sq_psn, std::uint32_t rq_psn) {
    connect(index, end, peer, sq_psn, rq_psn, "10.0.0." + std::to_string(2 - index));
  }
  void connect(std::size_t index, const End& end, const End& peer, std::uint32_t sq_psn, std::uint32_t rq_psn,
               const std::string& at) {
    verbs::QpAttributes attributes;
    attributes.dest_qp_num = peer.number;
    attributes.sq_psn = sq_psn;
    attributes.rq_psn = rq_psn;
    attributes.qkey = 5;
    attributes.access_flags = kRights;
    attributes.av = {.dgid = base::SocketAddress::from_ip(at, 20480)->ip, .is_global = true};
    attributes.max_rd_atomic = attributes.max_dest_rd_atomic = 4;
    attributes.timeout = timeout;
    attributes.retry_cnt = retry_cnt;
    attributes.rnr_retry = 7;
    attributes.min_rnr_timer = min_rnr_timer;
    QueuePairs& flows = hosts[index].pairs();
    using enum verbs::QpState;
    for (const auto& [from, to] : {std::pair{reset, init}, {init, rtr}, {rtr, rts}}) {
      attributes.state = to;
      ASSERT_EQ(flows.change_pair(end.handle, from, attributes, now), Status::ok);
    }
  }

  /// Advances time to the next event, at most to `limit`.
  void step(base::Instant limit) {
    bool any = false;
    for (PairEngine& host : hosts) any |= host.engine && host.engine->progress(now);
    if (any) return;
    base::Instant next = network.next_event();
    for (PairEngine& host : hosts) {
      if (host.engine) next = std::min(next, host.engine->next_deadline());
    }
    now = std::min(limit, std::max(next, now + 1ns));
    network.advance(now);
  }

  void run_until(base::Instant moment) {
    while (now < moment) step(moment);
    for (int i = 0; i < 3; ++i) step(moment);
  }

  path::SimNetwork network;
  std::uint64_t seed;
  engine::EngineOptions options;
  Wrap wrap;
  std::uint32_t lives = 0;
  std::uint8_t timeout = 16, retry_cnt = 7, min_rnr_timer = 6;
  base::Instant now{1s};
  std::array<PairEngine, 2> hosts;
};

}  // namespace fairlead::qp
