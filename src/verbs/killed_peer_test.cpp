// The peer's process is killed while requests of every kind are in flight to it. Each request ends once, in order,
// within a time limit; memory does not change afterwards; and the survivor continues with the next process at that
// address. A full run kills many (FAIRLEAD_TEST_SEED selects other moments).

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "base/child_for_tests.hpp"
#include "base/file_descriptor.hpp"
#include "tests/environment.hpp"
#include "verbs/pair_for_tests.hpp"

namespace fairlead::verbs {
namespace {

constexpr std::size_t kPairs = 4, kInFlight = 16, kChunk = std::size_t{1} << 16;
constexpr std::array kOpcodes{SendOpcode::write, SendOpcode::read, SendOpcode::send, SendOpcode::fetch_add};
// Requests fail after 2 s: a live process that waits for a processor answers earlier.
const PairOptions kImpatient{.capacity = {.max_send_wr = 32, .max_recv_wr = 128}, .timeout = 16, .retry_cnt = 7};
constexpr const char* kGiveUpMs = "2000";
constexpr auto kEndsWithin = std::chrono::seconds(20);  // for the requests to end, with tolerance for a busy host

struct Numbers {
  std::array<std::uint32_t, kPairs> pairs{};
  std::uint32_t rkey = 0;
  std::uint64_t address = 0;
};

std::vector<QueuePair> make_pairs(Side& side, Numbers& numbers) {
  std::vector<QueuePair> pairs;
  for (std::uint32_t& number : numbers.pairs) {
    pairs.push_back(made(make_pair_at(side, QpType::rc, kImpatient.capacity)));
    number = pairs.back().number();
  }
  numbers.rkey = side.region.rkey();
  numbers.address = side.remote(0);
  return pairs;
}

Device device_at(std::uint8_t host) {
  return {.gid = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF, 127, 0, 0, host}};
}

/// A process that answers until it is killed. It starts before its parent opens a device.
class Victim {
 public:
  explicit Victim(Road road) {
    std::array<int, 2> down{}, up{};
    EXPECT_EQ(::pipe(down.data()) | ::pipe(up.data()), 0);
    std::fflush(nullptr);
    const pid_t parent = ::getpid();
    pid_ = ::fork();
    if (pid_ == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      if (::getppid() == parent) serve(road, down[0], up[1]);
      ::_exit(1);
    }
    ::close(down[0]);
    ::close(up[1]);
    to_ = base::FileDescriptor(down[1]);
    from_ = base::FileDescriptor(up[0]);
  }
  ~Victim() { kill(); }
  Victim(const Victim&) = delete;
  Victim& operator=(const Victim&) = delete;

  Numbers meet(const Numbers& ours) {
    Numbers theirs;
    EXPECT_EQ(::write(to_.get(), &ours, sizeof ours), static_cast<ssize_t>(sizeof ours));
    EXPECT_EQ(::read(from_.get(), &theirs, sizeof theirs), static_cast<ssize_t>(sizeof theirs));
    return theirs;
  }
  void kill() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    pid_ = -1;
  }

 private:
  static void serve(Road road, int from, int to) {
    base::is_child_of_test = true;
    Numbers theirs, ours;
    if (::read(from, &theirs, sizeof theirs) != static_cast<ssize_t>(sizeof theirs)) return;
    Side side(2, road, kGiveUpMs);
    std::vector<QueuePair> pairs = make_pairs(side, ours);
    const Sge to_fill = side.sge(0, kChunk);
    const auto post = [&](std::size_t i) { return pairs[i].post_receive({.id = i, .sges = {&to_fill, 1}}); };
    for (std::size_t i = 0; i < kPairs; ++i) {
      move_up(pairs[i], attributes_for(kImpatient, device_at(1), theirs.pairs[i], 7, 7), QpState::rts);
      for (std::size_t each = 0; each < 2 * kInFlight; ++each)
        if (post(i) != 0) return;
    }
    if (::write(to, &ours, sizeof ours) != static_cast<ssize_t>(sizeof ours)) return;
    for (;;) {
      std::array<WorkCompletion, 16> some;
      const int count = side.queue.poll(some);
      for (int i = 0; i < count; ++i) (void)post(some[static_cast<std::size_t>(i)].wr_id);
    }
  }
  pid_t pid_ = -1;
  base::FileDescriptor to_, from_;
};

/// The requests of one queue pair, numbered from 0.
struct Ends {
  std::uint64_t posted = 0, ended = 0;
  bool has_failed = false;
  std::uint32_t cause = 0;  // of the first that failed

  void expect_next(const WorkCompletion& end) {
    EXPECT_EQ(end.wr_id, ended++) << "in order, and each once";
    if (end.status == WcStatus::success) {
      EXPECT_FALSE(has_failed);
    } else {
      EXPECT_EQ(end.status, has_failed ? WcStatus::wr_flush_err : WcStatus::retry_exc_err);
      if (!has_failed) cause = end.vendor_err;
      has_failed = true;
    }
  }
};

