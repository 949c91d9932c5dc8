// Allocations of an engine's passes fail: each alone, and 20 in a row. Operations may then fail and peers may be lost.
// But all operations end, the engine stays consistent, and later operations succeed.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <set>
#include <vector>

#include "base/rare.hpp"
#include "engine/engine.hpp"
#include "engine/engine_pair_for_tests.hpp"
#include "path/sim_network.hpp"
#include "qp/pair_world_for_tests.hpp"
#include "tests/failing_memory.hpp"

namespace fairlead::tests {
namespace {

using namespace std::chrono_literals;
using engine::Completion;
using engine::OperationKind;

/// Counts only the engine's own allocations, not those of the simulated network below it.
int in_pass = 0;
bool is_in_pass() {
  return in_pass > 0;
}

bool progress(engine::Engine& engine, base::Instant now) {
  ++in_pass;
  const bool any = engine.progress(now);
  --in_pass;
  return any;
}

class SparedPath final : public path::Path {
 public:
  explicit SparedPath(std::unique_ptr<path::Path> path) : path_(std::move(path)) {}
  base::SocketAddress address() const override { return path_->address(); }
  std::size_t send(std::span<const path::Train> trains, base::Instant now) override {
    const Spare spare;
    return path_->send(trains, now);
  }
  std::size_t collect(std::span<path::Arrival> out, base::Instant now) override {
    const Spare spare;
    return path_->collect(out, now);
  }
  std::size_t unreachable(std::span<path::Unreachable> out) override {
    const Spare spare;
    return path_->unreachable(out);
  }
  base::Instant next_deadline() const override { return path_->next_deadline(); }
  std::uint32_t datagram_size_max(const base::SocketAddress& peer) override { return path_->datagram_size_max(peer); }
  std::uint32_t train_bytes_max() const override { return path_->train_bytes_max(); }
  std::uint32_t train_datagrams_max() const override { return path_->train_datagrams_max(); }
  std::uint64_t receive_buffer_bytes() const override { return path_->receive_buffer_bytes(); }
  void set_hot(const base::SocketAddress& peer, bool is_hot) override {
    const Spare spare;
    path_->set_hot(peer, is_hot);
  }
  int descriptor() const override { return path_->descriptor(); }
  const path::PathCounters& counters() const override { return path_->counters(); }
  std::string_view name() const override { return path_->name(); }

 private:
  struct Spare {
    int before = std::exchange(in_pass, 0);
    ~Spare() { in_pass = before; }
  };
  std::unique_ptr<path::Path> path_;
};

std::unique_ptr<path::Path> spared(std::unique_ptr<path::Path> path) {
  return std::make_unique<SparedPath>(std::move(path));
}

class EngineWithoutMemory : public testing::Test {
 protected:
  using Run = std::function<void()>;

  ~EngineWithoutMemory() override { failing_memory = {}; }

  std::uint64_t with(std::uint64_t first, std::uint64_t count, const Run& run) {
    in_pass = 0;
    failing_memory = {.is_watched = is_in_pass, .first = first, .last = first + count - 1};
    run();
    const std::uint64_t asked = failing_memory.asked;
    EXPECT_EQ(failing_memory.failed > 0, count > 0 && asked >= first) << "of " << asked << " allocations";
    failed_ += failing_memory.failed;
    failing_memory = {};
    return asked;
  }

  void each_fails(std::uint64_t asked_least, const Run& run) {
    const std::uint64_t all = with(1, 0, run);
    ASSERT_GT(all, asked_least);
    for (const std::uint64_t count : {1U, 20U}) {
      for (std::uint64_t first = 1; first <= all; first += count) {
        SCOPED_TRACE(testing::Message() << count << " from allocation " << first << " of " << all);
        with(first, count, run);
        if (HasFailure()) return;
      }
    }
    EXPECT_GE(failed_, asked_least) << "hardly an allocation has failed";
  }

