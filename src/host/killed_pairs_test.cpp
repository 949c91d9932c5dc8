// An application with queue pairs is killed at random instants. FAIRLEAD_TEST_KILLS=500 sets the number of kills,
// FAIRLEAD_TEST_SEED the random seed.

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <optional>
#include <random>
#include <thread>
#include <vector>

#include "base/child_for_tests.hpp"
#include "base/file_descriptor.hpp"
#include "host/host_for_tests.hpp"
#include "host/hostile_pairs_for_tests.hpp"
#include "tests/environment.hpp"

namespace fairlead::host {
namespace {

/// A queue pair and the memory that its peer writes to.
struct Side {
  std::uint32_t object = 0, generation = 0;
  std::uint32_t number = 0, key = 0;
  int memory = -1;  // descriptor, in its process
};

/// An application with one queue pair.
class OnePair {
 public:
  explicit OnePair(const std::string& file) : application_(file) {
    application_.settle();
    PairCall region{.domain = 1};
    region.length = kRegionBytes;
    region.access = verbs::access::local_write | verbs::access::remote_write;
    EXPECT_EQ(application_.call(CallKind::add_region, region, {{0, kRegionBytes}}), Status::ok);
    own_.key = application_.answer.key;
    own_.memory = application_.regions_file();
    EXPECT_EQ(application_.call(CallKind::open_pair, HostilePairs::pair_call()), Status::ok);
    own_.object = application_.answer.object;
    own_.generation = application_.answer.generation;
    own_.number = application_.answer.number;
  }
  const Side& own() const { return own_; }

  /// A write without an answer ends after eight times 4 us << timeout.
  void connect(const Side& peer, std::uint8_t timeout = 10) {
    peer_ = peer;
    PairCall change = HostilePairs::pair_call();
    change.object = own_.object;
    change.generation = own_.generation;
    change.attributes.dest_qp_num = peer.number;
    change.attributes.path_mtu = 1;
    change.attributes.access_flags = verbs::access::remote_write;
    change.attributes.timeout = timeout;
    change.attributes.retry_cnt = 7;
    change.attributes.av.is_global = 1;
    change.attributes.av.dgid = base::SocketAddress::from_ip("127.0.0.1", 0)->ip;
    for (std::uint8_t state = 1; state <= std::to_underlying(verbs::QpState::rts); ++state) {
      change.from = static_cast<std::uint8_t>(state - 1);
      change.attributes.state = state;
      EXPECT_EQ(application_.call(CallKind::change_pair, change), Status::ok) << application_.answer.text.data();
    }
  }
  /// Writes the first `bytes` bytes of the own memory to those of the peer. Four may be pending.
  void write(std::uint32_t bytes) {
    PairRequest request{.object = own_.object, .generation = own_.generation};
    request.kind = std::to_underlying(Post::post_send);
    request.opcode = std::to_underlying(verbs::SendOpcode::write);
    request.flags = verbs::send_flags::signaled;
    request.pieces = 1;
    request.rkey = peer_.key;
    const verbs::Sge piece{.addr = 0, .length = bytes, .lkey = own_.key};
    application_.ask(request, std::as_bytes(std::span(&piece, 1)));
  }
  verbs::WcStatus next_status() { return application_.next_status(); }

