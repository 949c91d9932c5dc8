#pragma once
// An endpoint sends and receives messages.

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

  // ---- what the endpoint accepts; changes apply to later arrivals

  void set_tag(const Tag& tag);
  Tag tag() const;
  /// Memory that long messages may write to, by offset from its start. When this returns, no message writes to the
  /// previous segment any more. A null base with a length means addresses from 0 on.
  void set_segment(void* base, std::uint64_t length);
  std::span<std::byte> segment() const;

  /// `invalid`: the handler is null, or the index is 0, which is reserved for the error handler. Messages of another
  /// shape are returned to their sender.
  [[nodiscard]] Status set_handler(std::uint8_t index, Handler handler, void* context = nullptr,
                                   HandlerShape shape = {});
  /// Takes the first free index from 1 on. no_memory: none is free.
  [[nodiscard]] Status set_handler_any(std::uint8_t& index, Handler handler, void* context = nullptr);
  void set_error_handler(ErrorHandler handler, void* context = nullptr);
  /// Registers a function with typed arguments (typed.hpp): set_typed<&on_sum>(3).
  template <auto Function>
  [[nodiscard]] Status set_typed(TypedIndex<typename Typed<Function>::Arguments> index) {
    return set_handler(index.value, &Typed<Function>::call, nullptr, Typed<Function>::kShape);
  }

  // ---- peers

  /// Initially 256. `invalid`: above kTranslationsMax. in_use: an index beyond the new size is mapped.
  [[nodiscard]] Status set_translations(std::uint32_t count);
  std::uint32_t translations() const;
  /// `invalid`: the index is out of range. in_use: it is already mapped.
  [[nodiscard]] Status map(std::uint32_t index, const Name& name, std::uint64_t key);
  [[nodiscard]] Status map_any(std::uint32_t& index, const Name& name, std::uint64_t key);
  /// Outstanding requests end as if their replies were lost. not_available: the index is not mapped.
  [[nodiscard]] Status unmap(std::uint32_t index);
  [[nodiscard]] Status set_translation_key(std::uint32_t index, std::uint64_t key);
  /// not_available: the index is not mapped. invalid: it is out of range.
  [[nodiscard]] Status translation(std::uint32_t index, Name& name, std::uint64_t& key) const;
  /// One line for a report about the process behind an index: when it was last heard from, or why it is gone.
  std::string describe(std::uint32_t index) const;
  /// The maximum of outstanding requests to one peer, 1 to kDepthMax.
  [[nodiscard]] Status set_depth(unsigned depth);
  unsigned depth() const;
  /// Requests to all peers that have no reply yet.
  std::size_t outstanding() const;
  /// Requests so far that returned with Refusal::left.
  std::uint64_t requests_to_left() const;

  // ---- requests; they wait for a credit, and run handlers while they wait
  //
  // ok; invalid: arguments or sizes; not_available: the index is not mapped; bad_state: called in a handler. Later
  // failures are reported to handler 0.

  [[nodiscard]] Status request(std::uint32_t to, std::uint8_t handler, std::span<const Argument> arguments);
  [[nodiscard]] Status request_medium(std::uint32_t to, std::uint8_t handler, std::span<const std::byte> data,
                                      std::span<const Argument> arguments);
  [[nodiscard]] Status request_long(std::uint32_t to, std::uint64_t offset, std::uint8_t handler,
                                    std::span<const std::byte> data, std::span<const Argument> arguments);
  /// Returns `again` instead of waiting. The library does not copy the data: do not change it until the reply, or until
  /// the request is returned.
  [[nodiscard]] Status request_long_async(std::uint32_t to, std::uint64_t offset, std::uint8_t handler,
                                          std::span<const std::byte> data, std::span<const Argument> arguments);
  /// Copies `length` bytes from `source_offset` in the peer's segment to `offset` in this endpoint's segment. Then runs
  /// this endpoint's handler with the data and these arguments.
  [[nodiscard]] Status get(std::uint32_t to, std::uint64_t source_offset, std::uint8_t handler, std::uint64_t offset,
                           std::uint64_t length, std::span<const Argument> arguments, bool is_async = false);

  /// The same with a typed handler: the compiler checks the values against the handler's argument types.
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
