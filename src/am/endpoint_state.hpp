#pragma once
// EndpointState is the object behind an Endpoint. Files: endpoint_tables (handlers, translations, tag, segment),
// endpoint_send (requests and replies), endpoint_receive (arrivals). The bundle's lock guards everything.

#include <array>
#include <mutex>
#include <unordered_map>
#include <vector>

#include <fairlead/am/bundle.hpp>
#include <fairlead/am/endpoint.hpp>

#include "am/domain_state.hpp"
#include "am/exchange.hpp"
#include "am/word.hpp"

namespace fairlead::am {

/// A mutex that does nothing while the bundle is sequential. It also does nothing in the child of a fork(), where its
/// owner may not exist.
class BundleLock {
 public:
  explicit BundleLock(bool is_real) : is_real_(is_real) {}
  void lock() {
    if (is_real_ && !mark_.is_inherited()) mutex_.lock();
  }
  void unlock() {
    if (is_real_ && !mark_.is_inherited()) mutex_.unlock();
  }
  /// Turns locking on. No other thread may use the bundle yet.
  void make_real() { is_real_ = true; }

 private:
  std::mutex mutex_;
  bool is_real_;
  const base::ProcessMark mark_;
};

struct BundleState;
struct EndpointState;

/// An arrival while its handler runs.
struct Delivered {
  EndpointState& endpoint;
  engine::Arrival& arrival;
  bool may_reply = false;
  Token token{*this};
};

struct Request {
  std::uint32_t to;
  Word word;
  std::span<const std::byte> data;
  std::span<const Argument> arguments;
  std::uint64_t offset = 0;
  bool is_async = false;
  std::uint64_t source_offset = 0, length = 0;  // of a get
};

struct EndpointState {
  using Lock = std::unique_lock<BundleLock>;

  EndpointState(BundleState& bundle, engine::PortHandle port, std::uint32_t number);
  ~EndpointState();

  bool is_inherited() const;

  // endpoint_tables.cpp
  Name name() const;
  bool find_source(const engine::RemotePort& source, std::uint32_t& index) const;
  Status map(std::uint32_t index, const Name& peer, std::uint64_t key);
  Status unmap(std::uint32_t index);
  Status resize(std::uint32_t count);

  // endpoint_send.cpp
  Status send(Lock& lock, const Request& request);
  Status reply(Delivered& delivered, Word word, std::uint64_t offset, std::span<const std::byte> data,
               std::span<const Argument> arguments);
  /// Sends a message that needs no reply; queues it if the engine has no room now. `is_copied` means that the data must
  /// be copied.
  void send_back(engine::ActiveMessage message, std::span<const std::byte> head, std::span<const std::byte> data,
                 bool is_copied);
  Status submit(std::uint32_t slot);
  bool reserve_event();
  void close(std::uint32_t slot);
  void release_if_over(std::uint32_t slot);
  void give_back(Lock& lock, std::uint32_t slot, Refusal refusal);
  void send_held(Lock& lock);

  // endpoint_receive.cpp
  /// Handles completions of sends, lost peers, and messages to send again. Cheap when there is nothing to do.
  void look_after(Lock& lock);
  /// Handles timeouts: requests without a reply, and silent peers.
  void check_time(Lock& lock, base::Instant now);
  /// Runs the handler of the first complete arrival. Returns false if there is none.
  bool serve_one(Lock& lock);
  void serve_request(Lock& lock, engine::Arrival& arrival);
  void serve_get(const engine::Arrival& arrival);
  void serve_reply(Lock& lock, engine::Arrival& arrival);
  void serve_returned(Lock& lock, const engine::Arrival& arrival);
  void refuse(const engine::Arrival& arrival, Status status);
  void tell_losses(Lock& lock);
  void give_back_failed(Lock& lock, std::uint64_t name, Status status);
  void call_error_handler(Lock& lock, const Returned& returned);

  /// Checks all invariants, and ends the process if one is violated. Slow: runs in debug builds, after each poll and at
  /// the end.
  void check();

  static constexpr std::size_t kHeldMax = 4096;  // above this, no further request is served

  struct Translation {
    bool is_used = false;
    engine::RemotePort peer;
    std::uint64_t key = 0;
    std::uint32_t outstanding = 0;
  };
  struct Registered {
    Handler handler = nullptr;
    void* context = nullptr;
    HandlerShape shape{};
  };
  struct RemotePortHash {
    base::SocketAddressHash hash;
    std::size_t operator()(const engine::RemotePort& its) const { return hash(its.engine) * 31 + its.port; }
  };

  BundleState* bundle;
  engine::Core& core;
  engine::ActivePorts& ports;
  engine::PortHandle port;
  std::uint32_t number;
  Endpoint face{this};

  Tag tag;
  engine::Segment segment;
  std::array<Registered, kHandlers> handlers;
  ErrorHandler error_handler;
  void* error_context = nullptr;
  std::vector<Translation> translations;
  std::unordered_map<engine::RemotePort, std::uint32_t, RemotePortHash> sources;
  unsigned depth = kDepthDefault;

  ExchangeTable exchanges;
  SendBuffers buffers;
  std::vector<std::uint64_t> held;  // names of messages to send later, or again
  std::uint32_t events_reserved = 0;
  std::uint32_t events_pending = 0;
  std::uint64_t losses_seen = 0;
  std::size_t outstanding = 0;
  std::uint64_t requests_to_left = 0;
  unsigned running = 0;  // handlers, in any thread
  base::Instant check_at{};
};

/// Returns whether this thread runs a handler. A handler must not send requests or poll.
bool is_in_handler();

}  // namespace fairlead::am
