// The host engine with a malicious application that has queue pairs. It sends invalid requests, and writes anything
// into the memory that it shares for them.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include <atomic>
#include <cstring>
#include <functional>
#include <random>
#include <thread>
#include <utility>

#include "embedded/attach.hpp"
#include "host/application_pairs.hpp"
#include "host/call.hpp"
#include "host/host_core.hpp"
#include "host/host_for_tests.hpp"
#include "host/hostile_pairs_for_tests.hpp"
#include "host/listing.hpp"
#include "host/pair_calls.hpp"
#include "host/pair_layout.hpp"
#include "qp/opcode_traits.hpp"
#include "queue/consumer.hpp"
#include "queue/producer.hpp"
#include "shm/arena.hpp"
#include "tests/environment.hpp"

namespace fairlead::host {
namespace {

class HostileQueuePairs : public ::testing::Test {
 protected:
  /// Expects that another application can open and connect a queue pair.
  void expect_service() {
    HostilePairs good(host_.file());
    good.settle();
    const PairRequest pair = good.pair_in(verbs::QpState::rts);
    PairCall facts = HostilePairs::pair_call();
    facts.object = pair.object;
    facts.generation = pair.generation;
    ASSERT_EQ(good.call(CallKind::pair_facts, facts), Status::ok);
    EXPECT_EQ(good.answer.attributes.state, std::to_underlying(verbs::QpState::rts));
  }