  std::uint64_t failed_ = 0;  // allocations
};

// Over the network ----------------------------------------------------------------------------------------------------

constexpr std::uint32_t kNumber = 34U << 12 | 1U;

base::SocketAddress host(std::size_t index) {
  return *base::SocketAddress::from_ip("10.0.0." + std::to_string(index + 1), 20480);
}

class TwoHosts {
 public:
  static constexpr std::size_t kBytes = 60'000;

  explicit TwoHosts() {
    network_.set_default_link({.delay = 20us});
    engine::EngineOptions options;
    EXPECT_TRUE(options.set(engine::Option::peers_max, 8) && options.set(engine::Option::give_up_after, 400) &&
                options.set(engine::Option::unreachable_after, 400));
    for (std::size_t i = 0; i < 2; ++i) {
      Side& side = sides_[i];
      side.engine = std::make_unique<engine::Engine>(std::make_unique<SparedPath>(*network_.attach(host(i))), host(i),
                                                     options, 100 + i, 7 + i);
      side.port = *side.engine->ports().open(kNumber);
      EXPECT_EQ(side.engine->ports().find(side.port)->events->reserve(1000), Status::ok);
      EXPECT_EQ(side.engine->activate(side.port), Status::ok);
    }
  }

  void receive(std::uint32_t messages) {
    engine::OperationHandle name;
    ASSERT_EQ(b().engine->messages().post_receive(
                  b().port, {.memory = {&into_, 1}, .size_min = 1, .messages_max = messages}, name),
              Status::ok);
  }

  void send(std::uint64_t size) {
    begin([&](std::uint64_t cookie, engine::OperationHandle& name) {
      return a().engine->messages().send(
          a().port, {.to = {host(1), kNumber}, .part = {.memory = {&from_, 1}, .length = size, .cookie = cookie}}, name,
          now_);
    });
  }

  void transfer(OperationKind kind, std::uint64_t size) {
    std::uint64_t key = 0;
    engine::OperationHandle exposure;
    ASSERT_EQ(
        b().engine->messages().expose(
            b().port, {.memory = {&into_, 1}, .length = size, .is_writable = kind == OperationKind::put, .cookie = 900},
            exposure, key),
        Status::ok);
    begin([&](std::uint64_t cookie, engine::OperationHandle& name) {
      return a().engine->messages().transfer(a().port, kind,
                                             {.target = {host(1), kNumber},
                                              .target_epoch = b().engine->epoch(),
                                              .key = key,
                                              .memory = {&from_, 1},
                                              .length = size,
                                              .cookie = cookie},
                                             name, now_);
    });
  }

  /// Sends an active message that the receiver does not admit. The sender gets it back.
  void ask(std::uint64_t size) {
    begin(
        [&](std::uint64_t cookie, engine::OperationHandle&) {
          return a().engine->send_active(
              a().port,
              {.to = {host(1), kNumber}, .name = cookie, .memory = {&from_, 1}, .length = size, .cookie = cookie},
              now_);
        },
        size > 4096);
  }

  void cut(bool is_cut) {
    network_.set_link(host(0), host(1), {.delay = 20us, .loss = is_cut ? 1.0 : 0.0});
    network_.set_link(host(1), host(0), {.delay = 20us, .loss = is_cut ? 1.0 : 0.0});
  }

  void run(base::Duration span) {
    const base::Instant end = now_ + span;
    for (int steps = 0; steps < 1'000'000; ++steps) {
      bool any = false;
      for (Side& side : sides_) any |= progress(*side.engine, now_);
      take_events();
      if (any) continue;
      base::Instant next = network_.next_event();
      for (Side& side : sides_) next = std::min(next, side.engine->next_deadline());
      if (next > end) break;
      now_ = std::max(next, now_ + 1ns);
      network_.advance(now_);
    }
    now_ = std::max(now_, end);
    network_.advance(now_);
  }

  void expect_all_ended() {
    EXPECT_TRUE(open_.empty()) << open_.size() << " operations have not ended, first " << open_.begin()->first;
    for (Side& side : sides_) side.engine->check();
    EXPECT_EQ(a().engine->use().operations, 0U);
    EXPECT_EQ(a().engine->use().deferred, 0U);
    EXPECT_EQ(b().engine->use().deferred, 0U);
    EXPECT_EQ(b().engine->use().placements, 0U);
  }

