#pragma once
// The parts of a queue pair without an engine. Nothing is sent; the test provides memory, requests and time.

#include <gtest/gtest.h>
#include <sys/eventfd.h>

#include <array>
#include <vector>

#include "qp/executor.hpp"
#include "qp/outstanding.hpp"
#include "qp/pair_table.hpp"

namespace fairlead::qp {

struct PartsForTests {
  static constexpr std::uint32_t kPeer = 7;
  static constexpr std::uint32_t kRights = verbs::access::local_write | verbs::access::remote_write |
                                           verbs::access::remote_read | verbs::access::remote_atomic;

  PartsForTests() {
    PairPlan plan{.type = verbs::QpType::rc,
                  .capacity = {.max_send_wr = 8, .max_recv_wr = 8, .max_send_sge = 2, .max_recv_sge = 2},
                  .signals_all = true,
                  .domain = 1,
                  .send_stream = &stream,
                  .receive_stream = &stream,
                  .shared_receives = {}};
    ReceiveQueueHandle handle;
    EXPECT_EQ(receives.open({.depth = 8, .sges = 2, .domain = 1}, handle), Status::ok);
    pair = &table.add(plan);
    pair->receives = handle.slot;
    pair->receive_sges.resize(2);
    table.begin_incarnation(*pair);
    completer.account(*pair).sends.begin_incarnation(pair->incarnation);
    completer.account(*pair).receives.begin_incarnation(pair->incarnation);
    pair->attributes = {.state = verbs::QpState::rts};
    pair->attributes.access_flags = kRights;
    pair->attributes.dest_qp_num = kPeer;
    pair->attributes.max_rd_atomic = pair->attributes.max_dest_rd_atomic = 4;
    pair->attributes.timeout = 14;
    pair->attributes.retry_cnt = pair->attributes.rnr_retry = 1;
    pair->patience.begin(pair->attributes);
    pair->sends.reset();
    key =
        shared.regions.add({.base = memory.data(), .length = memory.size(), .iova = 0, .access = kRights, .domain = 1});
  }

  void receive(std::uint64_t id, std::uint32_t length) {
    const verbs::Sge sge{100, length, key};
    receives[pair->receives].post({.id = id, .sges = {&sge, 1}});
  }
  RequestNumber post(verbs::SendOpcode opcode = verbs::SendOpcode::send) {
    const verbs::Sge sge{0, 8, key};
    pair->sends.post({.id = pair->sends.tail().value, .sges = {&sge, 1}, .opcode = opcode}, 8);
    return pair->sends.tail() - 1;
  }
  RequestNumber send(verbs::SendOpcode opcode = verbs::SendOpcode::send) {
    const RequestNumber number = post(opcode);
    pair->sends.sent_message(pair->sends[number]);
    pair->sends.note_begun();
    return number;
  }
  std::vector<verbs::WorkCompletion> completions() {
    std::vector<verbs::WorkCompletion> all(16);
    all.resize(stream.take(all.data(), 16, completer.accounts()));
    return all;
  }

  NoticeStream events{base::FileDescriptor(::eventfd(0, EFD_SEMAPHORE))};
  CompletionStream stream{{.capacity = 64, .events = &events}};
  Shared shared{.transports = nullptr,
                .address = *base::SocketAddress::from_ip("10.0.0.1", 20480),
                .bounds = {.copied_max = 768, .early_max = 4096},
                .now = base::Instant{std::chrono::seconds(1)}};
  PairTable table{0};
  ReceiveQueues receives;
  ReorderBuffer arrivals{shared};
  PublishedTables published{shared};
  Completer completer{shared, receives, arrivals, published, PairTable::kMost};
  Executor executor{shared, receives, completer, published};
  Outstanding outstanding{shared, completer, executor};
  std::array<std::byte, 4096> memory{};
  std::uint32_t key = 0;
  QueuePair* pair = nullptr;
};

}  // namespace fairlead::qp
