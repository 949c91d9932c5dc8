#pragma once
// An engine on virtual time with any number of idle peers. It exchanges messages with one further peer. The idle peers
// were engines that sent one message and were destroyed without a close, so all remaining memory belongs to the one
// engine.

#include <malloc.h>

#include <memory>
#include <optional>

#include "base/ensure.hpp"
#include "bench/pipe.hpp"
#include "engine/engine.hpp"

namespace fairlead::bench {

/// An engine with one port, driven as its process would.
class Node {
 public:
  Node(std::uint32_t number, const engine::EngineOptions& options) {
    base::SocketAddress address;
    address.ip = {0,
                  0,
                  0,
                  0,
                  0,
                  0,
                  0,
                  0,
                  0,
                  0,
                  0xff,
                  0xff,
                  10,
                  static_cast<std::uint8_t>(number >> 16),
                  static_cast<std::uint8_t>(number >> 8),
                  static_cast<std::uint8_t>(number)};
    address.port = 20480;
    auto pipe = std::make_unique<Pipe>(address);
    pipe_ = pipe.get();
    engine_.emplace(std::move(pipe), address, options, number + 1, number + 7);
    const auto port = engine_->ports().open(kPort);
    ENSURE(port.has_value(), "{}", port.error().message);
    port_ = *port;
    ENSURE(engine_->ports().find(port_)->events->reserve(kEvents) == Status::ok, "no room for events");
    post_receive();
  }

  Pipe& pipe() { return *pipe_; }
  engine::RemotePort address() const { return {engine_->address(), kPort}; }
  std::uint64_t received() const { return received_; }
  std::uint64_t sent() const { return sent_; }
  std::size_t peers() const { return engine_->facts().peers.size(); }

  void send(const engine::RemotePort& to, base::Instant now) {
    const engine::Send message{.to = to, .part = {{&piece_, 1}, sizeof word_, kSend}};
    engine::OperationHandle operation;
    ENSURE(engine_->messages().send(port_, message, operation, now) == Status::ok, "a message was not taken");
  }
  void pass(base::Instant now) {
    if (pipe_->has_arrivals() || engine_->next_deadline() <= now) {
      engine_->progress(now);
      engine_->ports().notify_touched();
    }
  }
  void take_events() {
    while (const engine::Completion* event = engine_->ports().find(port_)->events->consume()) {
      ENSURE(event->status == Status::ok, "an operation ended as {}", to_string(event->status));
      if (event->cookie == kSend) ++sent_;
      if (event->cookie != kReceive) continue;
      ++received_;
      if (event->is_final) post_receive();
    }
  }

  base::Instant next_deadline() const { return engine_->next_deadline(); }

 private:
  static constexpr std::uint32_t kPort = 7, kEvents = 256, kMessagesInBuffer = 64;
  static constexpr std::uint64_t kSend = 1, kReceive = 2;

  void post_receive() {
    const engine::Receive receive{
        .memory = {&buffer_piece_, 1}, .size_min = 64, .messages_max = kMessagesInBuffer, .cookie = kReceive};
    engine::OperationHandle operation;
    ENSURE(engine_->messages().post_receive(port_, receive, operation) == Status::ok, "no receive buffer");
  }

  Pipe* pipe_ = nullptr;  // owned by the engine
  std::optional<engine::Engine> engine_;
  engine::PortHandle port_;
  std::uint64_t word_ = 0, received_ = 0, sent_ = 0;
  std::array<std::byte, 8192> buffer_{};
  iovec piece_{&word_, sizeof word_}, buffer_piece_{buffer_.data(), buffer_.size()};
};

class Crowd {
 public:
  /// The engine meets `idle` peers, which all fall quiet, and one more that stays.
  explicit Crowd(std::uint32_t idle) {
    engine::EngineOptions options;
    hub_ = std::make_unique<Node>(0, options);
    for (std::uint32_t i = 0; i < idle; ++i) {
      meet(i + 1, options);
      exchange(*peer_, *hub_);
      exchange(*hub_, *peer_);
    }
    meet(idle + 1, options);
    for (int i = 0; i < 64; ++i) exchange(*hub_, *peer_);
    pass_time(std::chrono::seconds(5));
    exchange(*hub_, *peer_);
  }

  /// Exchanges messages between the engine and its busy peer, one at a time.
  void exchange_messages(std::uint64_t count) {
    for (std::uint64_t i = 0; i < count; ++i) {
      pass_on(*hub_, *peer_);
      pass_on(*peer_, *hub_);
    }
  }

  /// Returns the bytes of heap that the engine holds. Destroys the engine.
  std::uint64_t measure_memory() {
    pass_time(std::chrono::seconds(5));
    const std::uint64_t before = heap_bytes();
    hub_.reset();
    return before - heap_bytes();
  }

 private:
  void meet(std::uint32_t number, const engine::EngineOptions& options) {
    hub_->pipe().join(nullptr);
    peer_ = std::make_unique<Node>(number, options);
    hub_->pipe().join(&peer_->pipe());
    peer_->pipe().join(&hub_->pipe());
  }

  static std::uint64_t heap_bytes() {
    const auto heap = mallinfo2();
    return heap.uordblks + heap.hblkhd;
  }

  void turn() {
    now_ += std::chrono::microseconds(1);
    hub_turn();
    peer_->pass(now_);
    peer_->take_events();
  }

  // Not inlined: callgrind counts these two functions by name.
  [[gnu::noinline]] void hub_turn() {
    hub_->pass(now_);
    hub_->take_events();
  }
  [[gnu::noinline]] void hub_send() { hub_->send(peer_->address(), now_); }

  /// Sends a message and waits for its acknowledgement.
  void exchange(Node& from, Node& to) {
    const std::uint64_t sent = from.sent();
    pass_on(from, to);
    for (int i = 0; from.sent() == sent; ++i) {
      ENSURE(i < kTurnsMax, "a message was not acknowledged");
      turn();
    }
  }

  /// Sends a message and waits for its arrival.
  void pass_on(Node& from, Node& to) {
    const std::uint64_t received = to.received();
    if (&from == hub_.get()) {
      hub_send();
    } else {
      from.send(to.address(), now_);
    }
    for (int i = 0; to.received() == received; ++i) {
      ENSURE(i < kTurnsMax, "a message did not arrive");
      turn();
    }
  }

  void pass_time(base::Duration time) {
    const base::Instant until = now_ + time;
    while (now_ < until) {
      const base::Instant next = std::min({hub_->next_deadline(), peer_->next_deadline(), until});
      now_ = std::max(now_, next - std::chrono::microseconds(1));
      turn();
    }
  }

  static constexpr int kTurnsMax = 1'000'000;
  base::Instant now_{std::chrono::seconds(1)};
  std::unique_ptr<Node> hub_, peer_;
};

}  // namespace fairlead::bench
