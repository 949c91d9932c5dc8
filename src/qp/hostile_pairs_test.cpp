// A peer that uses the link correctly and sends arbitrary envelopes to arbitrary queue pairs. Memory without a right
// must stay unchanged and unread, the engine must continue, and queue pairs of another peer must not be affected.

#include <algorithm>
#include <bit>
#include <cstring>
#include <random>

#include "qp/pair_world_for_tests.hpp"

namespace fairlead::qp {
namespace {

using verbs::QpState;
using verbs::QpType;
using Wire = wire::Operation;

constexpr std::size_t kHostileArea = 100'000;
constexpr std::byte kOpenByte{0x5A}, kSecretByte{0xC3};         // initial contents of memory
constexpr std::uint32_t kFirstOfStranger = 77;                  // number of the stranger's first queue pair
constexpr std::uint8_t kNotReadyAnswer = 1, kGoBackAnswer = 6;  // status of answers: rnr, go_back
constexpr std::uint16_t kResultAnswer = 1U << 8;                // in the flags of an answer

/// A queue pair that is connected to the stranger.
struct HostilePair {
  QpType type = QpType::rc;
  std::uint32_t rights = 0;
  std::uint8_t reads_max = 4;
  PairHandle handle{};
  std::uint32_t number = 0;
  std::uint64_t sequence = 1000;