 private:
  HostilePairs application_;
  Side own_, peer_;
};

/// The memory of another process.
class SeenMemory {
 public:
  SeenMemory(pid_t process, int descriptor) {
    const base::FileDescriptor file(
        ::open(fmt::format("/proc/{}/fd/{}", process, descriptor).c_str(), O_RDWR | O_CLOEXEC));
    void* const begin = ::mmap(nullptr, kRegionBytes, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
    EXPECT_NE(begin, MAP_FAILED);
    begin_ = static_cast<std::byte*>(begin);
  }
  ~SeenMemory() { ::munmap(begin_, kRegionBytes); }
  SeenMemory(const SeenMemory&) = delete;
  SeenMemory& operator=(const SeenMemory&) = delete;
  std::span<std::byte> bytes() const { return {begin_, kRegionBytes}; }

 private:
  std::byte* begin_;
};

class KilledPairs : public ::testing::Test {
 protected:
  /// A child with a queue pair that is connected to `peer`. It writes for ever.
  struct Victim {
    pid_t process = 0;
    Side side;
  };
  Victim start(OnePair& peer) {
    int both[2] = {};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, both), 0);
    const base::FileDescriptor here(both[0]);
    base::FileDescriptor there(both[1]);
    std::fflush(nullptr);
    Victim victim{.process = ::fork(), .side = {}};
    if (victim.process == 0) run(peer.own(), there.get());
    there.reset();
    EXPECT_EQ(::read(here.get(), &victim.side, sizeof victim.side), static_cast<ssize_t>(sizeof victim.side));
    peer.connect(victim.side);
    EXPECT_EQ(::write(here.get(), "c", 1), 1);
    return victim;
  }
  [[noreturn]] void run(const Side& peer, int parent) {
    base::is_child_of_test = true;
    OnePair own(host_.file());
    own.connect(peer);
    if (::write(parent, &own.own(), sizeof(Side)) != static_cast<ssize_t>(sizeof(Side))) ::_exit(1);
    char is_connected = 0;
    if (::read(parent, &is_connected, 1) != 1) ::_exit(1);
    for (std::uint32_t bytes = 8;; bytes = bytes < kRegionBytes ? bytes * 2 : 8) {
      for (int i = 0; i < 4; ++i) own.write(bytes);
      for (int i = 0; i < 4; ++i) own.next_status();
    }
  }
  static std::ptrdiff_t descriptors() {
    return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), std::filesystem::directory_iterator());
  }
  /// Returns how long it took.
  std::chrono::microseconds wait_for_applications(std::uint64_t number) {
    const auto begin = base::MonotonicClock::now();
    while (host_.service().applications() != number) {
      if (base::MonotonicClock::now() > begin + kPatienceWithPairs) {
        ADD_FAILURE() << host_.service().applications() << " applications";
        break;
      }
      std::this_thread::yield();
    }
    return std::chrono::duration_cast<std::chrono::microseconds>(base::MonotonicClock::now() - begin);
  }

  HostForTests host_;
  const std::uint64_t kills_ = tests::number_from("FAIRLEAD_TEST_KILLS", 10);
  std::mt19937_64 random_{tests::number_from("FAIRLEAD_TEST_SEED", 1)};
};

// Its peer writes into its memory, and it into its peer's. When it has gone, its pages stay as they are, the peer's
// operations end, another application works, and the host engine keeps nothing.
TEST_F(KilledPairs, LeaveNothingAndTheirPagesStay) {
  OnePair other(host_.file());
  other.connect(other.own(), 18);
  const auto had = descriptors();
  std::chrono::microseconds longest{};
  for (std::uint64_t kill = 0; kill < kills_; ++kill) {
    SCOPED_TRACE(kill);
    std::optional<OnePair> peer(host_.file());
    const Victim victim = start(*peer);
    const SeenMemory memory(victim.process, victim.side.memory), source(::getpid(), peer->own().memory);
    const auto post = [&](std::uint8_t value) {
      std::ranges::fill(source.bytes(), std::byte{value});
      for (int i = 0; i < 4; ++i) peer->write(kRegionBytes);
    };
    post(1);
    std::this_thread::sleep_for(std::chrono::microseconds(random_() % 3000));
    ::kill(victim.process, SIGKILL);
    ::waitpid(victim.process, nullptr, 0);
    longest = std::max(longest, wait_for_applications(2));
    const std::vector<std::byte> left(memory.bytes().begin(), memory.bytes().end());
    for (int i = 0; i < 4; ++i) peer->next_status();
    post(2);
    for (int i = 0; i < 4; ++i) EXPECT_NE(peer->next_status(), verbs::WcStatus::success);
    other.write(4096);
    EXPECT_EQ(other.next_status(), verbs::WcStatus::success);
    EXPECT_TRUE(std::ranges::equal(memory.bytes(), left)) << "somebody wrote into its pages";
    peer.reset();
    wait_for_applications(1);
    if (HasFailure()) return;
  }
  const auto end = base::MonotonicClock::now() + kPatienceWithPairs;
  while (descriptors() > had && base::MonotonicClock::now() < end) std::this_thread::yield();
  EXPECT_LE(descriptors(), had);
  fmt::print("{} kills: gone after at most {} us\n", kills_, longest.count());
}

}  // namespace
}  // namespace fairlead::host
