#pragma once
// An endpoint: where messages come to, and where they are sent from.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include <fairlead/am/handler.hpp>
#include <fairlead/am/name.hpp>
#include <fairlead/am/typed.hpp>
#include <fairlead/error.hpp>

namespace fairlead::am {

class Bundle;
struct EndpointState;

/// Made and owned by its bundle (Bundle::add_endpoint).
class Endpoint {
 public:
  ~Endpoint();
  Endpoint(const Endpoint&) = delete;
  Endpoint& operator=(const Endpoint&) = delete;

  Name name() const;
  Bundle& bundle() const;

  // ---- what may come in; takes effect for later arrivals

  void set_tag(const Tag& tag);
  Tag tag() const;
  /// Memory that long messages may write, by offset from its start; nothing writes to the one before any more when this
  /// returns. Base null with a length means addresses from 0 on.
  void set_segment(void* base, std::uint64_t length);
  std::span<std::byte> segment() const;

  /// `invalid`: index 0, which is the error handler's, or null. Messages that have not the shape go back.
  [[nodiscard]] Status set_handler(std::uint8_t index, Handler handler, void* context = nullptr,
                                   HandlerShape shape = {});
  /// The first free index from 1 on; no_memory if there is none.
  [[nodiscard]] Status set_handler_any(std::uint8_t& index, Handler handler, void* context = nullptr);
  void set_error_handler(ErrorHandler handler, void* context = nullptr);
  /// A function of its argument types (typed.hpp): set_typed<&on_sum>(3).
  template <auto Function>
  [[nodiscard]] Status set_typed(TypedIndex<typename Typed<Function>::Arguments> index) {
    return set_handler(index.value, &Typed<Function>::call, nullptr, Typed<Function>::kShape);
  }

  // ---- peers

  /// 256 at first. `invalid`: beyond kTranslationsMax; in_use: one beyond the new size is mapped.
  [[nodiscard]] Status set_translations(std::uint32_t count);
  std::uint32_t translations() const;
  /// `invalid`: out of range; in_use: is mapped.
  [[nodiscard]] Status map(std::uint32_t index, const Name& name, std::uint64_t key);
  [[nodiscard]] Status map_any(std::uint32_t& index, const Name& name, std::uint64_t key);
  /// Requests that are outstanding end as if their replies were lost. not_available: is not mapped.
  Status unmap(std::uint32_t index);
  Status set_translation_key(std::uint32_t index, std::uint64_t key);
  /// not_available: not mapped; invalid: out of range.
  [[nodiscard]] Status translation(std::uint32_t index, Name& name, std::uint64_t& key) const;
  /// One line of what is known of the process behind an index: when it was last heard, why it is gone. For a report.
  std::string describe(std::uint32_t index) const;
  /// Most requests outstanding to one peer, 1 to kDepthMax.
  Status set_depth(unsigned depth);
  unsigned depth() const;
  /// Requests that have not been replied to, to all peers.
  std::size_t outstanding() const;
  /// Requests so far that came back with Refusal::left.
  std::uint64_t requests_to_left() const;

  // ---- requests; they wait for a credit, and run handlers meanwhile
  //
  // ok; invalid: arguments, sizes; not_available: not mapped; bad_state: in a handler. Later failures come to handler
  // 0.

  [[nodiscard]] Status request(std::uint32_t to, std::uint8_t handler, std::span<const Argument> arguments);
  [[nodiscard]] Status request_medium(std::uint32_t to, std::uint8_t handler, std::span<const std::byte> data,
                                      std::span<const Argument> arguments);
  [[nodiscard]] Status request_long(std::uint32_t to, std::uint64_t offset, std::uint8_t handler,
                                    std::span<const std::byte> data, std::span<const Argument> arguments);
  /// Answers `again` rather than wait. The data is not copied: it stays the library's until the reply, or until the
  /// request comes back.
  [[nodiscard]] Status request_long_async(std::uint32_t to, std::uint64_t offset, std::uint8_t handler,
                                          std::span<const std::byte> data, std::span<const Argument> arguments);
  /// Fetches `length` bytes at `source_offset` of the peer's segment to `offset` of our own, then runs our handler
  /// with them, and with these arguments.
  [[nodiscard]] Status get(std::uint32_t to, std::uint64_t source_offset, std::uint8_t handler, std::uint64_t offset,
                           std::uint64_t length, std::span<const Argument> arguments, bool is_async = false);

  /// The same with a typed handler: values of its argument types, checked by the compiler.
  template <typename... Parameters>
  [[nodiscard]] Status request(std::uint32_t to, TypedIndex<ArgumentTypes<false, Parameters...>> handler,
                               const std::type_identity_t<Parameters>&... values) {
    return request(to, handler.value, PackedArguments<Parameters...>(values...).words());
  }
  template <typename... Parameters>
  [[nodiscard]] Status request_medium(std::uint32_t to, TypedIndex<ArgumentTypes<true, Parameters...>> handler,
                                      std::span<const std::byte> data,
                                      const std::type_identity_t<Parameters>&... values) {
    return request_medium(to, handler.value, data, PackedArguments<Parameters...>(values...).words());
  }
  template <typename... Parameters>
  [[nodiscard]] Status request_long(std::uint32_t to, std::uint64_t offset,
                                    TypedIndex<ArgumentTypes<true, Parameters...>> handler,
                                    std::span<const std::byte> data,
                                    const std::type_identity_t<Parameters>&... values) {
    return request_long(to, offset, handler.value, data, PackedArguments<Parameters...>(values...).words());
  }

 private:
  friend class Bundle;
  friend struct EndpointState;
  explicit Endpoint(EndpointState* state) : state_(state) {}
  EndpointState* state_;
};

/// Replies to a typed handler.
template <typename... Parameters>
[[nodiscard]] Status reply(Token& token, TypedIndex<ArgumentTypes<false, Parameters...>> handler,
                           const std::type_identity_t<Parameters>&... values) {
  return token.reply(handler.value, PackedArguments<Parameters...>(values...).words());
}
template <typename... Parameters>
[[nodiscard]] Status reply_medium(Token& token, TypedIndex<ArgumentTypes<true, Parameters...>> handler,
                                  std::span<const std::byte> data, const std::type_identity_t<Parameters>&... values) {
  return token.reply_medium(handler.value, data, PackedArguments<Parameters...>(values...).words());
}

}  // namespace fairlead::am
