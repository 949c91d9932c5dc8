// A thread that polled steadily is woken by the path again when it sleeps, and replaced by the engine's thread when it
// stops.

#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <fstream>
#include <string>
#include <thread>

#include "embedded/attach.hpp"
#include "engine/core.hpp"

namespace fairlead::embedded {
namespace {

using namespace std::chrono_literals;

constexpr auto kPatience = 30s;

struct Node {
  explicit Node(const char* ip, const char* path = "udp", const char* how_to_wait = "adaptive") {
    engine::EngineOptions options;
    EXPECT_TRUE(options.set("path", path));
    EXPECT_TRUE(options.set("wait", how_to_wait));
    auto attached = attach_embedded(*base::SocketAddress::from_ip(ip, 0), options);
    EXPECT_TRUE(attached);
    core = std::move(*attached);
    port = *core->open_port(1);
    EXPECT_EQ(core->reserve_events(port, 100), Status::ok);
    piece = {bytes.data(), bytes.size()};
  }
  ~Node() { core->close_port(port); }

  void post() {
    engine::OperationHandle name;
    EXPECT_EQ(core->post_receive(port, {.memory = {&piece, 1}, .size_min = 1}, name), Status::ok);
  }
  void send(const Node& to) {
    engine::OperationHandle name;
    const engine::RemotePort there{to.core->address(), 1};
    EXPECT_EQ(core->send(port, {.to = there, .part = {{&piece, 1}, 8}}, name), Status::ok);
  }
  bool wait() { return core->wait(port, base::MonotonicClock::now() + kPatience) && core->next_event(port, last); }
  void poll_for(base::Duration time) {
    for (const auto until = base::MonotonicClock::now() + time; base::MonotonicClock::now() < until;) core->progress();
  }

  std::shared_ptr<engine::Core> core;
  engine::PortHandle port;
  std::array<std::byte, 8> bytes{};
  iovec piece{};
  engine::Completion last;
};

/// Waits until a thread of this process sleeps in ppoll(), as the kernel tells it.
bool wait_until_asleep(pid_t thread) {
  const std::string file = "/proc/self/task/" + std::to_string(thread) + "/syscall";
  for (const auto end = base::MonotonicClock::now() + kPatience; base::MonotonicClock::now() < end;) {
    int call = -1;
    if (std::ifstream(file) >> call && call == SYS_ppoll) return true;
    std::this_thread::sleep_for(100us);
  }
  return false;
}

TEST(EmbeddedWait, WhoPolledSteadilyAndThenSleepsIsWoken) {
  Node near("127.0.0.1"), far("127.0.0.2");
  for (int round = 0; round < 2; ++round) {
    far.post();
    far.poll_for(30ms);
    std::jthread sender([&, sleeper = ::gettid()] {
      EXPECT_TRUE(wait_until_asleep(sleeper));
      near.send(far);
    });
    EXPECT_TRUE(far.wait());
    sender.join();
    EXPECT_TRUE(near.wait());
  }
}

TEST(EmbeddedWait, WhoPolledSteadilyAndThenLeavesIsStoodInFor) {
  Node near("127.0.0.1"), far("127.0.0.2");
  for (int round = 0; round < 2; ++round) {
    far.post();
    far.poll_for(30ms);
    near.send(far);
    EXPECT_TRUE(near.wait()) << "nobody acknowledged it";
    EXPECT_TRUE(far.wait());
  }
}

// After a poll in vain a wait that may not poll sleeps at once. What has arrived in between must end the sleep.
TEST(EmbeddedWait, WhatArrivesBetweenAPollAndASleepIsNotMissed) {
  for (const char* path : {"udp", "shm"}) {
    Node near("127.0.0.1", path), far("127.0.0.2", path, "sleep");
    for (int round = 0; round < 20; ++round) {
      far.post();
      while (far.core->progress()) {
      }
      near.send(far);
      const auto before = base::MonotonicClock::now();
      EXPECT_TRUE(far.wait()) << path;
      EXPECT_TRUE(near.wait()) << path;
      EXPECT_LT(base::MonotonicClock::now() - before, kPatience) << path;
    }
  }
}

}  // namespace
}  // namespace fairlead::embedded
