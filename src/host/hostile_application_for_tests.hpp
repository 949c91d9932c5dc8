#pragma once
// A malicious application of a host engine, which writes anything into its shared memory and sends any call, and a
// fixture with a well-behaved one beside it.

#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <thread>

#include "host/host_core.hpp"
#include "host/host_for_tests.hpp"

namespace fairlead::host {

/// A malicious application that uses the host engine without our library.
class Hostile {
 public:
  static constexpr auto kPatience = std::chrono::seconds(10);  // ends a failing test only
  static constexpr std::uint64_t kBytes = Layout::head_bytes() + (1 << 20);

  /// Shares `bytes` with the host engine.
  explicit Hostile(const std::string& file, std::uint64_t bytes = kBytes)
      : bytes_(bytes), name_(shm::Name::of_file(file).value()) {}

  shm::Socket connect() { return shm::Socket::connect(name_, users_).value(); }
  Result<Answered> attach(const Call& call, int memory) {
    socket_ = connect();
    return make_call(socket_, call, std::span<const int>(&memory, memory >= 0 ? 1 : 0));
  }
  static Call attach_call(std::uint64_t bytes) {
    return {.kind = static_cast<std::uint32_t>(Call::Kind::attach),
            .memory_bytes = bytes,
            .address = to_plain(base::SocketAddress::from_ip("127.0.0.1", 0).value())};
  }
  /// Attaches with valid memory and opens a port, as a well-behaved application does.
  void settle() {
    arena_ = shm::Arena::create(Layout::head_bytes(), bytes_).value();
    secret_ = attach(attach_call(bytes_), arena_.descriptor()).value().answer.application;
    memory_.emplace(std::span(arena_.head() + Layout::requests(), Layout::requests_bytes()));
    requests_.emplace(queue::Producer::attach(*memory_).value());
    events_.emplace(make_events(0));
    ASSERT_TRUE(opens_port());
  }
  /// Opens a port. Waits until one that was detached before has given it back.
  bool opens_port() {
    const auto end = base::MonotonicClock::now() + kPatience;
    do {
      port_ = connect();
      if (make_call(port_, open_call(secret_))) return true;
      std::this_thread::yield();
    } while (base::MonotonicClock::now() < end);
    return false;
  }
  queue::Consumer make_events(std::uint32_t port) {
    return queue::Consumer::create({arena_.head() + Layout::events(port), Layout::events_bytes()},
                                   {.element_bytes = sizeof(Event), .elements = 65})
        .value();
  }
  /// Returns the next event of a queue. Fails the test after kPatience.
  static Event next_event(queue::Consumer& events) {
    Event event;
    const auto end = base::MonotonicClock::now() + kPatience;
    const std::byte* element = events.get();
    for (; element == nullptr && base::MonotonicClock::now() < end; element = events.get()) std::this_thread::yield();
    if (element == nullptr) {
      ADD_FAILURE() << "no event";
    } else {
      std::memcpy(&event, element, sizeof event);
    }
    return event;
  }
  static Call open_call(std::uint64_t secret, std::uint32_t index = 0) {
    return {.kind = static_cast<std::uint32_t>(Call::Kind::open_port),
            .index = index,
            .number = 666 + index,
            .application = secret};
  }
  void ask(const Request& request) {
    std::byte* element = requests_->pnext();
    while (element == nullptr && !is_detached()) element = requests_->pnext();
    if (element == nullptr) return;
    std::memcpy(element, &request, sizeof request);
    requests_->put();
    socket_.nudge();
  }
  /// Returns whether the host engine has closed our connection.
  bool is_detached() {
    std::byte unread[8];
    const auto letter = socket_.receive(unread);
    return letter && letter->bytes == 0;
  }
  /// Fails the test after kPatience.
  void wait_until_detached() {
    for (const auto end = base::MonotonicClock::now() + kPatience; !is_detached(); std::this_thread::yield())
      if (base::MonotonicClock::now() > end) return ADD_FAILURE() << "still attached", void();
  }
  Request good() const {
    return {.operation = 3,
            .offset = Layout::head_bytes(),
            .length = 64,
            .size_min = 1,
            .messages_max = 1,
            .kind = static_cast<std::uint8_t>(Request::Kind::receive)};
  }
  std::span<std::byte> all() { return {arena_.head(), bytes_}; }
  std::uint64_t secret() const { return secret_; }
  shm::Socket& socket() { return socket_; }
  shm::Socket& port() { return port_; }
  queue::Consumer& events() { return *events_; }

 private:
  const std::uint64_t bytes_;
  shm::Name name_;
  shm::Users users_;
  shm::Socket socket_, port_;
  shm::Arena arena_;
  std::optional<OneSegment> memory_;
  std::optional<queue::Producer> requests_;
  std::optional<queue::Consumer> events_;
  std::uint64_t secret_ = 0;
};

class HostileApplication : public ::testing::Test {
 protected:
  void SetUp() override {
    good_ = HostCore::attach(host_.file(), base::SocketAddress::from_ip("127.0.0.1", 0).value(), {}).value();
    good_port_ = good_->open_port(1).value();
    ASSERT_EQ(good_->reserve_events(good_port_, 2), Status::ok);
  }
  /// Expects that another application can send itself a message.
  void expect_service() {
    std::uint64_t sent = ++sent_, got = 0;
    const iovec from{&sent, 8}, to{&got, 8};
    engine::OperationHandle operation;
    ASSERT_EQ(good_->post_receive(good_port_, {.memory = {&to, 1}, .size_min = 8, .cookie = 1}, operation), Status::ok);
    ASSERT_EQ(good_->send(good_port_, {.to = {good_->address(), 1}, .part = {{&from, 1}, 8, 2}}, operation),
              Status::ok);
    engine::Completion completion;
    for (int i = 0; i < 2; ++i) {
      while (!good_->next_event(good_port_, completion)) good_->wait(good_port_, base::kNever);
      ASSERT_EQ(completion.status, Status::ok);
    }
    ASSERT_EQ(got, sent_);
  }

  HostForTests host_;
  std::shared_ptr<HostCore> good_;
  engine::PortHandle good_port_;
  std::uint64_t sent_ = 0;
};

}  // namespace fairlead::host
