#pragma once
// What a handler receives, and how it replies.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include <fairlead/am/name.hpp>
#include <fairlead/error.hpp>

namespace fairlead::am {

class Endpoint;
struct Delivered;

inline constexpr unsigned kArgumentsMax = 16;
inline constexpr unsigned kHandlers = 256;
inline constexpr std::size_t kMaxMedium = 65000;               ///< bytes
inline constexpr std::size_t kMaxLong = std::size_t{1} << 30;  ///< bytes
inline constexpr unsigned kDepthMax = 1024;                    ///< outstanding requests to one peer
inline constexpr unsigned kDepthDefault = 128;
inline constexpr std::uint32_t kTranslationsMax = 1U << 20;

using Argument = std::int32_t;

enum class Size : std::uint8_t { brief, medium, large };  ///< short, medium and long of AM-2

struct Message {
  Size size = Size::brief;
  bool is_request = true;
  std::span<const Argument> arguments;
  std::span<std::byte> data;  ///< medium: aligned to 8 bytes; long: its place in the segment
};

/// The message that a handler handles. Valid until the handler returns.
class Token {
 public:
  Endpoint& endpoint() const;
  Name source() const;
  /// Index of the source in the endpoint's translations; false if the source is not mapped.
  bool source_index(std::uint32_t& index) const;
  /// The key that the message was sent with.
  std::uint64_t tag() const;

  /// Call it at most once, in the handler of a request. Never blocks. `bad_state`: a reply was already sent, the
  /// message is not a request, or the handler has returned. invalid: arguments or sizes exceed the limits.
  [[nodiscard]] Status reply(std::uint8_t handler, std::span<const Argument> arguments);
  [[nodiscard]] Status reply_medium(std::uint8_t handler, std::span<const std::byte> data,
                                    std::span<const Argument> arguments);
  [[nodiscard]] Status reply_long(std::uint64_t offset, std::uint8_t handler, std::span<const std::byte> data,
                                  std::span<const Argument> arguments);

 private:
  friend struct Delivered;
  explicit Token(Delivered& delivered) : delivered_(delivered) {}
  Delivered& delivered_;
};

/// A handler as in AM-2: one function type for all arguments. `context` is the pointer given at registration.
using Handler = void (*)(void* context, Token& token, const Message& message);

/// The arguments that a handler accepts. A message of another shape is refused with `bad_arguments`.
struct HandlerShape {
  static constexpr std::uint8_t kAny = 0xFF;
  std::uint8_t words = kAny;  ///< arguments
  bool has_data = false;      ///< true: medium or long; false: short. Ignored if `words` is kAny

  constexpr bool accepts(std::size_t its_words, Size size) const {
    return words == kAny || (words == its_words && has_data == (size != Size::brief));
  }
};

/// Why a message was returned. AM-2 defines the numbers.
enum class Refusal : std::uint8_t {
  bad_arguments = 1,
  bad_entry = 2,
  bad_tag = 3,          ///< the endpoint does not accept messages with this key
  bad_handler = 4,      ///< the endpoint has no such handler
  bad_segment = 5,      ///< a long message to an endpoint without a segment
  bad_length = 6,       ///< not all of a long message lies inside the segment
  bad_endpoint = 7,     ///< that engine has no such endpoint
  congestion = 8,       ///< no reply in time, or no memory at the other engine
  unreachable = 9,      ///< the other engine was not found, became silent, ended or restarted
  reply_rejected = 10,  ///< the peer refused this endpoint's reply
  left = 11,            ///< the other engine announced its end and ended; not an error, and not a code of AM-2
};

/// "no such handler is registered there".
std::string_view explain(Refusal refusal) noexcept;

/// The kind of a returned message. AM-2 defines the numbers.
enum class Operation : std::uint8_t { request = 1, request_medium, request_long, reply, reply_medium, reply_long };

/// A message that was returned to its sender. Data and arguments are valid until the handler returns; those of a
/// rejected reply are empty.
struct Returned {
  Refusal refusal;
  Operation operation;
  std::uint32_t translation = 0;  ///< requests: the index it was sent to
  std::uint8_t handler = 0;
  std::span<const Argument> arguments;
  std::span<const std::byte> data;
};

/// Handler 0. The default prints a line and ends the process; it ignores Refusal::left.
using ErrorHandler = void (*)(void* context, Endpoint& endpoint, const Returned& returned);

}  // namespace fairlead::am
