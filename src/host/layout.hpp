#pragma once
// What an application shares with the host engine: one sealed memfd of the application, mapped whole by both (the
// picture: docs/host.md).
//
//   page | requests | events of port 0 | events of port 1 | ... | memory of buffers
//
// The host engine consumes the requests and produces the events. It believes nothing that it reads here: a request is
// copied once, then checked; its own state lies in its own memory.

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "queue/layout.hpp"
#include "queue/waiter.hpp"

namespace fairlead::host {

inline constexpr std::uint64_t kVersion = 2;
inline constexpr std::uint32_t kPortsMax = 256;         // of one application at one engine
inline constexpr std::uint32_t kOperationsMax = 65536;  // of one application at one engine, pending
inline constexpr std::uint32_t kEventsMax = 65536;      // of one port, reserved
inline constexpr std::uint32_t kRequestsMax = 1024;     // in the ring
inline constexpr std::uint32_t kMessagesInReceiveMax = 65536;

/// An address as both sides write it.
struct PlainAddress {
  std::array<std::uint8_t, 16> ip{};
  std::uint32_t scope = 0;
  std::uint16_t port = 0;
  std::uint16_t unused = 0;
};

/// What an application asks for, one element of the ring.
struct Request {
  enum class Kind : std::uint8_t { receive, send, expose, put, get, cancel };
  static constexpr std::uint8_t kIsConfirmed = 1;  // send: told whether a buffer took it
  static constexpr std::uint8_t kIsWritable = 2;   // expose: for a put, not for a get

  std::uint64_t operation = 0;           // the application's name of it: index, and generation in the upper half
  std::uint64_t offset = 0, length = 0;  // its memory, in the shared one
  std::uint64_t epoch = 0, key = 0;      // put, get: what the descriptor says
  std::uint64_t size_min = 0;            // receive
  PlainAddress to{};                     // send, put, get: the engine
  std::uint32_t to_port = 0;             // and the port there
  std::uint32_t messages_max = 0;        // receive
  std::uint16_t port = 0;                // index of the application's own
  std::uint8_t kind = 0;
  std::uint8_t flags = 0;
  std::uint32_t unused = 0;
};
static_assert(std::is_trivially_copyable_v<Request> && sizeof(Request) == 88);

/// What became of an operation, one element of a port's event queue.
struct Event {
  static constexpr std::uint8_t kIsFinal = 1;

  std::uint64_t operation = 0;
  std::uint64_t length = 0, offset = 0;
  std::int64_t time_ns = 0;
  PlainAddress source{};
  std::uint32_t source_port = 0;
  std::uint8_t status = 0;
  std::uint8_t flags = 0;
  std::uint16_t unused = 0;
};
static_assert(std::is_trivially_copyable_v<Event> && sizeof(Event) == 64);

/// What the host engine tells of requests that somebody waits for.
struct ReplyCell {
  queue::SleepFlag caller;               // whoever sleeps for it
  std::atomic<std::uint64_t> served{0};  // requests that have reached the engine; release, after the other two
  // The answer to the last one that has one (expose, cancel). One such request is under way at a time.
  std::atomic<std::uint64_t> status{0}, key{0};
};

struct PortPage {
  queue::SleepFlag sleeper;                                              // the application's
  alignas(queue::kLinePairBytes) std::atomic<std::uint64_t> dropped{0};  // messages that found no buffer
};

struct SharedPage {
  queue::SleepFlag host;  // the host engine's, while it does not look at the requests
  ReplyCell reply;
  PortPage ports[kPortsMax];
};

/// Where each part lies, in bytes from the start.
class Layout {
 public:
  static constexpr std::uint64_t requests() { return whole_pages(sizeof(SharedPage)); }
  static constexpr std::uint64_t requests_bytes() {
    return whole_pages(queue::segment_bytes(sizeof(Request), kRequestsMax + 1));
  }
  static constexpr std::uint64_t events(std::uint32_t port) {
    return requests() + requests_bytes() + port * events_bytes();
  }
  static constexpr std::uint64_t events_bytes() {
    return whole_pages(queue::segment_bytes(sizeof(Event), kEventsMax + 1, kGrowthsMost));
  }
  /// Buffers lie from here on.
  static constexpr std::uint64_t head_bytes() { return events(kPortsMax); }

 private:
  static constexpr std::uint32_t kGrowthsMost = 64;  // each by half at least
  static constexpr std::uint64_t whole_pages(std::uint64_t bytes) { return (bytes + 4095) / 4096 * 4096; }
};

}  // namespace fairlead::host
