#pragma once
// What a handler gets.

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
  std::span<std::byte> data;  ///< aligned to 8 in a medium; of a long one, where it lies in the segment
};

/// The message that a handler was called for; valid until the handler returns.
class Token {
 public:
  Endpoint& endpoint() const;
  Name source() const;
  /// Index of the source in the endpoint's translations; false if it is not there.
  bool source_index(std::uint32_t& index) const;
  /// The key that the message was sent with.
  std::uint64_t tag() const;

  /// Once, in a handler of a request. Never blocks. `bad_state`: a reply was sent already, this is no request, or the
  /// handler has returned; invalid: arguments or sizes beyond the limits.
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

/// A handler of AM-2: one function for all arguments. `context` is what it was registered with.
using Handler = void (*)(void* context, Token& token, const Message& message);

/// What a handler takes. A message of another shape is refused with `bad_arguments`.
struct HandlerShape {
  static constexpr std::uint8_t kAny = 0xFF;
  std::uint8_t words = kAny;  ///< arguments
  bool has_data = false;      ///< medium or long, else short; looked at only where the words are told

  constexpr bool accepts(std::size_t its_words, Size size) const {
    return words == kAny || (words == its_words && has_data == (size != Size::brief));
  }
};

/// Why a message came back; the numbers are AM-2's.
enum class Refusal : std::uint8_t {
  bad_arguments = 1,
  bad_entry = 2,
  bad_tag = 3,          ///< the endpoint does not take messages of this key
  bad_handler = 4,      ///< no such handler is registered there
  bad_segment = 5,      ///< a long message to an endpoint without a segment
  bad_length = 6,       ///< not all of a long message lies inside the segment
  bad_endpoint = 7,     ///< no such endpoint at that engine
  congestion = 8,       ///< no answer, or no memory there, in time
  unreachable = 9,      ///< the other engine was not found, fell silent, ended or started anew
  reply_rejected = 10,  ///< our reply was not taken
  left = 11,            ///< the other engine has ended in order, as it said before; not an error, and no code of AM-2
};

/// "no such handler is registered there".
std::string_view explain(Refusal refusal) noexcept;

/// What kind of message came back; the numbers are AM-2's.
enum class Operation : std::uint8_t { request = 1, request_medium, request_long, reply, reply_medium, reply_long };

/// A message that came back to its sender. Data and arguments are valid until the handler returns; those of a rejected
/// reply are gone.
struct Returned {
  Refusal refusal;
  Operation operation;
  std::uint32_t translation = 0;  ///< of a request: where it was sent to
  std::uint8_t handler = 0;
  std::span<const Argument> arguments;
  std::span<const std::byte> data;
};

/// Handler 0. The one an endpoint begins with prints a line and ends the process, but for those who have left.
using ErrorHandler = void (*)(void* context, Endpoint& endpoint, const Returned& returned);

}  // namespace fairlead::am
