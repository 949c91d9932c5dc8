#pragma once
// The protocol between the processes of a job and its console: frames over TCP, each with a length, a kind and a
// number. A sender must show the job's secret before anything else is accepted.

#include <netinet/in.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/file_descriptor.hpp"

namespace fairlead::amudp {

enum class Frame : std::uint8_t {
  hello = 1,  // worker: number = wanted rank or -1; payload: the secret, then its PID
  start,      // console: number = rank; payload: StartInfo and the shared environment
  gather,     // worker: its part; console: all parts in the order of ranks
  exit,       // worker: end the job with this exit code; console: end now; payload: the reason, if no rank asked for it
  beat,       // worker: is alive; number: gathers it has completed
};

struct FrameHead {
  std::uint32_t length = 0;  // of the payload
  Frame kind = Frame::beat;
  std::uint8_t reserved[3] = {};
  std::int32_t number = 0;
};
static_assert(sizeof(FrameHead) == 12);

struct StartInfo {
  std::uint64_t job = 0;
  std::uint32_t processes = 0;
  std::int32_t depth = 0;
};

inline constexpr std::size_t kSecretText = 32;                        // hexadecimal digits
inline constexpr std::uint32_t kFrameMax = std::uint32_t{256} << 20;  // bytes

struct Received {
  FrameHead head;
  std::vector<std::byte> payload;
};

/// The console's address, for example "1.2.3.4:5678:SECRET".
struct JobAddress {
  sockaddr_in where{};
  std::string secret;
  static std::optional<JobAddress> parse(std::string_view text);
  std::string to_string() const;
};

std::string make_secret();
std::string ip_text(const sockaddr_in& address);
/// Disables Nagle's algorithm, and enables keep-alive probes, so that a dead host is noticed within 5 s.
void set_up_connection(int descriptor);

/// The payload of a frame for several receivers, stored once.
using Payload = std::shared_ptr<const std::vector<std::byte>>;

/// One end of a connection. Reads do not wait. Frames that the other end does not read are queued here.
class Connection {
 public:
  /// Most bytes that may be queued: the longest frame, and some smaller ones.
  static constexpr std::size_t kWaitingMax = kFrameMax + (std::size_t{1} << 20);

  explicit Connection(base::FileDescriptor socket, std::size_t waiting_max = kWaitingMax)
      : descriptor_(std::move(socket)), waiting_max_(waiting_max) {}
  /// Retries for 10 s, because the other end may not listen yet. Returns nullopt with errno on failure.
  static std::optional<Connection> open(const sockaddr_in& to);
  static std::optional<Connection> open_once(const sockaddr_in& to);

  int descriptor() const { return descriptor_.get(); }
  void close() { descriptor_.reset(); }
  /// Sends what it can at once, and queues the rest for flush(). Returns false if the connection has ended or too much
  /// is queued.
  bool queue(Frame kind, std::int32_t number, const Payload& payload = nullptr);
  /// Sends queued bytes without waiting. Returns false if the connection has ended.
  bool flush();
  bool has_outgoing() const { return !outgoing_.empty(); }
  bool is_overfull() const { return is_overfull_; }
  /// Does the same as queue(), and waits until everything is sent.
  bool send(Frame kind, std::int32_t number, std::span<const std::byte> payload = {});
  /// Reads once without waiting. Returns false at the end of the connection.
  bool read_some();
  /// Returns the next complete frame, if there is one. A frame longer than `length_max` breaks the connection
  /// (is_broken).
  std::optional<Received> next(std::uint32_t length_max = kFrameMax);
  bool is_broken() const { return is_broken_; }
  sockaddr_in own_address() const;
  /// Returns whether the other end is on this host, so nobody can listen on the network.
  bool stays_on_host() const;

 private:
  struct Outgoing {
    FrameHead head;
    Payload payload;       // null: none
    std::size_t sent = 0;  // bytes, of head and payload together
    std::size_t size() const { return sizeof head + head.length; }
  };

  base::FileDescriptor descriptor_;
  std::size_t waiting_max_;
  bool is_broken_ = false, is_overfull_ = false;
  std::vector<std::byte> taken_;
  std::deque<Outgoing> outgoing_;
  std::size_t outgoing_bytes_ = 0;  // bytes in outgoing_ that are not sent
};

}  // namespace fairlead::amudp
