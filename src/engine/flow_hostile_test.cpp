// A peer that speaks the link's language and sends any envelope to any queue pair: what it may not touch stays as it
// is, the engine goes on, and another peer's queue pairs do not notice.

#include <algorithm>
#include <random>

#include "engine/flow_world_for_tests.hpp"

namespace fairlead::engine {
namespace {

using verbs::QpState;
using verbs::QpType;

TEST(HostileFlows, AnyEnvelopeIsExecutedOrRefusedAndNothingElseHappens) {
  EngineOptions options;
  ASSERT_TRUE(options.set(Option::early_max, 200'000));
  FlowWorld world(1, options);
  FlowHost& target = world.hosts[0];
  std::mt19937_64 random(5);
  const auto draw = [&](std::uint64_t below) { return random() % below; };

  // The stranger at 10.0.0.9 is connected to one queue pair of each type; there is a region it may use and one not.
  const auto stranger = *base::SocketAddress::from_ip("10.0.0.9", 20480);
  auto path = std::move(*world.network.attach(stranger));
  auto link = std::make_unique<link::Link>(link::LinkOptions{}, 900, 901);
  const auto peer = *link->peer(target.engine->address(), 1472);
  constexpr std::size_t kShared = 100'000;
  std::ranges::fill(target.memory, std::byte{0x5A});
  const std::uint32_t shared_key = target.flows().regions().add(
      {.base = target.memory.data(), .length = kShared, .iova = 0, .access = FlowWorld::kRights, .domain = 2});
  const std::uint32_t receive_key = target.flows().regions().add({.base = target.memory.data() + kShared,
                                                                  .length = kShared,
                                                                  .iova = 0,
                                                                  .access = verbs::access::local_write,
                                                                  .domain = 2});
  struct Exposed {
    FlowHandle handle{};
    std::uint32_t number = 0;
    QpType type = QpType::rc;
  };
  std::vector<Exposed> exposed;
  const auto set_up = [&](Exposed& one) {
    verbs::QpAttributes attributes = target.flows().flow_facts(one.handle).attributes;
    if (attributes.state != QpState::reset) {
      const QpState from = attributes.state;
      attributes.state = QpState::reset;
      ASSERT_EQ(target.flows().change_flow(one.handle, from, attributes, world.now), Status::ok);
    }
    attributes = {};
    attributes.dest_qp_num = 77;
    attributes.rq_psn = 1000;
    attributes.qkey = 5;
    attributes.access_flags = FlowWorld::kRights;
    attributes.av = {.dgid = stranger.ip, .is_global = true};
    attributes.max_rd_atomic = attributes.max_dest_rd_atomic = 4;
    for (const auto& [from, to] :
         {std::pair{QpState::reset, QpState::init}, {QpState::init, QpState::rtr}, {QpState::rtr, QpState::rts}}) {
      attributes.state = to;
      ASSERT_EQ(target.flows().change_flow(one.handle, from, attributes, world.now), Status::ok);
    }
  };
  for (const QpType type : {QpType::rc, QpType::rc, QpType::uc, QpType::ud}) {
    Exposed one{.type = type};
    ASSERT_EQ(target.flows().open_flow({.type = type,
                                        .capacity = {.max_send_wr = 4, .max_recv_wr = 16, .max_recv_sge = 2},
                                        .domain = 2,
                                        .send_stream = target.stream,
                                        .receive_stream = target.stream,
                                        .shared_pool = {},
                                        .events = target.notices.get()},
                                       one.handle, one.number),
              Status::ok);
    set_up(one);
    exposed.push_back(one);
  }
  // A conversation with somebody decent goes on beside it.
  const auto near = world.open(0, QpType::rc), far = world.open(1, QpType::rc);
  world.connect(0, near, far, 1, 1);
  world.connect(1, far, near, 1, 1);

  std::vector<std::byte> payload(20'000, std::byte{0xEE});
  const iovec piece{payload.data(), payload.size()};
  std::uint64_t answers = 0, sequence = 1000, decent = 0;
  link::Train train;
  for (int round = 0; round < 6000; ++round) {
    Exposed& one = exposed[draw(exposed.size())];
    if (target.flows().flow_facts(one.handle).attributes.state != QpState::rts || draw(50) == 0) {
      set_up(one);
      sequence = 1000;
    }
    const verbs::Sge into{draw(2) == 0 ? draw(kShared) : draw(200), static_cast<std::uint32_t>(draw(30'000)),
                          receive_key};
    const verbs::ReceiveRequest receive{.id = 1, .sges = {&into, 1}};
    std::size_t taken = 0;
    if (draw(2) == 0) target.flows().post_receive(one.handle, {&receive, 1}, taken);
    const std::uint64_t key = draw(3) == 0 ? draw(1ULL << 32) : draw(2) == 0 ? shared_key : target.key;
    const std::uint64_t order = draw(3) == 0 ? sequence + draw(5) - 2 : draw(5) == 0 ? random() : sequence++;
    wire::Envelope envelope{
        .operation = static_cast<wire::Operation>(6 + draw(6)),
        .status = static_cast<std::uint8_t>(draw(3) == 0 ? draw(256) : 0),
        .flags = static_cast<std::uint16_t>(draw(2) == 0 ? draw(65536) : draw(8)),
        .source_port = draw(8) == 0 ? static_cast<std::uint32_t>(random()) : 77,
        .target_port = draw(8) == 0 ? static_cast<std::uint32_t>(random()) : one.number,
        .key = order << 32 | (one.type == QpType::ud ? 5 : key),
        .cookie = random(),
        .offset = draw(3) == 0 ? random() : draw(kShared) & ~7ULL,
        .a = draw(3) == 0 ? random() : draw(kShared),
    };
    const std::uint64_t size = draw(3) == 0 ? draw(payload.size()) : draw(2) == 0 ? 0 : draw(700);
    link->submit(peer, {.envelope = envelope, .pieces = {&piece, 1}, .size = size, .cookie = 1}, world.now);
    if (round % 100 == 0) {
      const verbs::SendRequest ping{
          .id = decent, .opcode = verbs::SendOpcode::write, .flags = verbs::send_flags::signaled};
      if (world.hosts[1].flows().post_send(far.handle, {&ping, 1}, taken, world.now) == 0) ++decent;
    }
    for (int steps = 0; steps < 4; ++steps) {
      while (link->next_train(world.now, path->train_bytes_max(), path->train_datagrams_max(), train)) {
        const path::Train sent{.to = train.to,
                               .pieces = std::span<const iovec>(train.pieces, train.piece_count),
                               .datagram_size = train.datagram_size};
        if (path->send({&sent, 1}, world.now) != 1) {
          link->take_back(train, world.now);
          break;
        }
      }
      world.step(world.now + 100us);
      std::array<path::Arrival, 16> arrivals;
      const std::size_t count = path->collect(arrivals, world.now);
      for (const path::Arrival& arrival : std::span(arrivals).first(count)) {
        link->receive(arrival.from, arrival.bytes, world.now, 1472);
        while (const auto delivery = link->next_delivery()) ++answers;
      }
      if (world.now >= link->next_deadline()) link->expire(world.now);
      while (link->next_outcome()) {
      }
      while (link->next_notice()) {
      }
    }
    (void)target.completions();
    while (target.notices->consume() != nullptr) {
    }
  }
  std::uint64_t decent_done = 0;
  for (int steps = 0; steps < 1000; ++steps) world.step(world.now + 1ms);
  for (const auto& one : world.hosts[1].completions()) decent_done += one.status == verbs::WcStatus::success;
  EXPECT_EQ(decent_done, decent);
  EXPECT_GT(answers, 1000u);
  EXPECT_GT(target.flows().counters().requests_executed, 100u);
  EXPECT_GT(target.flows().counters().refused_not_ready, 100u);
  // Memory that was neither shared nor posted is as it was.
  EXPECT_TRUE(std::ranges::all_of(std::span(target.memory).subspan(2 * kShared),
                                  [](std::byte byte) { return byte == std::byte{0x5A}; }));
}

}  // namespace
}  // namespace fairlead::engine