  bool may(std::uint32_t right) const { return (rights & right) != 0; }
};

struct HeardAnswer {
  wire::Envelope envelope;
  std::vector<std::byte> bytes;  // of a message in one chunk
  std::uint64_t size = 0;
};

class HostilePairs : public testing::Test {
 protected:
  static engine::EngineOptions options() {
    engine::EngineOptions options;
    EXPECT_TRUE(options.set(engine::Option::early_max, 200'000));
    return options;
  }
  void SetUp() override {
    std::ranges::fill(target_.memory, kSecretByte);
    for (const std::size_t area : {0, 1})
      std::ranges::fill(std::span(target_.memory).subspan(area * kHostileArea, kHostileArea), kOpenByte);
    shared_ = add_region(0, verbs::access::remote_write | verbs::access::remote_read | verbs::access::local_write);
    counted_ = add_region(1, verbs::access::remote_atomic | verbs::access::local_write);
    receives_ = add_region(2, verbs::access::local_write);
  }
  std::uint32_t add_region(std::size_t area, std::uint32_t rights) {
    return target_.pairs().regions().add({.base = target_.memory.data() + area * kHostileArea,
                                          .length = kHostileArea,
                                          .iova = 0,
                                          .access = rights,
                                          .domain = 2});
  }
  std::span<const std::byte> area(std::size_t number) const {
    return std::span(target_.memory).subspan(number * kHostileArea, kHostileArea);
  }

  HostilePair& open(QpType type, std::uint32_t rights, std::uint8_t reads_max = 4) {
    HostilePair& one = exposed_.emplace_back(HostilePair{.type = type, .rights = rights, .reads_max = reads_max});
    EXPECT_EQ(target_.pairs().open_pair({.type = type,
                                         .capacity = {.max_send_wr = 4, .max_recv_wr = 16, .max_recv_sge = 2},
                                         .domain = 2,
                                         .send_stream = target_.stream,
                                         .receive_stream = target_.stream,
                                         .shared_receives = {},
                                         .events = target_.notices.get()},
                                        one.handle, one.number),
              Status::ok);
    connect(one);
    return one;
  }
  std::uint32_t number_of_stranger(const HostilePair& one) const {
    return kFirstOfStranger + static_cast<std::uint32_t>(&one - exposed_.data());
  }
  void connect(HostilePair& one) {
    verbs::QpAttributes attributes = target_.pairs().pair_facts(one.handle).attributes;
    if (attributes.state != QpState::reset) {
      const QpState from = attributes.state;
      attributes.state = QpState::reset;
      ASSERT_EQ(target_.pairs().change_pair(one.handle, from, attributes, world_.now), Status::ok);
    }
    attributes = {};
    attributes.dest_qp_num = number_of_stranger(one);
    attributes.rq_psn = 1000;
    attributes.qkey = 5;
    attributes.access_flags = one.rights;
    attributes.av = {.dgid = kStranger.ip, .is_global = true};
    attributes.max_rd_atomic = 4;
    attributes.max_dest_rd_atomic = one.reads_max;
    for (const auto& [from, to] :
         {std::pair{QpState::reset, QpState::init}, {QpState::init, QpState::rtr}, {QpState::rtr, QpState::rts}}) {
      attributes.state = to;
      ASSERT_EQ(target_.pairs().change_pair(one.handle, from, attributes, world_.now), Status::ok);
    }
    one.sequence = 1000;
  }
  bool is_ready(const HostilePair& one) {
    return target_.pairs().pair_facts(one.handle).attributes.state == QpState::rts;
  }

  void say(const wire::Envelope& envelope, std::span<const std::byte> bytes) {
    const iovec piece{const_cast<std::byte*>(bytes.data()), bytes.size()};
    said_.emplace_back(bytes.begin(), bytes.end());
    pieces_.push_back({said_.back().data(), bytes.size()});
    link_.submit(peer_, {.envelope = envelope, .pieces = {&pieces_.back(), 1}, .size = piece.iov_len, .cookie = 1},
                 world_.now);
  }
  /// Returns the envelope of a request from the stranger to a queue pair.
  wire::Envelope request(const HostilePair& one, Wire operation, std::uint64_t sequence, std::uint64_t key = 0) const {
    return {.operation = operation,
            .source_port = number_of_stranger(one),
            .target_port = one.number,
            .key = sequence << 32 | key};
  }

  void pass() {
    while (link_.next_train(world_.now, path_->train_bytes_max(), path_->train_datagrams_max(), train_)) {
      const path::Train sent{.to = train_.to,
                             .pieces = std::span<const iovec>(train_.pieces, train_.piece_count),
                             .datagram_size = train_.datagram_size};
      if (path_->send({&sent, 1}, world_.now) != 1) {
        link_.take_back(train_, world_.now);
        break;
      }
    }
    world_.step(world_.now + 100us);
    std::array<path::Arrival, 16> arrivals;
    const std::size_t count = path_->collect(arrivals, world_.now);
    for (const path::Arrival& arrival : std::span(arrivals).first(count)) {
      link_.receive(arrival.from, arrival.bytes, world_.now, 1472);
      while (const auto delivery = link_.next_delivery()) {
        heard_.push_back({delivery->envelope, {delivery->bytes.begin(), delivery->bytes.end()}, delivery->size});
      }
    }
    if (world_.now >= link_.next_deadline()) link_.expire(world_.now);
    while (link_.next_outcome()) {
    }
    while (link_.next_notice()) {
    }
  }
  void forget_events() {
    (void)target_.completions();
    while (target_.notices->consume() != nullptr) {
    }
  }
  const PairCounters& counters() const { return target_.pairs().counters(); }

  static inline const base::SocketAddress kStranger = *base::SocketAddress::from_ip("10.0.0.9", 20480);
  PairWorld world_{1, options()};
  PairEngine& target_ = world_.hosts[0];
  std::unique_ptr<path::SimPath> path_ = std::move(*world_.network.attach(kStranger));
  link::Link link_{link::LinkOptions{}, 900, 901};
  link::PeerHandle peer_ = *link_.peer(target_.engine->address(), 1472, {});
  std::uint32_t shared_ = 0, counted_ = 0, receives_ = 0;
  std::vector<HostilePair> exposed_;
  std::deque<std::vector<std::byte>> said_;  // kept until the end: the link refers to it
  std::deque<iovec> pieces_;
  std::vector<HeardAnswer> heard_;
  link::Train train_;
};

// That a sequence was executed gives no right: a repeated request is checked like a new one.
TEST_F(HostilePairs, ARepeatedRequestMayNoMoreThanANewOne) {
  exposed_.reserve(8);
  struct Case {
    std::uint32_t rights;
    std::uint8_t reads_max;
    std::uint64_t length;
    bool is_told;
  };
  constexpr std::uint32_t kWrite = verbs::access::remote_write, kRead = verbs::access::remote_read;
  for (const Case& its : {Case{kWrite, 4, 100, false}, Case{kWrite | kRead, 0, 100, false},
                          Case{kWrite | kRead, 4, kMessageMax + 1, false}, Case{kWrite | kRead, 4, 100, true}}) {
    HostilePair& one = open(QpType::rc, its.rights, its.reads_max);
    const std::vector<std::byte> bytes(8, kOpenByte);
    say(request(one, Wire::pair_write, 1000, shared_), bytes);
    for (int steps = 0; steps < 100; ++steps) pass();
    const std::uint64_t executed = counters().requests_executed, refused = counters().refused_repeats;
    heard_.clear();
    wire::Envelope again = request(one, Wire::pair_read, 1000, shared_);
    again.a = its.length;
    say(again, {});
    for (int steps = 0; steps < 100; ++steps) pass();
    const bool is_told = std::ranges::any_of(heard_, [](const HeardAnswer& answer) { return !answer.bytes.empty(); });
    EXPECT_EQ(is_told, its.is_told) << its.rights << ' ' << int{its.reads_max} << ' ' << its.length;
    EXPECT_EQ(counters().refused_repeats, refused + (its.is_told ? 0 : 1));
    EXPECT_EQ(std::ranges::any_of(heard_, [](const HeardAnswer& answer) { return answer.envelope.status != 0; }),
              !its.is_told)
        << "it hears that it may not";
    EXPECT_EQ(counters().requests_executed, executed);
    EXPECT_TRUE(is_ready(one));
  }
}

TEST_F(HostilePairs, ARepeatedAtomicNeedsTheRightToo) {
  HostilePair& one = open(QpType::rc, verbs::access::remote_atomic);
  wire::Envelope add = request(one, Wire::pair_atomic, 1000, counted_);
  add.flags = 4;
  add.a = 1;
  const auto has_result = [](const HeardAnswer& answer) { return (answer.envelope.flags & kResultAnswer) != 0; };
  for (const bool is_allowed : {true, true, false}) {
    if (!is_allowed) {
      verbs::QpAttributes attributes = target_.pairs().pair_facts(one.handle).attributes;
      attributes.access_flags = 0;
      ASSERT_EQ(target_.pairs().change_pair(one.handle, QpState::rts, attributes, world_.now), Status::ok);
    }
    heard_.clear();
    say(add, {});
    for (int steps = 0; steps < 100; ++steps) pass();
    EXPECT_EQ(std::ranges::any_of(heard_, has_result), is_allowed);
  }
  EXPECT_EQ(area(1)[0], static_cast<std::byte>(std::to_integer<unsigned>(kOpenByte) + 1)) << "once";
}

// The queue pairs differ in rights, and each writes its own byte value. So the test sees which one wrote or read.
TEST_F(HostilePairs, AnyEnvelopeIsExecutedOrRefusedAndNothingElseHappens) {
  std::mt19937_64 random(5);
  const auto draw = [&](std::uint64_t below) { return random() % below; };
  exposed_.reserve(16);
  for (std::uint32_t set = 0; set < 8; ++set) {
    open(QpType::rc, ((set & 1) != 0 ? verbs::access::remote_write : 0) |
                         ((set & 2) != 0 ? verbs::access::remote_read : 0) |
                         ((set & 4) != 0 ? verbs::access::remote_atomic : 0));
  }
  open(QpType::rc, PairWorld::kRights, 0);
  open(QpType::uc, PairWorld::kRights);
  open(QpType::uc, 0);
  open(QpType::ud, 0);
  // Meanwhile an honest peer exchanges requests with the same engine.
  const auto near = world_.open(0, QpType::rc), far = world_.open(1, QpType::rc);
  world_.connect(0, near, far, 1, 1);
  world_.connect(1, far, near, 1, 1);

  const auto colour_of = [](std::size_t index) { return static_cast<std::byte>(0x80 + index); };
  std::uint64_t decent = 0, told = 0, results = 0;
  const auto check_answers = [&] {
    for (const HeardAnswer& answer : heard_) {
      const std::size_t index = (answer.envelope.target_port & 0xFF'FFFF) - kFirstOfStranger;
      if ((answer.envelope.status == kNotReadyAnswer || answer.envelope.status == kGoBackAnswer) &&
          index < exposed_.size())
        exposed_[index].sequence = answer.envelope.key >> 32;
      const bool is_result = (answer.envelope.flags & kResultAnswer) != 0 && answer.envelope.status == 0;
      if (answer.envelope.operation != Wire::pair_answer || !is_result) continue;
      ASSERT_LT(index, exposed_.size());
      const HostilePair& one = exposed_[index];
      ASSERT_NE(one.reads_max, 0) << "queue pair " << index;
      if (answer.size == 0) {
        ASSERT_TRUE(one.may(verbs::access::remote_atomic | verbs::access::remote_read)) << "queue pair " << index;
        ++results;
        continue;
      }
      ASSERT_TRUE(one.may(verbs::access::remote_read)) << "queue pair " << index;
      ASSERT_TRUE(std::ranges::none_of(answer.bytes, [](std::byte byte) { return byte == kSecretByte; }));
      ++told;
    }
    heard_.clear();
  };
  for (int round = 0; round < 20'000; ++round) {
    const std::size_t index = draw(exposed_.size());
    HostilePair& one = exposed_[index];
    if (!is_ready(one) || draw(20) == 0) connect(one);
    const verbs::Sge into{draw(8) == 0 ? draw(kHostileArea) : draw(200), static_cast<std::uint32_t>(draw(30'000)),
                          receives_};
    const verbs::ReceiveRequest receive{.id = 1, .sges = {&into, 1}};
    std::size_t taken = 0;
    if (draw(4) != 0) target_.pairs().post_receive(one.handle, {&receive, 1}, taken);
    auto operation = static_cast<Wire>(6 + draw(6));
    if (one.type == QpType::rc && draw(4) != 0) {  // mostly an operation that it has the right to
      const std::uint64_t kind = draw(4);
      operation = kind == 0 && one.may(verbs::access::remote_write)    ? Wire::pair_write
                  : kind == 1 && one.may(verbs::access::remote_read)   ? Wire::pair_read
                  : kind == 2 && one.may(verbs::access::remote_atomic) ? Wire::pair_atomic
                                                                       : Wire::pair_send;
    }
    const std::uint32_t fit = operation == Wire::pair_atomic ? counted_ : shared_;
    const std::uint64_t key = draw(16) == 0 ? draw(1ULL << 32) : draw(16) == 0 ? target_.key : fit;
    const std::uint64_t order = draw(3) == 0 ? one.sequence + draw(5) - 3 : draw(16) == 0 ? random() : one.sequence++;
    const wire::Envelope envelope{
        .operation = operation,
        .status = static_cast<std::uint8_t>(draw(3) == 0 ? draw(256) : 0),
        .flags = static_cast<std::uint16_t>(draw(8) == 0 ? draw(65536) : draw(8)),
        .source_port = draw(16) == 0 ? static_cast<std::uint32_t>(random()) : number_of_stranger(one),
        .target_port = draw(16) == 0 ? static_cast<std::uint32_t>(random()) : one.number,
        .key = order << 32 | (one.type == QpType::ud ? 5 : key),
        .cookie = random(),
        .offset = draw(12) == 0 ? random() : draw(kHostileArea - 30'000) & ~7ULL,
        .a = draw(12) == 0 ? random() : draw(2000),
    };
    const bool has_data = operation == Wire::pair_send || operation == Wire::pair_write ||
                          operation == Wire::pair_datagram || draw(16) == 0;
    const std::uint64_t size = !has_data || draw(4) == 0 ? 0 : draw(8) == 0 ? draw(20'000) : draw(200);
    say(envelope, std::vector<std::byte>(size, colour_of(index)));
    if (round % 100 == 0) {
      const verbs::SendRequest ping{
          .id = decent, .opcode = verbs::SendOpcode::write, .flags = verbs::send_flags::signaled};
      if (world_.hosts[1].pairs().post_send(far.handle, {&ping, 1}, taken, world_.now) == 0) ++decent;
    }
    for (int steps = 0; steps < 4; ++steps) pass();
    forget_events();
    check_answers();
    if (HasFatalFailure()) return;
  }
  std::uint64_t decent_done = 0;
  for (int steps = 0; steps < 1000; ++steps) world_.step(world_.now + 1ms);
  for (const auto& one : world_.hosts[1].completions()) decent_done += one.status == verbs::WcStatus::success;
  EXPECT_EQ(decent_done, decent);
  EXPECT_GT(told, 50u);
  EXPECT_GT(results, 20u);
  EXPECT_GT(counters().requests_executed, 500u);
  EXPECT_GT(counters().refused_not_ready, 100u);
  EXPECT_GT(counters().refused_repeats, 10u);
  // Only queue pairs with the right have written to the shared region. Other memory is unchanged, except that of
  // receives.
  std::array<bool, 256> seen{};
  for (const std::byte byte : area(0)) seen[std::to_integer<std::size_t>(byte)] = true;
  for (std::size_t value = 0; value < seen.size(); ++value) {
    if (!seen[value] || value == std::to_integer<std::size_t>(kOpenByte)) continue;
    ASSERT_TRUE(value >= 0x80 && value - 0x80 < exposed_.size()) << value;
    EXPECT_TRUE(exposed_[value - 0x80].may(verbs::access::remote_write)) << "queue pair " << value - 0x80 << " wrote";
  }
  EXPECT_TRUE(seen[0x81]) << "whoever may write does";
  EXPECT_TRUE(std::ranges::all_of(std::span(target_.memory).subspan(3 * kHostileArea),
                                  [](std::byte byte) { return byte == kSecretByte; }));
}

}  // namespace
}  // namespace fairlead::qp