  std::size_t failed() const { return failed_; }
  /// Sends again while the engine refuses the message or the message fails.
  void send_until_it_arrives() {
    for (int tries = 0; tries < 50; ++tries) {
      const std::size_t failed_before = failed_;
      send(100);
      run(500ms);
      if (open_.empty() && failed_ == failed_before) return;
    }
    ADD_FAILURE() << "nothing arrives any more";
  }

 private:
  struct Side {
    std::unique_ptr<engine::Engine> engine;
    engine::PortHandle port;
  };
  Side& a() { return sides_[0]; }
  Side& b() { return sides_[1]; }

  template <typename Submit>
  void begin(Submit&& submit, bool has_event = true) {
    const std::uint64_t cookie = next_cookie_++;
    engine::OperationHandle name;
    for (int tries = 0; tries < 1000; ++tries) {
      const Status status = submit(cookie, name);
      if (status == Status::ok) {
        if (has_event) open_[cookie] = true;
        return;
      }
      ASSERT_TRUE(status == Status::again || status == Status::no_memory) << static_cast<int>(status);
      run(1ms);
    }
    FAIL() << "operation " << cookie << " is never taken";
  }

  void take_events() {
    while (const Completion* event = a().engine->ports().find(a().port)->events->consume()) {
      EXPECT_EQ(open_.erase(event->cookie), 1U) << event->cookie;
      failed_ += event->status != Status::ok ? 1 : 0;
    }
    while (b().engine->ports().find(b().port)->events->consume() != nullptr) {
    }
    for (Side& side : sides_) {
      engine::ActivePort& active = *side.engine->ports().find(side.port)->active;
      while (engine::Arrival* const arrival = active.next()) active.release(*arrival);
    }
  }

