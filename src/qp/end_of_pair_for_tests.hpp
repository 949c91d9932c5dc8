#pragma once
// One end of a queue pair between two engines on virtual time, with its own memory.

#include <gtest/gtest.h>
#include <sys/eventfd.h>

#include <memory>
#include <utility>
#include <vector>

#include "engine/engine_pair_for_tests.hpp"
#include "qp/queue_pairs.hpp"

namespace fairlead::qp {

inline constexpr std::uint32_t kPsnForTests = 0xFFFF'FFFA;  // so that it wraps

struct EndOfPair {
  explicit EndOfPair(engine::DirectSide& its_side, std::uint32_t its_rights = verbs::access::remote_write)
      : side(its_side), rights(its_rights) {
    notices = std::make_unique<NoticeStream>(base::FileDescriptor(::eventfd(0, EFD_SEMAPHORE)));
    stream = pairs().open_completions({.capacity = 4096, .events = notices.get()});
    key = pairs().regions().add({.base = memory.data(),
                                 .length = memory.size(),
                                 .iova = at(0),
                                 .access = verbs::access::local_write | rights,
                                 .domain = 1});
  }
  QueuePairs& pairs() const { return side.engine->pairs(); }
  std::uint64_t at(std::size_t offset) const { return reinterpret_cast<std::uintptr_t>(memory.data()) + offset; }
  verbs::Sge sge(std::size_t offset, std::uint32_t length) const { return {at(offset), length, key}; }
  verbs::QpState state() const { return pairs().pair_facts(handle).attributes.state; }

  void open(verbs::QpType type = verbs::QpType::rc) {
    ASSERT_EQ(pairs().open_pair(
                  {.type = type,
                   .capacity =
                       {.max_send_wr = 128, .max_recv_wr = 120, .max_send_sge = 2, .max_recv_sge = 2, .max_inline = 64},
                   .domain = 1,
                   .send_stream = stream,
                   .receive_stream = stream,
                   .shared_receives = {},
                   .events = notices.get()},
                  handle, number),
              Status::ok);
  }
  void connect(const EndOfPair& to, base::Instant now) {
    verbs::QpAttributes wanted;
    wanted.dest_qp_num = to.number;
    wanted.sq_psn = wanted.rq_psn = kPsnForTests;
    wanted.access_flags = rights;
    wanted.av = {.dgid = to.side.engine->address().ip, .is_global = true};
    wanted.max_rd_atomic = wanted.max_dest_rd_atomic = 4;
    wanted.timeout = 14;
    wanted.retry_cnt = 1;
    wanted.rnr_retry = 7;
    wanted.min_rnr_timer = 1;
    using enum verbs::QpState;
    for (const auto& [from, into] : {std::pair{reset, init}, {init, rtr}, {rtr, rts}}) {
      wanted.state = into;
      ASSERT_EQ(pairs().change_pair(handle, from, wanted, now), Status::ok);
    }
  }
  void change(verbs::QpState to, base::Instant now) {
    verbs::QpAttributes wanted = pairs().pair_facts(handle).attributes;
    const verbs::QpState from = wanted.state;
    wanted.state = to;
    ASSERT_EQ(pairs().change_pair(handle, from, wanted, now), Status::ok);
  }
  void receive(std::uint64_t id, const verbs::Sge& into) {
    std::size_t taken = 0;
    const verbs::ReceiveRequest request{.id = id, .sges = {&into, 1}};
    ASSERT_EQ(pairs().post_receive(handle, {&request, 1}, taken), 0);
  }
  int post(const verbs::SendRequest& request, base::Instant now) {
    std::size_t taken = 0;
    return pairs().post_send(handle, {&request, 1}, taken, now);
  }
  void send(std::uint64_t id, const verbs::Sge& from, base::Instant now) {
    ASSERT_EQ(post({.id = id, .sges = {&from, 1}, .flags = verbs::send_flags::signaled}, now), 0);
  }
  std::vector<verbs::WorkCompletion> completions() {
    std::vector<verbs::WorkCompletion> all(256);
    all.resize(stream->take(all.data(), 256, pairs().accounts()));
    return all;
  }

  engine::DirectSide& side;
  std::uint32_t rights;  // access rights of the peer
  std::unique_ptr<NoticeStream> notices;
  CompletionStream* stream = nullptr;
  std::vector<std::byte> memory = std::vector<std::byte>(1 << 20);
  std::uint32_t key = 0;
  PairHandle handle;
  std::uint32_t number = 0;
};

}  // namespace fairlead::qp
