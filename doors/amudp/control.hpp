#pragma once
// The words between the processes of a job and its console: frames over TCP, each with a length, a kind and a number.
// Nobody is heard before it has shown the job's secret.

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
  hello = 1,  // worker: number = wanted rank or -1; payload: the secret, then its pid
  start,      // console: number = rank; payload: StartInfo and what is told of the environment
  gather,     // worker: its part; console: all parts in the order of ranks
  exit,  // worker: end the job with this number as its code; console: end now; payload: why, if not by a rank's wish
  beat,  // worker: is alive; number: how many gathers it has done
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

/// Where a job is controlled: "1.2.3.4:5678:SECRET".
struct JobAddress {
  sockaddr_in where{};
  std::string secret;
  static std::optional<JobAddress> parse(std::string_view text);
  std::string to_string() const;
};

std::string make_secret();
std::string ip_text(const sockaddr_in& address);
/// Small frames go at once, and a host that is gone is noticed within 5 s.
void set_up_connection(int descriptor);

/// Of a frame that goes to several: kept once.
using Payload = std::shared_ptr<const std::vector<std::byte>>;

/// One end of a connection. Reads take what is there; what is sent waits here as long as the other end does not read.
class Connection {
 public:
  /// Bytes that may wait: the longest frame, and what is said beside it.
  static constexpr std::size_t kWaitingMax = kFrameMax + (std::size_t{1} << 20);

  explicit Connection(base::FileDescriptor socket, std::size_t waiting_max = kWaitingMax)
      : descriptor_(std::move(socket)), waiting_max_(waiting_max) {}
  /// Within 10 s, for the other end may not listen yet; none: errno tells.
  static std::optional<Connection> open(const sockaddr_in& to);
  static std::optional<Connection> open_once(const sockaddr_in& to);

  int descriptor() const { return descriptor_.get(); }
  void close() { descriptor_.reset(); }
  /// Sends what goes at once, and keeps the rest for flush(). False: the connection has ended, or too much waits.
  bool queue(Frame kind, std::int32_t number, const Payload& payload = nullptr);
  /// Sends what goes at once of what waits; false if the connection has ended.
  bool flush();
  bool has_outgoing() const { return !outgoing_.empty(); }
  bool is_overfull() const { return is_overfull_; }
  /// queue(), and waits until all has gone.
  bool send(Frame kind, std::int32_t number, std::span<const std::byte> payload = {});
  /// Reads once without waiting; false at the end of the connection.
  bool read_some();
  /// The next whole frame, if there is one; `length_max`: what is longer ends the connection (is_broken).
  std::optional<Received> next(std::uint32_t length_max = kFrameMax);
  bool is_broken() const { return is_broken_; }
  sockaddr_in own_address() const;
  /// Whether the other end is on this host, so that nobody else hears what is said.
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
  std::size_t outgoing_bytes_ = 0;  // in outgoing_, not sent
};

}  // namespace fairlead::amudp