  HostForTests host_;
};

TEST_F(HostileQueuePairs, HaveNoMemoryThatCanBeTakenAway) {
  HostilePairs hostile(host_.file());
  const base::FileDescriptor unsealed(::memfd_create("unsealed", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(::ftruncate(unsealed.get(), kRegionBytes), 0);
  const auto refused = [&](const Call& call, std::initializer_list<int> files, Status status) {
    const auto answered = hostile.open(call, files);
    ASSERT_FALSE(answered.has_value());
    EXPECT_EQ(answered.error().status, status) << answered.error().message;
  };
  refused(hostile.open_call(), {hostile.rings_file(), unsealed.get()}, Status::invalid);
  refused(hostile.open_call(), {hostile.rings_file()}, Status::invalid);
  refused(hostile.open_call(), {}, Status::invalid);
  refused(hostile.open_call(), {hostile.regions_file(), hostile.rings_file()}, Status::invalid);
  Call call = hostile.open_call();
  call.memory_bytes = kRegionBytes + 4096;
  refused(call, {hostile.rings_file(), hostile.regions_file()}, Status::invalid);
  call.memory_bytes = ~0ULL;
  refused(call, {hostile.rings_file(), hostile.regions_file()}, Status::invalid);
  call = hostile.open_call();
  ++call.application;
  refused(call, {hostile.rings_file(), hostile.regions_file()}, Status::restarted);
  hostile.settle();
  refused(hostile.open_call(), {hostile.rings_file(), hostile.regions_file()}, Status::in_use);
  expect_service();
}

TEST_F(HostileQueuePairs, AreDetachedForWhatNoLibraryPosts) {
  const std::vector<std::byte> body(2048);
  using Ask = std::function<void(HostilePairs&, PairRequest)>;
  const auto with = [&](PairRequest request, std::size_t bytes) -> Ask {
    return [=, &body](HostilePairs& hostile, PairRequest pair) {
      PairRequest asked = request;
      asked.object = pair.object;
      asked.generation = pair.generation;
      hostile.ask(asked, std::span(body).first(bytes));
    };
  };
  const auto wrongly = [](PairRequest request) -> Ask {
    return [=](HostilePairs& hostile, PairRequest pair) {
      pair.kind = request.kind;
      pair.opcode = request.opcode;
      hostile.ask_wrongly(pair);
    };
  };
  const auto kind = [](Post post) { return std::to_underlying(post); };
  const auto many = [](Post post) -> Ask {
    return [post](HostilePairs& hostile, PairRequest pair) {
      pair.kind = std::to_underlying(post);
      pair.opcode = std::to_underlying(verbs::SendOpcode::send);
      for (int i = 0; i < 200 && !hostile.is_detached(); ++i) hostile.ask(pair);
    };
  };
  const Ask all[] = {
      with({.kind = 4}, 0),
      with({.kind = 255}, 0),
      with({.kind = kind(Post::post_send), .opcode = 10}, 0),
      with({.kind = kind(Post::post_send), .opcode = 255}, 0),
      with({.kind = kind(Post::post_send), .opcode = 2, .pieces = 3}, 48),  // more than its capacity
      with({.kind = kind(Post::post_send), .opcode = 2, .pieces = 255}, 4080 / 2),
      with({.kind = kind(Post::post_send), .opcode = 2, .bytes = 1025}, 1025),
      with({.kind = kind(Post::post_send), .opcode = 2, .flags = 8, .bytes = 65}, 65),
      with({.kind = kind(Post::post_send), .opcode = 2, .pieces = 1, .bytes = 16}, 32),
      with({.kind = kind(Post::post_receive), .pieces = 3}, 48),
      with({.kind = kind(Post::post_receive), .bytes = 16}, 16),
      with({.kind = kind(Post::call), .opcode = 200, .bytes = sizeof(PairCall)}, sizeof(PairCall)),
      with({.kind = kind(Post::call), .bytes = sizeof(PairCall) - 1}, sizeof(PairCall) - 1),
      with({.kind = kind(Post::call), .bytes = sizeof(PairCall) + 8}, sizeof(PairCall) + 8),
      with({.kind = kind(Post::call), .bytes = sizeof(PairCall), .slot = kPairCallsMax}, sizeof(PairCall)),
      many(Post::post_receive),
      wrongly({.kind = kind(Post::post_send), .opcode = 2}),
      wrongly({.kind = kind(Post::post_receive)}),
      wrongly({.kind = kind(Post::post_to_queue)}),
      wrongly({.kind = kind(Post::call)}),
      wrongly({.kind = 4}),
  };
  for (std::size_t i = 0; i < std::size(all); ++i) {
    SCOPED_TRACE(i);
    HostilePairs hostile(host_.file());
    hostile.settle();
    const PairRequest pair = hostile.pair_in(verbs::QpState::rts);
    all[i](hostile, pair);
    hostile.wait_until_detached();
  }
  expect_service();
}

TEST_F(HostileQueuePairs, AreRefusedWhatNoQueuePairCanHave) {
  HostilePairs hostile(host_.file());
  hostile.settle();
  const auto pair = [&](auto change) {
    PairCall call = HostilePairs::pair_call();
    change(call);
    return hostile.call(CallKind::open_pair, call);
  };
  EXPECT_EQ(pair([](PairCall& call) { call.type = 9; }), Status::invalid);
  EXPECT_EQ(pair([](PairCall& call) { call.max_send_wr = 0; }), Status::invalid);
  EXPECT_EQ(pair([](PairCall& call) { call.max_send_wr = ~0U; }), Status::invalid);
  EXPECT_EQ(pair([](PairCall& call) { call.max_recv_wr = 1U << 31; }), Status::invalid);
  EXPECT_EQ(pair([](PairCall& call) { call.max_send_sge = 33; }), Status::invalid);
  EXPECT_EQ(pair([](PairCall& call) { call.max_recv_sge = ~0U; }), Status::invalid);
  EXPECT_EQ(pair([](PairCall& call) { call.max_inline = 1025; }), Status::invalid);
  EXPECT_EQ(pair([](PairCall& call) { call.shares_receives = 1; }), Status::stale);

  const auto region = [&](std::initializer_list<MemoryPiece> pieces, std::uint64_t length, std::uint64_t skipped = 0) {
    PairCall call{.domain = 1};
    call.length = length;
    call.skipped = skipped;
    return hostile.call(CallKind::add_region, call, pieces);
  };
  EXPECT_EQ(region({{0, kRegionBytes}}, kRegionBytes), Status::ok);
  EXPECT_EQ(region({}, 1), Status::invalid);
  EXPECT_EQ(region({{0, kRegionBytes + 1}}, 1), Status::invalid);
  EXPECT_EQ(region({{1, kRegionBytes}}, 1), Status::invalid);
  EXPECT_EQ(region({{~0ULL, 1}}, 1), Status::invalid);
  EXPECT_EQ(region({{0, ~0ULL}}, 1), Status::invalid);
  EXPECT_EQ(region({{0, 4096}}, 4097), Status::invalid);
  EXPECT_EQ(region({{0, 4096}}, 1, 4096), Status::invalid);
  EXPECT_EQ(region({{0, 4096}}, ~0ULL, 1), Status::invalid);
  EXPECT_EQ(region({{0, 4096}}, 0), Status::invalid);
  EXPECT_EQ(region({{8, 4096}, {8192, 4096}}, 5000), Status::invalid);
  EXPECT_EQ(region({{0, 4096}, {8192, ~0ULL - 4095}}, 5000), Status::invalid);
  EXPECT_EQ(region({{4096, 4096}, {0, 4096}}, 5000, 4000), Status::invalid);
  EXPECT_EQ(region({{4096, 4096}, {0, 4096}}, 5000, 3000), Status::ok);

  PairCall queue{.domain = 1};
  EXPECT_EQ(hostile.call(CallKind::open_queue, queue), Status::invalid);
  queue.depth = ~0U;
  EXPECT_EQ(hostile.call(CallKind::open_queue, queue), Status::invalid);
  PairCall window{.domain = 1};
  window.type = 7;
  EXPECT_EQ(hostile.call(CallKind::add_window, window), Status::invalid);

  // A region of another application.
  HostilePairs other(host_.file());
  other.settle();
  PairCall its{.domain = 1};
  its.length = 4096;
  ASSERT_EQ(other.call(CallKind::add_region, its, {{0, 4096}}), Status::ok);
  its.key = other.answer.key;
  EXPECT_EQ(hostile.call(CallKind::remove_region, its), Status::stale);
  EXPECT_EQ(hostile.call(CallKind::change_region, its, {{0, 4096}}), Status::stale);
  EXPECT_EQ(hostile.call(CallKind::unbind_windows, its), Status::stale);
  EXPECT_FALSE(hostile.is_detached());
  expect_service();
}

TEST_F(HostileQueuePairs, ReachNoMemoryOfAnotherApplication) {
  HostilePairs hostile(host_.file()), other(host_.file());
  hostile.settle();
  other.settle();
  PairCall region{.domain = 1};
  region.length = 4096;
  region.access = verbs::access::local_write | verbs::access::remote_write;
  ASSERT_EQ(hostile.call(CallKind::add_region, region, {{0, 4096}}), Status::ok);
  const std::uint32_t own_key = hostile.answer.key;
  ASSERT_EQ(other.call(CallKind::add_region, region, {{0, 4096}}), Status::ok);
  const std::uint32_t its_key = other.answer.key;
  for (const bool is_own : {true, false}) {
    PairRequest request = hostile.pair_in(verbs::QpState::rts);
    request.kind = std::to_underlying(Post::post_send);
    request.opcode = std::to_underlying(verbs::SendOpcode::write);
    request.flags = verbs::send_flags::signaled;
    request.pieces = 1;
    request.rkey = own_key;
    const verbs::Sge piece{.addr = 0, .length = 8, .lkey = is_own ? own_key : its_key};
    hostile.ask(request, std::as_bytes(std::span(&piece, 1)));
    EXPECT_EQ(hostile.next_status(), is_own ? verbs::WcStatus::success : verbs::WcStatus::loc_prot_err);
  }
  expect_service();
}

TEST_F(HostileQueuePairs, ChangeOnlyAsQueuePairsDo) {
  HostilePairs hostile(host_.file());
  hostile.settle();
  const PairRequest pair = hostile.pair_in(verbs::QpState::reset);
  const auto change = [&](std::uint8_t from, std::uint8_t to, auto with) {
    PairCall call = HostilePairs::pair_call();
    call.object = pair.object;
    call.generation = pair.generation;
    call.from = from;
    call.attributes.state = to;
    with(call);
    return hostile.call(CallKind::change_pair, call);
  };
  const auto nothing = [](PairCall&) {};
  for (const auto& [from, to] : {std::pair{0, 2}, {0, 3}, {0, 4}, {0, 5}, {0, 6}, {0, 7}, {1, 3}, {255, 1}, {1, 255}})
    EXPECT_EQ(change(static_cast<std::uint8_t>(from), static_cast<std::uint8_t>(to), nothing), Status::invalid)
        << from << " to " << to;
  EXPECT_EQ(change(1, 2, nothing), Status::bad_state);
  EXPECT_EQ(change(0, 1, [](PairCall& call) { call.attributes.timeout = 200; }), Status::invalid);
  EXPECT_EQ(change(0, 1, [](PairCall& call) { call.attributes.min_rnr_timer = 32; }), Status::invalid);
  EXPECT_EQ(change(0, 1, [](PairCall& call) { call.attributes.max_dest_rd_atomic = 17; }), Status::invalid);
  EXPECT_EQ(change(0, 1, [](PairCall& call) { call.attributes.rq_psn = 1U << 24; }), Status::invalid);
  EXPECT_EQ(change(0, 1, [](PairCall& call) { call.attributes.path_mtu = 6; }), Status::invalid);
  EXPECT_EQ(change(0, 1, [](PairCall& call) { ++call.generation; }), Status::stale);
  EXPECT_EQ(change(0, 1, nothing), Status::ok);
  expect_service();
}

TEST_F(HostileQueuePairs, HaveAQuota) {
  HostForTests few(ServiceOptions{.rules = {Rule::parse("pairs=1 posts=64K").value()}});
  HostilePairs hostile(few.file());
  hostile.settle();
  PairCall call = HostilePairs::pair_call();
  call.max_send_wr = 1024;
  EXPECT_EQ(hostile.call(CallKind::open_pair, call), Status::no_memory);
  EXPECT_THAT(hostile.answer.text.data(), testing::HasSubstr("65536"));
  EXPECT_EQ(hostile.call(CallKind::open_pair, HostilePairs::pair_call()), Status::ok);
  EXPECT_EQ(hostile.call(CallKind::open_pair, HostilePairs::pair_call()), Status::no_memory);
  EXPECT_EQ(list_attached(few.file()).value().at(0).pairs, 1u);
  HostForTests none(ServiceOptions{.rules = {Rule::parse("rate=1G").value()}});
  const auto core = HostCore::attach(none.file(), base::SocketAddress::from_ip("127.0.0.1", 0).value(), {}).value();
  const auto refused = core->open_pairs();
  ASSERT_FALSE(refused.has_value());
  EXPECT_THAT(refused.error().message, testing::HasSubstr("pairs=0"));
}

TEST_F(HostileQueuePairs, HaveBoundsThatAreNamed) {
  HostilePairs hostile(host_.file());
  hostile.settle();
  PairCall call = HostilePairs::pair_call();
  call.max_send_wr = 16384;
  call.max_send_sge = 32;
  call.max_inline = 1024;
  Status status = Status::ok;
  for (std::uint32_t i = 0; i < 64 && status == Status::ok; ++i) status = hostile.call(CallKind::open_pair, call);
  EXPECT_EQ(status, Status::no_memory);
  EXPECT_NE(std::string(hostile.answer.text.data()).find(std::to_string(kQueueBytesMax)), std::string::npos)
      << hostile.answer.text.data();
  PairCall region{.domain = 1};
  region.length = 5000;
  for (std::uint32_t i = 0; i <= kJoinedPiecesMax / 2; ++i)
    status = hostile.call(CallKind::add_region, region, {{4096, 4096}, {0, 4096}});
  EXPECT_EQ(status, Status::no_memory);
  EXPECT_NE(std::string(hostile.answer.text.data()).find(std::to_string(kJoinedPiecesMax)), std::string::npos)
      << hostile.answer.text.data();
  expect_service();
}

// 1,024 pieces, each as long as the whole memory of 64 GiB, would use half of a process's address space.
TEST_F(HostileQueuePairs, HaveABoundOfAddressSpace) {
  HostilePairs hostile(host_.file(), kRegisteredBytesMax);
  hostile.settle();
  PairCall region{.domain = 1};
  region.length = 5000;
  const MemoryPiece half{0, kRegisteredBytesMax / 2};
  ASSERT_EQ(hostile.call(CallKind::add_region, region, {half, half}), Status::ok);
  region.key = hostile.answer.key;
  EXPECT_EQ(hostile.call(CallKind::add_region, region, {{0, 4096}, {0, 4096}}), Status::no_memory);
  EXPECT_THAT(hostile.answer.text.data(), testing::HasSubstr(std::to_string(kRegisteredBytesMax)));
  ASSERT_EQ(hostile.call(CallKind::remove_region, region), Status::ok);
  EXPECT_EQ(hostile.call(CallKind::add_region, region, {half, half}), Status::ok);
  expect_service();
}

TEST_F(HostileQueuePairs, RegisterNoMoreThanTheirQuota) {
  HostForTests few(ServiceOptions{.rules = {Rule::parse("memory=16K").value()}});
  HostilePairs hostile(few.file());
  hostile.settle();
  PairCall region{.domain = 1};
  region.length = 4096;
  ASSERT_EQ(hostile.call(CallKind::add_region, region, {{0, 8192}}), Status::ok);
  region.key = hostile.answer.key;
  ASSERT_EQ(hostile.call(CallKind::add_region, region, {{0, 4096}, {8192, 4096}}), Status::ok);
  EXPECT_EQ(hostile.call(CallKind::add_region, region, {{0, 4096}}), Status::no_memory);
  EXPECT_THAT(hostile.answer.text.data(), testing::HasSubstr("4096 bytes, besides 16384"));
  EXPECT_THAT(hostile.answer.text.data(), testing::HasSubstr("memory="));
  EXPECT_EQ(hostile.call(CallKind::change_region, region, {{0, 12288}}), Status::no_memory);
  EXPECT_EQ(hostile.call(CallKind::change_region, region, {{4096, 8192}}), Status::ok) << "it replaces as many";
  const auto listed = list_attached(few.file()).value();
  ASSERT_EQ(listed.size(), 1u);
  EXPECT_EQ(listed[0].registered_bytes, 16384u);
  EXPECT_EQ(listed[0].registered_max, 16384u);
  ASSERT_EQ(hostile.call(CallKind::remove_region, region), Status::ok);
  EXPECT_EQ(hostile.call(CallKind::add_region, region, {{0, 4096}, {8192, 4096}}), Status::ok);
}

TEST_F(HostileQueuePairs, HaveRoomForCompletionsOutOfTheirQuota) {
  HostForTests few(ServiceOptions{.rules = {Rule::parse("posts=64K").value()}});
  HostilePairs hostile(few.file());
  hostile.settle();
  PairCall queue{.domain = 1};
  queue.depth = 1024;
  EXPECT_EQ(hostile.call(CallKind::open_queue, queue), Status::no_memory) << "64 KiB for the completions alone";
  queue.depth = 256;
  EXPECT_EQ(hostile.call(CallKind::open_queue, queue), Status::ok);
}

// If the queue pair could change again, its operations in flight would never end. The daemon would finally give up the
// peer, which other applications also use.
TEST_F(HostileQueuePairs, StayAsTheyAreUntilTheirResetIsOver) {
  constexpr std::uint32_t kEngine = 5, kPortFirst = 20480;
  const base::FileDescriptor silent(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_port = htons(kPortFirst + kEngine);
  at.sin_addr.s_addr = htonl(0x7F000107);
  ASSERT_EQ(::bind(silent.get(), reinterpret_cast<const sockaddr*>(&at), sizeof at), 0);
  HostilePairs hostile(host_.file());
  hostile.settle();
  PairRequest pair = hostile.pair_in(verbs::QpState::init);
  const auto connected = hostile.connect_to(pair, kEngine << 14 | 2, "127.0.1.7");
  ASSERT_TRUE(connected) << hostile.answer.text.data();
  PairCall change = *connected;
  pair.opcode = std::to_underlying(verbs::SendOpcode::send);
  hostile.ask(pair);
  change.from = 3;
  change.attributes.state = 0;
  hostile.tell(CallKind::change_pair, change);
  change.from = 0;
  change.attributes.state = 1;
  EXPECT_EQ(hostile.call(CallKind::change_pair, change), Status::again) << hostile.answer.text.data();
}

// One thread of an honest application may reset a queue pair while another posts to it.
TEST_F(HostileQueuePairs, PostInVainToOneThatIsReset) {
  HostilePairs hostile(host_.file());
  hostile.settle();
  PairRequest pair = hostile.pair_in(verbs::QpState::rts);
  PairCall change = HostilePairs::pair_call();
  change.object = pair.object;
  change.generation = pair.generation;
  change.from = std::to_underlying(verbs::QpState::rts);
  hostile.tell(CallKind::change_pair, change);
  pair.opcode = std::to_underlying(verbs::SendOpcode::send);
  hostile.ask(pair);
  pair.kind = std::to_underlying(Post::post_receive);
  hostile.ask(pair);
  for (int i = 0; i < 2; ++i)  // a turn ends with a call, and a detachment would come after the turn
    EXPECT_EQ(hostile.call(CallKind::pair_facts, change), Status::ok);
  EXPECT_EQ(hostile.answer.attributes.state, std::to_underlying(verbs::QpState::reset));
}

// Changes all shared memory at any time, even while the host engine serves valid requests.
TEST_F(HostileQueuePairs, WriteAnythingAnywhereAndHarmNobody) {
  std::mt19937_64 random(20261123);
  for (int round = 0; round < 8; ++round) {
    HostilePairs hostile(host_.file());
    hostile.settle();
    PairRequest pair = hostile.pair_in(verbs::QpState::rts);
    pair.opcode = std::to_underlying(verbs::SendOpcode::send);
    for (int i = 0; i < 3; ++i) hostile.ask(pair);
    if (round % 2 == 0) {
      // Requests and calls that are almost valid.
      std::vector<std::byte> body(512);
      for (int i = 0; i < 2000 && !hostile.is_detached(); ++i) {
        PairRequest request = pair;
        const std::size_t bytes = random() % 300;
        request.kind = static_cast<std::uint8_t>(random() % 16 < 12 ? 3 : random() % 3);
        request.opcode = static_cast<std::uint8_t>(random() % 16);
        request.bytes = static_cast<std::uint16_t>(request.kind == 3 ? sizeof(PairCall) : bytes);
        for (std::byte& byte : body) byte = static_cast<std::byte>(random() % 4 == 0 ? random() : 0);
        std::memcpy(body.data() + offsetof(PairCall, object), &pair.object, 4);
        std::memcpy(body.data() + offsetof(PairCall, generation), &pair.generation, 4);
        hostile.ask(request, std::span(body).first(request.bytes));
      }
    } else {
      const std::size_t first = round % 4 == 1 ? 0 : PairLayout::requests();
      for (int i = 0; i < 20000; ++i) {
        const std::size_t at = first + random() % (PairLayout::bytes() - first);
        std::atomic_ref(reinterpret_cast<std::uint8_t&>(hostile.rings()[at]))
            .store(static_cast<std::uint8_t>(random()), std::memory_order_relaxed);
        if (i % 1000 == 0) hostile.nudge();
      }
    }
    expect_service();
  }
}

}  // namespace
}  // namespace fairlead::host