  path::SimNetwork network_{1};
  base::Instant now_{1s};
  std::array<Side, 2> sides_;
  std::vector<std::byte> bytes_ = std::vector<std::byte>(kBytes), place_ = std::vector<std::byte>(40 * kBytes);
  iovec from_{bytes_.data(), bytes_.size()}, into_{place_.data(), place_.size()};
  std::map<std::uint64_t, bool> open_;
  std::size_t failed_ = 0;
  std::uint64_t next_cookie_ = 1;
};

void talk(TwoHosts& hosts) {
  hosts.receive(1000);
  for (const std::uint64_t size : {std::uint64_t{100}, std::uint64_t{5000}, std::uint64_t{TwoHosts::kBytes}}) {
    for (int i = 0; i < 3; ++i) hosts.send(size);
    for (int i = 0; i < 4; ++i) hosts.transfer(OperationKind::put, size);
    for (int i = 0; i < 4; ++i) hosts.transfer(OperationKind::get, size);
    for (int i = 0; i < 4; ++i) hosts.ask(size);
  }
  hosts.run(2s);
}

TEST_F(EngineWithoutMemory, GoesOnOverTheNetwork) {
  // Chooses a seed with which some answers wait for a later pass. The table of rare branches is made before memory
  // fails.
  constexpr std::string_view kWaits = "engine: an answer waits for a later pass";
  base::RareBranches rare(0);
  for (std::uint64_t seed = 1; seed < 50 && (seed == 1 || rare.counts().at(kWaits).taken < 2); ++seed) {
    rare = base::RareBranches(seed);
    base::rare_branches = &rare;
    TwoHosts hosts;
    talk(hosts);
    hosts.cut(true);
    hosts.send(100);
    hosts.run(2s);
  }
  ASSERT_GE(rare.counts().at(kWaits).taken, 2U);
  each_fails(20, [&] {
    base::RareBranches again = rare;
    base::rare_branches = &again;
    TwoHosts hosts;
    talk(hosts);
    hosts.expect_all_ended();
    hosts.cut(true);
    for (const std::uint64_t size : {100, 5000, 60'000}) hosts.send(size);
    hosts.transfer(OperationKind::put, 100);
    hosts.run(3s);
    hosts.expect_all_ended();
    EXPECT_GE(hosts.failed(), 4U);
    hosts.cut(false);
    hosts.send_until_it_arrives();
    base::rare_branches = &rare;
  });
  base::rare_branches = nullptr;
}

// Ports ---------------------------------------------------------------------------------------------------------------

TEST_F(EngineWithoutMemory, OpensAPortOrLeavesNothingOfIt) {
  each_fails(4, [] {
    engine::Ports ports(host(0));
    ++in_pass;
    const auto port = ports.open(kNumber);
    --in_pass;
    EXPECT_EQ(port.has_value(), failing_memory.failed == 0);
    if (port) return;
    EXPECT_EQ(port.error().status, Status::no_memory) << port.error().message;
    EXPECT_EQ(ports.find_number(kNumber), engine::Ports::kNone);
    ports.for_each([](std::uint32_t slot, const engine::Port&) { ADD_FAILURE() << "slot " << slot << " is kept"; });
    EXPECT_TRUE(ports.open(kNumber));
  });
}

// Queue pairs ---------------------------------------------------------------------------------------------------------

std::byte byte_of(std::size_t message, std::size_t place) {
  return static_cast<std::byte>(message * 37 + place * 7 + 1);
}

/// Requests arrive in any order. All requests end once, also if their session is lost. Data that has arrived is right.
void talk_by_pairs() {
  constexpr std::uint32_t kSizes[] = {8, 900, 20'000};
  constexpr std::size_t kRequests = 24, kArea = 20'480, kFirstReceive = 25, kFirstDatagram = 100;
  constexpr std::uint32_t kDatagram = 900;
  engine::EngineOptions options;
  ASSERT_TRUE(options.set(engine::Option::peers_max, 8));
  qp::PairWorld world(3, options, spared);
  world.network.set_default_link({.delay = 20us, .reorder_delay = 300us, .reordering = 0.3});
  std::array<qp::PairWorld::End, 2> reliable{}, datagrams{};
  for (std::size_t i = 0; i < 2; ++i) {
    reliable[i] = world.open(i, verbs::QpType::rc);
    datagrams[i] = world.open(i, verbs::QpType::ud);
  }
  for (std::size_t i = 0; i < 2; ++i) {
    world.connect(i, reliable[i], reliable[1 - i], 10, 10);
    world.connect(i, datagrams[i], datagrams[1 - i], 10, 10);
  }
  qp::PairEngine& near = world.hosts[0];
  qp::PairEngine& far = world.hosts[1];
  const auto run = [&](base::Duration span) {
    const base::Instant end = world.now + span;
    while (world.now < end) {
      bool any = false;
      for (qp::PairEngine& one : world.hosts) any |= progress(*one.engine, world.now);
      if (any) continue;
      base::Instant next = world.network.next_event();
      for (qp::PairEngine& one : world.hosts) next = std::min(next, one.engine->next_deadline());
      world.now = std::min(end, std::max(next, world.now + 1ns));
      world.network.advance(world.now);
    }
  };
  // Each request has an area of its own at both ends, each receive one behind them.
  const auto receive_area = [&](std::uint64_t id) {
    return id < kFirstDatagram ? kArea * id : kArea * 40 + 1000 * (id - kFirstDatagram);
  };
  const auto receive = [&](const qp::PairWorld::End& pair, std::uint64_t id, std::uint32_t bytes) {
    const verbs::Sge sge = far.sge(receive_area(id), bytes);
    const verbs::ReceiveRequest request{.id = id, .sges = {&sge, 1}};
    std::size_t taken = 0;
    ASSERT_EQ(far.pairs().post_receive(pair.handle, {&request, 1}, taken), 0);
  };
  for (std::size_t i = 0; i < 12; ++i) receive(reliable[1], kFirstReceive + i, kArea);
  for (std::size_t i = 0; i < kRequests; ++i) receive(datagrams[1], kFirstDatagram + i, kDatagram + 40);
  for (std::size_t i = 0; i < kRequests; ++i) {
    for (std::size_t place = 0; place < std::max(kSizes[i % 3], kDatagram); ++place) {
      near.memory[kArea * i + place] = byte_of(i, place);
      far.memory[kArea * i + place] = byte_of(i + 100, place);
    }
  }
  constexpr verbs::SendOpcode kOpcodes[] = {verbs::SendOpcode::send, verbs::SendOpcode::write, verbs::SendOpcode::read};
  const verbs::AddressVector to{.dgid = host(1).ip, .is_global = true};
  for (std::size_t i = 0; i < kRequests; ++i) {
    const std::uint32_t size = kSizes[i % 3];
    const verbs::Sge sge = near.sge(kArea * i, size);
    const verbs::SendRequest request{.id = i,
                                     .sges = {&sge, 1},
                                     .opcode = kOpcodes[i / 3 % 3],
                                     .flags = verbs::send_flags::signaled,
                                     .rkey = far.key,
                                     .remote_addr = far.address(kArea * i)};
    std::size_t taken = 0;
    ASSERT_EQ(near.pairs().post_send(reliable[0].handle, {&request, 1}, taken, world.now), 0);
    const verbs::Sge some = near.sge(kArea * i, kDatagram);
    const verbs::SendRequest datagram{.id = kFirstDatagram + i,
                                      .sges = {&some, 1},
                                      .opcode = verbs::SendOpcode::send_imm,
                                      .flags = verbs::send_flags::signaled,
                                      .imm = static_cast<std::uint32_t>(i),
                                      .to = &to,
                                      .remote_qpn = datagrams[1].number,
                                      .remote_qkey = 5};
    ASSERT_EQ(near.pairs().post_send(datagrams[0].handle, {&datagram, 1}, taken, world.now), 0);
  }
  std::map<std::uint64_t, verbs::WcStatus> ended, received;
  const auto holds = [](const qp::PairEngine& end, std::size_t from, std::size_t message, std::uint32_t bytes) {
    for (std::size_t place = 0; place < bytes; ++place)
      if (end.memory[from + place] != byte_of(message, place)) return false;
    return true;
  };
  std::set<std::uint32_t> datagrams_seen;
  const auto take = [&] {
    for (const verbs::WorkCompletion& done : near.completions()) {
      EXPECT_TRUE(ended.emplace(done.wr_id, done.status).second) << done.wr_id << " has ended twice";
      if (done.status != verbs::WcStatus::success || done.wr_id >= kFirstDatagram) continue;
      const std::size_t i = done.wr_id;
      if (kOpcodes[i / 3 % 3] == verbs::SendOpcode::write) {
        EXPECT_TRUE(holds(far, kArea * i, i, kSizes[i % 3])) << i;
      }
      if (kOpcodes[i / 3 % 3] == verbs::SendOpcode::read) {
        EXPECT_TRUE(holds(near, kArea * i, i + 100, kSizes[i % 3])) << i;
      }
    }
    for (const verbs::WorkCompletion& done : far.completions()) {
      EXPECT_TRUE(received.emplace(done.wr_id, done.status).second) << done.wr_id << " is filled twice";
      if (done.status != verbs::WcStatus::success) continue;
      if (done.wr_id >= kFirstDatagram) {
        EXPECT_TRUE(datagrams_seen.insert(done.imm).second) << "datagram " << done.imm << " came twice";
        EXPECT_EQ(done.byte_len, kDatagram + 40);
        EXPECT_TRUE(holds(far, receive_area(done.wr_id) + 40, done.imm, kDatagram)) << done.imm;
      } else {  // sends are 0, 1, 2, 9, 10, 11, ...
        const std::size_t order = done.wr_id - kFirstReceive, i = order / 3 * 9 + order % 3;
        EXPECT_EQ(done.byte_len, kSizes[i % 3]);
        EXPECT_TRUE(holds(far, receive_area(done.wr_id), i, kSizes[i % 3])) << i;
      }
    }
  };
  for (int i = 0; i < 100 && ended.size() < 2 * kRequests; ++i) {
    run(100ms);
    take();
  }
  run(100ms);  // for what comes twice
  take();
  EXPECT_EQ(ended.size(), 2 * kRequests);
  if (failing_memory.failed == 0) {
    for (const auto& [id, status] : ended) EXPECT_EQ(status, verbs::WcStatus::success) << id;
    EXPECT_EQ(datagrams_seen.size(), kRequests);
    EXPECT_EQ(received.size(), 9 + kRequests);
  }
  for (qp::PairEngine& one : world.hosts) one.engine->check();
}

TEST_F(EngineWithoutMemory, GoesOnWithQueuePairs) {
  each_fails(20, talk_by_pairs);
}

// Over shared memory --------------------------------------------------------------------------------------------------

/// Two engines of this host meet and exchange messages, then one of them ends.
void meet_and_part(std::uint16_t number) {
  path::SimNetwork network(1);
  base::Instant now{1s};
  const auto there = static_cast<std::uint16_t>(number + 1);
  engine::DirectSide near(network, number, false, onesided::kCarriedOutMax, spared);
  auto far = std::make_unique<engine::DirectSide>(network, there, false, onesided::kCarriedOutMax, spared);
  std::vector<std::byte> bytes(60'000), place(40 * bytes.size());
  const iovec from{bytes.data(), bytes.size()}, into{place.data(), place.size()};
  engine::OperationHandle name;
  ASSERT_EQ(far->engine->messages().post_receive(far->port, {.memory = {&into, 1}, .size_min = 1, .messages_max = 1000},
                                                 name),
            Status::ok);
  const auto pass = [&](int count) {
    for (int i = 0; i < count; ++i) {
      now += 25us;
      progress(*near.engine, now);
      if (far) progress(*far->engine, now);
      while (far && far->event()) {
      }
    }
  };
  const auto is_met = [&] { return near.engine->find_local(engine::direct_place(there)) != nullptr; };
  for (int tries = 0; tries < 400 && !is_met(); ++tries) {
    static_cast<void>(near.engine->connections()->ask(engine::direct_place(there), now));
    pass(10);
    const engine::Send send{.to = {engine::direct_place(there), engine::kPort},
                            .part = {.memory = {&from, 1}, .length = 8, .cookie = 1}};
    static_cast<void>(near.engine->messages().send(near.port, send, name, now));
    pass(10);
  }
  ASSERT_TRUE(is_met());
  std::size_t open = 0;
  while (near.event()) {
  }
  const auto send = [&](std::uint64_t size) {
    const engine::Send one{.to = {engine::direct_place(there), engine::kPort},
                           .part = {.memory = {&from, 1}, .length = size, .cookie = 2}};
    for (int tries = 0; tries < 100; ++tries) {
      if (near.engine->messages().send(near.port, one, name, now) == Status::ok) {
        ++open;
        return;
      }
      pass(1);
    }
    FAIL() << "a message of " << size << " bytes is never taken";
  };
  const auto take = [&] {
    while (const auto event = near.event()) {
      if (event->cookie == 2) --open;
    }
  };
  for (const std::uint64_t size : {std::uint64_t{8}, std::uint64_t{5000}, std::uint64_t{60'000}}) {
    for (int i = 0; i < 30; ++i) send(size);
  }
  pass(200);
  take();
  EXPECT_EQ(open, 0U);
  for (int i = 0; i < 200; ++i) send(5000);  // more than the ring holds; they end with the peer
  far.reset();
  for (int i = 0; i < 200 && open != 0; ++i) {
    pass(10);
    take();
  }
  EXPECT_EQ(open, 0U);
  near.engine->check();
}

TEST_F(EngineWithoutMemory, MeetsAndLosesPeersOfThisHost) {
  each_fails(10, [] { meet_and_part(71); });
}

}  // namespace
}  // namespace fairlead::tests
