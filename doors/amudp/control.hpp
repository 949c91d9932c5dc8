#pragma once
// The words between the processes of a job and its console: frames over TCP, each with a length, a kind and a number.
// Nobody is heard before it has shown the job's secret.

#include <netinet/in.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace fairlead::amudp {

enum class Frame : std::uint8_t {
  hello = 1,  // worker: number = wanted rank or -1; payload: the secret, then its pid
  start,      // console: number = rank; payload: StartInfo and the environment
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

/// One end of a connection. Sends block; reads take what is there.
class Connection {
 public:
  explicit Connection(int descriptor) : descriptor_(descriptor) {}
  Connection(Connection&& other) noexcept
      : descriptor_(std::exchange(other.descriptor_, -1)), taken_(std::move(other.taken_)) {}
  Connection& operator=(Connection&&) = delete;
  ~Connection();
  /// Within 10 s; none: errno tells.
  static std::optional<Connection> open(const sockaddr_in& to);

  int descriptor() const { return descriptor_; }
  bool send(Frame kind, std::int32_t number, std::span<const std::byte> payload = {});
  /// Reads once without waiting; false at the end of the connection.
  bool read_some();
  /// The next whole frame, if there is one; `length_max`: what is longer ends the connection (is_broken).
  std::optional<Received> next(std::uint32_t length_max = kFrameMax);
  bool is_broken() const { return is_broken_; }
  sockaddr_in own_address() const;

 private:
  bool send_all(std::span<const std::byte> bytes, int flags);

  int descriptor_;
  bool is_broken_ = false;
  std::vector<std::byte> taken_;
};

}  // namespace fairlead::amudp
