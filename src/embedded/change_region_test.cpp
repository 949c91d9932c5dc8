// A region whose memory is changed while a peer reads it continuously: the change waits for earlier reads, and for no
// others.

#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <vector>

#include "base/place_for_tests.hpp"
#include "embedded/attach.hpp"
#include "engine/engine.hpp"
#include "path/udp_path.hpp"
#include "qp/queue_pairs.hpp"

namespace fairlead::embedded {
namespace {

constexpr std::uint32_t kRead = 64 << 10;  // not copied at submission
constexpr std::uint32_t kReadsOut = 3;
constexpr std::byte kBefore{0x11}, kAfter{0x22}, kGone{0xFF};

base::SocketAddress place(std::uint16_t number) {
  base::SocketAddress address = base::place_for_tests(number);
  address.port = static_cast<std::uint16_t>(20479 + number);  // a port with queue pair numbers
  return address;
}

engine::EngineOptions by_udp() {
  engine::EngineOptions options;
  EXPECT_TRUE(options.set("path", "udp"));
  return options;
}

/// Makes all transitions of a queue pair to RTS: `change(from, attributes)`.
template <typename Change>
void connect(std::uint32_t to, const base::SocketAddress& at, Change&& change) {
  verbs::QpAttributes attributes;
  attributes.dest_qp_num = to;
  attributes.access_flags = verbs::access::remote_read;
  attributes.av = {.dgid = at.ip, .is_global = true};
  attributes.max_rd_atomic = attributes.max_dest_rd_atomic = kReadsOut;
  attributes.timeout = 20;
  attributes.retry_cnt = 7;
  using enum verbs::QpState;
  for (const auto& [from, state] : {std::pair{reset, init}, {init, rtr}, {rtr, rts}}) {
    attributes.state = state;
    ASSERT_EQ(change(from, attributes), Status::ok);
  }
}

class ChangeOfRegion : public testing::Test {
 protected:
  ChangeOfRegion() { ::alarm(60); }  // ends a test that hangs
  ~ChangeOfRegion() override { ::alarm(0); }

  void SetUp() override {
    owner_ = attach_embedded(place(1), by_udp()).value();
    key_ = owner_->pairs()->add_region(plan_of(before_)).value();
    auto path = path::UdpPath::open({.local = place(2)});
    reader_ = std::make_unique<engine::Engine>(std::move(*path), place(2), by_udp(), 5, 5);
    lkey_ = reader_->pairs().regions().add({.base = into_.data(),
                                            .length = into_.size(),
                                            .iova = reinterpret_cast<std::uintptr_t>(into_.data()),
                                            .access = verbs::access::local_write});
    open_pairs();
  }

  void open_pairs() {
    qp::PairCore& core = *owner_->pairs();
    qp::PairPlan plan{.capacity = {.max_send_wr = 16, .max_recv_wr = 16}};
    plan.events = core.open_notices().value();
    plan.send_stream = plan.receive_stream = core.open_completions({.capacity = 64, .events = plan.events}).value();
    const qp::OpenPair owned = core.open_pair(plan).value();
    plan.events = &notices_;
    plan.send_stream = plan.receive_stream = stream_ =
        reader_->pairs().open_completions({.capacity = 64, .events = &notices_});
    std::uint32_t number = 0;
    ASSERT_EQ(reader_->pairs().open_pair(plan, pair_, number), Status::ok);
    connect(number, place(2), [&](auto from, auto& to) { return core.change_pair(owned.handle, from, to); });
    connect(owned.number, place(1), [&](auto from, auto& to) {
      return reader_->pairs().change_pair(pair_, from, to, base::MonotonicClock::now());
    });
  }

  static qp::RegionPlan plan_of(std::vector<std::byte>& memory) {
    return {.base = memory.data(), .length = memory.size(), .iova = 0, .access = verbs::access::remote_read};
  }
  std::uint64_t executed() const {
    for (const observe::CounterFact& fact : owner_->facts().counters)
      if (fact.name == "qp.requests_executed") return fact.value;
    return 0;
  }

  void look() { reader_->progress(base::MonotonicClock::now()); }
  void take_completions() {
    std::array<verbs::WorkCompletion, 16> done;
    const std::uint32_t count = stream_->take(done.data(), done.size(), reader_->pairs().accounts());
    for (const auto& each : std::span(done).first(count)) EXPECT_EQ(each.status, verbs::WcStatus::success);
    completed_ += count;
    if (count != 0) {
      EXPECT_EQ(std::ranges::count(into_, kGone), 0) << "an answer came from memory that may be unmapped";
    }
  }
  /// Waits for a read to complete, if any is in flight. Then posts as many as are permitted, and lets the owner execute
  /// them.
  void read_on() {
    for (const std::uint64_t before = completed_; posted_ != 0 && completed_ == before; take_completions()) {
      look();
      owner_->progress();
    }
    while (posted_ - completed_ < kReadsOut) {
      const verbs::Sge whole{reinterpret_cast<std::uintptr_t>(into_.data()), kRead, lkey_};
      const verbs::SendRequest request{
          .sges = {&whole, 1}, .opcode = verbs::SendOpcode::read, .flags = verbs::send_flags::signaled, .rkey = key_};
      std::size_t taken = 0;
      ASSERT_EQ(reader_->pairs().post_send(pair_, {&request, 1}, taken, base::MonotonicClock::now()), 0);
      ++posted_;
    }
    while (executed() != posted_) {
      look();
      owner_->progress();
    }
  }
  /// Returns false if many reads have completed and the withdrawal has not.
  bool ends(qp::Withdrawal& withdrawal) {
    const std::uint64_t many = completed_ + 200;
    while (completed_ < many && !owner_->pairs()->is_over(withdrawal)) read_on();
    return completed_ < many;
  }

  std::vector<std::byte> before_ = std::vector(kRead, kBefore), after_ = std::vector(kRead, kAfter);
  std::vector<std::byte> into_ = std::vector<std::byte>(kRead);
  qp::NoticeStream notices_{base::FileDescriptor(::eventfd(0, EFD_SEMAPHORE))};
  std::shared_ptr<engine::Core> owner_;
  std::unique_ptr<engine::Engine> reader_;
  qp::CompletionStream* stream_ = nullptr;
  qp::PairHandle pair_;
  std::uint32_t key_ = 0, lkey_ = 0;
  std::uint64_t posted_ = 0, completed_ = 0;
};

TEST_F(ChangeOfRegion, IsOverThoughAPeerReadsAllTheTime) {
  for (std::vector<std::byte>* memory : {&after_, &before_, &after_}) {
    read_on();
    qp::Withdrawal withdrawal;
    ASSERT_TRUE(owner_->pairs()->begin_change_region(key_, plan_of(*memory), withdrawal));
    EXPECT_TRUE(ends(withdrawal)) << "reads from after the change held it up";
  }
}

TEST_F(ChangeOfRegion, AnswersReadsWithWhatItIsNow) {
  qp::PairCore& core = *owner_->pairs();
  read_on();
  qp::Withdrawal withdrawal;
  ASSERT_TRUE(core.begin_change_region(key_, plan_of(after_), withdrawal));
  while (!core.is_over(withdrawal)) read_on();
  // From here on the owner may unmap the former memory.
  std::ranges::fill(before_, kGone);
  const std::uint64_t all = posted_ + kReadsOut;
  while (completed_ < all) read_on();
  EXPECT_EQ(std::ranges::count(into_, kAfter), kRead);
}

}  // namespace
}  // namespace fairlead::embedded
