// One-sided requests between processes of one host: to a stopped target, to a target that is killed, and to a target
// that writes arbitrary values into its published tables.

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <functional>
#include <random>
#include <sstream>
#include <thread>

#include "base/file_descriptor.hpp"
#include "onesided/shared_tables.hpp"
#include "verbs/pair_for_tests.hpp"

namespace fairlead::verbs {
namespace {

struct Card {
  std::uint32_t number = 0, key = 0;
  std::uint64_t memory = 0;
};

/// The target's process. After its set-up it only answers requests on a socket, and otherwise sleeps.
class Target {
 public:
  /// With Road::cma, the target has a second thread, so its memory cannot be moved into the arena.
  explicit Target(std::uint8_t host, Road road = Road::shm) {
    int ends[2] = {-1, -1};
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return;
    child_ = ::fork();
    if (child_ == 0) {
      ::close(ends[0]);
      ::_exit(serve(ends[1], host, road));
    }
    ::close(ends[1]);
    socket_ = base::FileDescriptor(ends[0]);
  }
  ~Target() {
    if (child_ > 0) ::kill(child_, SIGKILL), ::waitpid(child_, nullptr, 0);
  }
  Target(const Target&) = delete;
  Target& operator=(const Target&) = delete;

  pid_t child() const { return child_; }
  Card exchange(const Card& own) const {
    Card its;
    EXPECT_EQ(::write(socket_.get(), &own, sizeof own), static_cast<ssize_t>(sizeof own));
    EXPECT_EQ(::read(socket_.get(), &its, sizeof its), static_cast<ssize_t>(sizeof its));
    return its;
  }
  /// Returns the sum of the target's first `count` words.
  std::uint64_t sum(std::uint64_t count) const {
    std::uint64_t answer = 0;
    EXPECT_EQ(::write(socket_.get(), &count, sizeof count), static_cast<ssize_t>(sizeof count));
    EXPECT_EQ(::read(socket_.get(), &answer, sizeof answer), static_cast<ssize_t>(sizeof answer));
    return answer;
  }

 private:
  static int serve(int socket, std::uint8_t host, Road road) {
    std::jthread other;
    if (road == Road::cma) {
      other = std::jthread([](const std::stop_token& stop) {
        while (!stop.stop_requested()) std::this_thread::sleep_for(std::chrono::milliseconds(10));
      });
    }
    Side side(host, road);
    auto pair = make_pair_at(side, QpType::rc, PairOptions().capacity);
    Card peer;
    const Card own{pair->number(), side.region.rkey(), side.remote(8192)};
    if (::read(socket, &peer, sizeof peer) != sizeof peer) return 1;
    Device there = side.device;
    there.gid[15] = 1;
    move_up(*pair, attributes_for({}, there, peer.number, 200, 100), QpState::rts);
    if (::write(socket, &own, sizeof own) != sizeof own) return 2;
    for (std::uint64_t count = 0; ::read(socket, &count, sizeof count) == sizeof count;) {
      std::uint64_t sum = 0;
      for (std::uint64_t i = 0; i < count; ++i) {
        std::uint64_t word = 0;
        std::memcpy(&word, side.memory.data() + 8192 + 8 * i, 8);
        sum += word;
      }
      if (::write(socket, &sum, sizeof sum) != sizeof sum) return 3;
    }
    return 0;
  }

  pid_t child_ = -1;
  base::FileDescriptor socket_;
};

std::uint64_t writes_of(const Side& side) {
  return side.counted("qp.direct_writes");
}

class ShmDirect : public ::testing::Test {
 protected:
  /// The initiator, connected and able to complete writes itself.
  struct Initiator {
    explicit Initiator(const Target& target, Road road = Road::shm)
        : side(1, road, "2000"), pair(*make_pair_at(side, QpType::rc, PairOptions().capacity)) {
      there = target.exchange({.number = pair.number()});
      Device device = side.device;
      device.gid[15] = 2;
      move_up(pair, attributes_for({}, device, there.number, 100, 200), QpState::rts);
      const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
      while (writes_of(side) == 0 && std::chrono::steady_clock::now() < end) run(SendOpcode::write, 0, 8);
      EXPECT_GT(writes_of(side), 0u);
    }

    int post(SendOpcode opcode, std::size_t from, std::uint32_t length, std::uint64_t value = 0) {
      const Sge sge = side.sge(from, length);
      return pair.post_send({.id = 1,
                             .sges = {&sge, 1},
                             .opcode = opcode,
                             .flags = send_flags::signaled,
                             .rkey = there.key,
                             .remote_addr = there.memory,
                             .compare_add = value});
    }
    WcStatus run(SendOpcode opcode, std::size_t from, std::uint32_t length, std::uint64_t value = 0) {
      EXPECT_EQ(post(opcode, from, length, value), 0);
      WorkCompletion done{.status = WcStatus::general_err};
      const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
      while (side.queue.poll({&done, 1}) == 0 && std::chrono::steady_clock::now() < end) {
      }
      return done.status;
    }

