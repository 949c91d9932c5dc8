#pragma once
// The layout of the memory that an application shares with the host engine: one sealed memfd of the application, which
// both map completely (picture: docs/host.md).
//
//   page | requests | events of port 0 | events of port 1 | ... | memory of buffers
//
// The host engine consumes requests and produces events. It trusts nothing that it reads here: it copies a request
// once, then checks it. Its own state lies in private memory.

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "queue/layout.hpp"
#include "queue/waiter.hpp"

namespace fairlead::host {

inline constexpr std::uint64_t kVersion = 8;
inline constexpr std::uint32_t kPortsMax = 256;                           // per application and engine
inline constexpr std::uint32_t kOperationsMax = 65536;                    // pending, per application and engine
inline constexpr std::uint32_t kEventsMax = 65536;                        // reserved, per port
inline constexpr std::uint32_t kEventsOfAllMax = kPortsMax * kEventsMax;  // per application and engine
inline constexpr std::uint32_t kPortNumbersMax = 65536;  // from which a call lets the host engine choose one
inline constexpr std::uint32_t kRequestsMax = 1024;      // in the ring
inline constexpr std::uint32_t kKeysAhead = 32;          // of exposures, per port
inline constexpr std::uint32_t kMessagesInReceiveMax = 65536;

/// An address in the form that both sides use.
struct PlainAddress {
  std::array<std::uint8_t, 16> ip{};
  std::uint32_t scope = 0;
  std::uint16_t port = 0;
  std::uint16_t unused = 0;
};

/// An application's request: one element of the ring.
struct Request {
  enum class Kind : std::uint8_t {
    receive,
    send,
    expose,  // under the next key of the port's shelf
    put,
    get,
    cancel,
    give_keys,    // puts keys on the port's shelf
    active,       // an active message (active_request.hpp)
    activate,     // makes the port accept active messages; `offset`: its ActiveMemory
    set_access,   // from whom
    set_segment,  // `offset` and `length`: where placed messages go, or nowhere; `key`: its number
    forget,       // `epoch`: the name of a request whose answer is not wanted any more
    ask_peer,     // `to`: sends it an empty message
    leave,        // all active ports: their requests are returned with `canceled` from now on
  };
  static constexpr std::uint8_t kIsConfirmed = 1;  // send: reports whether a buffer took the message
  static constexpr std::uint8_t kIsWritable = 2;   // expose: for a put, not a get

  std::uint64_t operation = 0;           // the application's name for it: index, and generation in the upper half
  std::uint64_t offset = 0, length = 0;  // its memory, within the shared memory
  std::uint64_t epoch = 0, key = 0;      // put, get: from the descriptor
  std::uint64_t size_min = 0;            // of receive
  PlainAddress to{};                     // send, put, get, active: the target's engine
  std::uint32_t to_port = 0;             // and its port
  std::uint32_t messages_max = 0;        // of receive
  std::uint16_t port = 0;                // index of the application's port
  std::uint8_t kind = 0;
  std::uint8_t flags = 0;
  std::uint32_t status = 0;  // of active
};
static_assert(std::is_trivially_copyable_v<Request> && sizeof(Request) == 88);

/// The result of an operation: one element of a port's event queue.
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

/// The host engine's answer to requests that the application waits for.
struct ReplyCell {
  queue::SleepFlag caller;               // the waiting application's
  std::atomic<std::uint64_t> served{0};  // requests that are handled; released after status and key
  // The result of the last request that has one: cancel, give_keys, activate to leave. One is in progress at a time.
  std::atomic<std::uint64_t> status{0}, key{0};
};

/// Keys of exposures that the port gets in advance, so that an exposure need not wait for the host engine. The
/// application uses them in order, and the host engine replaces them.
struct KeyShelf {
  std::atomic<std::uint64_t> given{0};  // in total; the one with number n is at keys[n % kKeysAhead]
  std::array<std::atomic<std::uint64_t>, kKeysAhead> keys{};
};

struct PortPage {
  queue::SleepFlag sleeper;                                              // the application's
  alignas(queue::kLinePairBytes) std::atomic<std::uint64_t> dropped{0};  // messages that found no buffer
  alignas(queue::kLinePairBytes) KeyShelf keys;
};

struct SharedPage {
  queue::SleepFlag host;  // the host engine's, while it does not poll the requests
  ReplyCell reply;
  alignas(queue::kLinePairBytes) std::atomic<std::uint64_t> losses{0};  // peers that the engine has lost
  PortPage ports[kPortsMax];
};

/// The offset of each part, in bytes.
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
  /// The memory of buffers begins here.
  static constexpr std::uint64_t head_bytes() { return events(kPortsMax); }

 private:
  static constexpr std::uint32_t kGrowthsMost = 64;  // each by at least half
  static constexpr std::uint64_t whole_pages(std::uint64_t bytes) { return (bytes + 4095) / 4096 * 4096; }
};

}  // namespace fairlead::host