class KilledPeer : public testing::TestWithParam<Road> {
 protected:
  void post(std::size_t pair) {
    const bool is_atomic = kOpcodes[pair] == SendOpcode::fetch_add;
    const auto size = static_cast<std::uint32_t>(is_atomic ? 8 : random_() % 2 == 0 ? 64 : kChunk);
    const Sge local = side_->sge(pair * kChunk, size);
    ASSERT_EQ(pairs_[pair].post_send({.id = ends_[pair].posted++,
                                      .sges = {&local, 1},
                                      .opcode = kOpcodes[pair],
                                      .flags = send_flags::signaled,
                                      .rkey = theirs_.rkey,
                                      .remote_addr = theirs_.address + pair * kChunk,
                                      .compare_add = 1}),
              0);
  }
  /// Returns how many requests have ended since the last call.
  std::uint64_t take_ends() {
    std::array<WorkCompletion, 16> some;
    const int count = side_->queue.poll(some);
    EXPECT_GE(count, 0);
    for (const WorkCompletion& end : std::span(some).first(static_cast<std::size_t>(std::max(count, 0))))
      ends_[index_of(end.qp_num)].expect_next(end);
    return static_cast<std::uint64_t>(std::max(count, 0));
  }
  std::size_t index_of(std::uint32_t number) const {
    const auto found = std::ranges::find(ours_.pairs, number);
    EXPECT_TRUE(found != ours_.pairs.end());
    return static_cast<std::size_t>(found - ours_.pairs.begin()) % kPairs;
  }
  bool has_all_ended() const {
    return std::ranges::all_of(ends_, [](const Ends& each) { return each.ended == each.posted; });
  }
  /// Keeps so many requests per queue pair in flight until `is_enough`. Returns false if that takes too long.
  template <typename IsEnough>
  bool keep_posting(std::size_t in_flight, IsEnough&& is_enough) {
    const auto end = std::chrono::steady_clock::now() + kEndsWithin;
    while (!is_enough() && std::chrono::steady_clock::now() < end) {
      for (std::size_t i = 0; i < kPairs; ++i)
        while (!ends_[i].has_failed && ends_[i].posted < ends_[i].ended + in_flight) post(i);
      if (take_ends() == 0) std::this_thread::sleep_for(std::chrono::microseconds(200));  // others need the processor
    }
    return is_enough();
  }
  std::uint64_t ended() const {
    return std::accumulate(ends_.begin(), ends_.end(), std::uint64_t{0},
                           [](std::uint64_t sum, const Ends& each) { return sum + each.ended; });
  }

  void meet(Victim& victim) {
    ends_ = {};
    pairs_ = make_pairs(*side_, ours_);
    theirs_ = victim.meet(ours_);
    for (std::size_t i = 0; i < kPairs; ++i)
      move_up(pairs_[i], attributes_for(kImpatient, device_at(2), theirs_.pairs[i], 7, 7), QpState::rts);
  }
  void outlive(Victim& victim) {
    const std::uint64_t moment = 1 + random_() % 400;
    // A queue pair that was not answered yet cannot tell a peer that has ended from one that never was.
    const auto is_answered = [](const Ends& each) { return each.ended > 0; };
    ASSERT_TRUE(keep_posting(kInFlight, [&] { return ended() >= moment && std::ranges::all_of(ends_, is_answered); }))
        << "it is served, whoever was before it";
    EXPECT_TRUE(std::ranges::none_of(ends_, &Ends::has_failed));
    victim.kill();
    // Operations on memory that is mapped here may succeed until the peer's end is known.
    ASSERT_TRUE(keep_posting(1, [&] { return has_all_ended() && std::ranges::all_of(ends_, &Ends::has_failed); }));
    for (const QueuePair& each : pairs_) EXPECT_EQ(each.state(), QpState::err);
    if (GetParam() == Road::udp)
      return;  // whether the kernel says that nobody listens, or nothing, depends on the time
    for (const Ends& each : ends_) EXPECT_EQ(static_cast<Cause>(each.cause), Cause::peer_ended) << each.cause;
  }
  void expect_quiet() {
    const std::vector<std::byte> before(kPairs * kChunk, std::byte{0x77});
    std::ranges::copy(before, side_->memory.begin());
    for (int i = 0; i < 200; ++i) EXPECT_EQ(take_ends(), 0u);
    for (QueuePair& each : pairs_) EXPECT_TRUE(each.destroy());
    EXPECT_TRUE(std::ranges::equal(before, std::span(side_->memory).first(before.size())));
  }

  std::mt19937_64 random_{tests::number_from("FAIRLEAD_TEST_SEED", 1)};
  std::unique_ptr<Side> side_;
  std::vector<QueuePair> pairs_;
  Numbers ours_, theirs_;
  std::array<Ends, kPairs> ends_;
};
INSTANTIATE_TEST_SUITE_P(, KilledPeer, testing::Values(Road::shm, Road::cma, Road::udp),
                         [](const auto& one) { return to_string(one.param); });

TEST_P(KilledPeer, EndsEachRequestOnceAndTheNextIsServed) {
  const std::size_t kills = tests::is_full_run() ? 40 : 1;
  std::vector<std::unique_ptr<Victim>> victims;
  for (std::size_t i = 0; i < kills; ++i) victims.push_back(std::make_unique<Victim>(GetParam()));
  side_ = std::make_unique<Side>(1, GetParam(), kGiveUpMs);
  for (const auto& victim : victims) {
    meet(*victim);
    outlive(*victim);
    if (HasFailure()) return;
    expect_quiet();
  }
}

}  // namespace
}  // namespace fairlead::verbs
