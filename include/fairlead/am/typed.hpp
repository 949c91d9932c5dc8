#pragma once
// Handlers as functions with typed arguments. The types are part of the index, so a request with other values does not
// compile:
//
//   void on_sum(Token&, std::int64_t a, float b);               // short
//   void on_text(Token&, std::span<std::byte> text, int line);  // medium or long
//   constexpr auto kSum = index_of<&on_sum>(3);
//   endpoint.set_typed<&on_sum>(kSum);
//   peer_endpoint.request(to, kSum, 5, 0.5F);
//
// Arguments are trivially copyable. Each takes whole words of 4 bytes; all together take at most 16 words. A message
// with another number of words, or with data for a handler that takes none, is returned to its sender with
// `bad_arguments`.

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <tuple>
#include <type_traits>

#include <fairlead/am/handler.hpp>

namespace fairlead::am {

template <bool HasData, typename... Parameters>
struct ArgumentTypes {};

/// The index of a handler with those arguments. Both sides must agree on index and arguments.
template <typename Arguments>
struct TypedIndex {
  std::uint8_t value;
};

template <typename T>
inline constexpr std::size_t kWordsOf = (sizeof(T) + sizeof(Argument) - 1) / sizeof(Argument);

/// Values as words.
template <typename... Parameters>
class PackedArguments {
  static_assert((std::is_trivially_copyable_v<Parameters> && ...), "arguments travel as plain bytes");
  static constexpr std::size_t kWords = (std::size_t{0} + ... + kWordsOf<Parameters>);
  static_assert(kWords <= kArgumentsMax, "the arguments of a message take at most 16 words: send the rest as data");

 public:
  explicit PackedArguments(const Parameters&... values) {
    std::size_t at = 0;
    ((std::memcpy(words_.data() + at, &values, sizeof values), at += kWordsOf<Parameters>), ...);
  }
  std::span<const Argument> words() const { return std::span(words_).first(kWords); }

 private:
  std::array<Argument, kWords == 0 ? 1 : kWords> words_{};
};

template <typename T>
T unpack_argument(std::span<const Argument> words, std::size_t& at) {
  T value;
  std::memcpy(&value, words.data() + at, sizeof value);
  at += kWordsOf<T>;
  return value;
}

/// Properties of a handler's type: whether it takes data, and its arguments.
template <typename Function>
struct Signature;

template <typename... Parameters>
struct Signature<void (*)(Token&, Parameters...)> {
  static constexpr bool kHasData = false;
  using Values = std::tuple<std::remove_cvref_t<Parameters>...>;
  using Arguments = ArgumentTypes<false, std::remove_cvref_t<Parameters>...>;
  static constexpr std::size_t kWords = (std::size_t{0} + ... + kWordsOf<std::remove_cvref_t<Parameters>>);
  static Values unpack(std::span<const Argument> words) {
    [[maybe_unused]] std::size_t at = 0;
    return Values{unpack_argument<std::remove_cvref_t<Parameters>>(words, at)...};
  }
};

template <typename... Parameters>
struct Signature<void (*)(Token&, std::span<std::byte>, Parameters...)> : Signature<void (*)(Token&, Parameters...)> {
  static constexpr bool kHasData = true;
  using Arguments = ArgumentTypes<true, std::remove_cvref_t<Parameters>...>;
};

template <auto Function>
struct Typed {
  using Its = Signature<decltype(Function)>;
  using Arguments = typename Its::Arguments;
  static constexpr HandlerShape kShape{static_cast<std::uint8_t>(Its::kWords), Its::kHasData};
  /// For messages of this shape only.
  static void call(void*, Token& token, const Message& message) {
    auto values = Its::unpack(message.arguments);
    if constexpr (Its::kHasData) {
      std::apply([&](auto&... unpacked) { Function(token, message.data, unpacked...); }, values);
    } else {
      std::apply([&](auto&... unpacked) { Function(token, unpacked...); }, values);
    }
  }
};

template <auto Function>
constexpr TypedIndex<typename Typed<Function>::Arguments> index_of(std::uint8_t value) {
  return {value};
}

}  // namespace fairlead::am