    Side side;
    QueuePair pair;
    Card there;
  };
};

TEST_F(ShmDirect, AStoppedTargetGetsWhatIsWritten) {
  const Target target(2);
  Initiator a(target);
  ASSERT_EQ(::kill(target.child(), SIGSTOP), 0);
  int status = 0;
  ASSERT_EQ(::waitpid(target.child(), &status, WUNTRACED), target.child());
  constexpr std::uint64_t kWords = 100'000;
  std::uint64_t sum = 0;
  for (std::uint64_t i = 0; i < kWords; ++i) {
    const std::uint64_t word = i * i;
    std::memcpy(a.side.memory.data() + 8 * i, &word, 8);
    sum += word;
  }
  EXPECT_EQ(a.run(SendOpcode::write, 0, 8 * kWords), WcStatus::success);
  EXPECT_EQ(a.run(SendOpcode::fetch_add, 0, 8, 12345), WcStatus::success);
  EXPECT_EQ(a.run(SendOpcode::read, 1'000'000, 8 * kWords), WcStatus::success);
  std::uint64_t first = 0;
  std::memcpy(&first, a.side.memory.data() + 1'000'000, 8);
  EXPECT_EQ(first, 12345u);
  ASSERT_EQ(::kill(target.child(), SIGCONT), 0);
  EXPECT_EQ(target.sum(kWords), sum + 12345);
}

TEST_F(ShmDirect, AStoppedTargetGetsWhatIsWrittenToMemoryThatCouldNotBeMoved) {
  const Target target(2, Road::cma);
  Initiator a(target, Road::cma);
  ASSERT_EQ(a.side.counted("qp.writes_by_calls"), 1u);
  ASSERT_EQ(::kill(target.child(), SIGSTOP), 0);
  int status = 0;
  ASSERT_EQ(::waitpid(target.child(), &status, WUNTRACED), target.child());
  constexpr std::uint64_t kWords = 100'000;
  std::uint64_t sum = 0;
  for (std::uint64_t i = 0; i < kWords; ++i) {
    const std::uint64_t word = i * i + 7;
    std::memcpy(a.side.memory.data() + 8 * i, &word, 8);
    sum += word;
  }
  EXPECT_EQ(a.run(SendOpcode::write, 0, 8 * kWords), WcStatus::success);
  EXPECT_EQ(a.run(SendOpcode::read, 1'000'000, 8 * kWords), WcStatus::success);
  EXPECT_EQ(std::memcmp(a.side.memory.data(), a.side.memory.data() + 1'000'000, 8 * kWords), 0);
  ASSERT_EQ(::kill(target.child(), SIGCONT), 0);
  EXPECT_EQ(target.sum(kWords), sum);
}

TEST_F(ShmDirect, ATargetThatDiesFailsWhatComesAfter) {
  const Target target(2);
  Initiator a(target);
  std::uint64_t written = 0;
  WcStatus last = WcStatus::success;
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (last == WcStatus::success && std::chrono::steady_clock::now() < end) {
    last = a.run(SendOpcode::write, 0, 2'000'000);
    if (++written == 50) ::kill(target.child(), SIGKILL);
  }
  EXPECT_EQ(last, WcStatus::retry_exc_err);
  EXPECT_GE(written, 50u);
}

/// Returns the tables of all arenas that this process has mapped.
std::vector<onesided::SharedTables*> all_tables() {
  std::vector<onesided::SharedTables*> found;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    std::uintptr_t begin = 0, end = 0;
    char dash = 0;
    std::istringstream in(line);
    in >> std::hex >> begin >> dash >> end;
    if (line.find("/memfd:fairlead") != std::string::npos &&
        end - begin > sizeof(onesided::SharedTables) + (1ULL << 30))
      found.push_back(reinterpret_cast<onesided::SharedTables*>(begin));
  }
  return found;
}

TEST_F(ShmDirect, LiesInTheTablesHurtNobodyButTheLiar) {
  std::mt19937_64 random(3);
  int succeeded = 0, failed = 0;
  const auto wild = [&]() -> std::uint64_t {
    const std::uint64_t near = random() % 5 - 2;
    constexpr std::uint64_t kArena = sizeof(onesided::SharedTables) + (16ULL << 30);
    const std::array<std::uint64_t, 6> choices{random(), near, kArena + near, near - 4096, 1ULL << 63, kArena / 2};
    return choices[random() % choices.size()];
  };
  for (int life = 0; life < 12; ++life) {
    Connected c(Road::shm);
    const auto write = [&] {
      const std::uint32_t length = static_cast<std::uint32_t>(1 + random() % 100'000);
      const Sge from = c.a.sge(0, length);
      EXPECT_EQ(c.pa.post_send({.id = 1,
                                .sges = {&from, 1},
                                .opcode = random() % 2 == 0 ? SendOpcode::write : SendOpcode::read,
                                .flags = send_flags::signaled,
                                .rkey = c.b.region.rkey(),
                                .remote_addr = c.b.remote(random() % 3'000'000)}),
                0);
      return c.one_at_a().status;
    };
    while (writes_of(c.a) == 0 && write() == WcStatus::success) {
    }
    const auto tables = all_tables();
    ASSERT_FALSE(tables.empty());
    const std::uint32_t slot = c.b.region.rkey() >> 8, index = c.pb.number() % onesided::SharedTables::kPairs;
    onesided::PublishCount lies;
    for (int step = 0; step < 200; ++step) {
      for (onesided::SharedTables* one : tables) {
        onesided::SharedRegion region;
        onesided::SharedPair pair;
        one->regions[slot].read(region);
        one->pairs[index].read(pair);
        if (region.key != c.b.region.rkey()) continue;
        const std::array<std::uint64_t*, 5> fields{&region.iova, &region.length, &region.begin, &region.end,
                                                   &region.offset};
        for (auto changes = random() % 3 + 1; changes > 0; --changes) *fields[random() % fields.size()] = wild();
        region.length = std::max<std::uint64_t>(region.length, random() % 2 * (1ULL << 40));
        region.end = std::max<std::uint64_t>(region.end, random() % 2 * (1ULL << 40));
        region.iova = random() % 2 * c.b.remote(0);
        one->regions[slot].publish(region, lies);
      }
      if (write() == WcStatus::success) {
        ++succeeded;
      } else {
        ++failed;
        break;
      }
    }
  }
  EXPECT_GT(succeeded, 500);
  RecordProperty("failed", failed);
}

}  // namespace
}  // namespace fairlead::verbs
