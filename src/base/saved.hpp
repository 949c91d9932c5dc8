#pragma once
// Serialises state for the next program in this process (docs/host.md). Values are written in the order in which a
// structure's fields(archive) names them, in native byte order; a list is its length and its elements. The same
// function writes and reads, so the two cannot differ. A reader trusts nothing: it never reads beyond the end and
// accepts no list longer than the bytes left. is_good() tells whether all was there. The owner checks the values.

#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <expected>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <string.h>

#include <fairlead/error.hpp>

#include "base/socket_address.hpp"
#include "base/time.hpp"

namespace fairlead::base {

template <typename T>
concept SavedAsItIs = std::is_arithmetic_v<T> || std::is_enum_v<T>;

/// Wipes memory when it gives it back: the state may contain keys.
template <typename T>
struct WipingAllocator {
  using value_type = T;
  WipingAllocator() = default;
  template <typename Other>
  explicit WipingAllocator(const WipingAllocator<Other>&) {}
  T* allocate(std::size_t count) { return std::allocator<T>().allocate(count); }
  void deallocate(T* memory, std::size_t count) noexcept {
    ::explicit_bzero(memory, count * sizeof(T));
    std::allocator<T>().deallocate(memory, count);
  }
  bool operator==(const WipingAllocator&) const = default;
};
using SavedBytes = std::vector<std::byte, WipingAllocator<std::byte>>;

class SavedWriter {
 public:
  template <typename... T>
  void operator()(T&... values) {
    (put(values), ...);
  }
  const SavedBytes& bytes() const noexcept { return bytes_; }

 private:
  template <SavedAsItIs T>
  void put(const T& value) {
    const auto* const first = reinterpret_cast<const std::byte*>(&value);
    bytes_.insert(bytes_.end(), first, first + sizeof value);
  }
  void put(Instant value) { put(value.time_since_epoch().count()); }
  void put(Duration value) { put(value.count()); }
  void put(SocketAddress& value) {
    for (const std::uint8_t part : value.ip) put(part);
    (*this)(value.scope, value.port);
  }
  template <typename T>
  void put(std::vector<T>& values) {
    put(static_cast<std::uint32_t>(values.size()));
    if constexpr (SavedAsItIs<T>) {
      const auto all = std::as_bytes(std::span(values));
      bytes_.insert(bytes_.end(), all.begin(), all.end());
    } else {
      for (T& value : values) put(value);
    }
  }
  void put(std::string& text) {
    put(static_cast<std::uint32_t>(text.size()));
    for (const char letter : text) put(letter);
  }
  template <typename T>
  void put(std::optional<T>& value) {
    put(value.has_value());
    if (value) put(*value);
  }
  template <typename T>
    requires requires(T& value, SavedWriter& writer) { fields(writer, value); }
  void put(T& value) {
    fields(*this, value);
  }

  SavedBytes bytes_;
};

class SavedReader {
 public:
  explicit SavedReader(std::span<const std::byte> bytes) : bytes_(bytes) {}

  template <typename... T>
  void operator()(T&... values) {
    (get(values), ...);
  }
  /// Returns whether everything asked for was there.
  bool is_good() const noexcept { return is_good_; }
  /// Returns whether, in addition, nothing is left.
  bool is_at_end() const noexcept { return is_good_ && bytes_.empty(); }

 private:
  template <SavedAsItIs T>
  void get(T& value) {
    if (bytes_.size() < sizeof value) return fail();
    if constexpr (std::same_as<T, bool>) {
      if (bytes_[0] > std::byte{1}) return fail();
      value = bytes_[0] == std::byte{1};
    } else {
      std::memcpy(&value, bytes_.data(), sizeof value);
    }
    bytes_ = bytes_.subspan(sizeof value);
  }
  void get(Instant& value) {
    Instant::rep count = 0;
    get(count);
    value = Instant(Duration(count));
  }
  void get(Duration& value) {
    Duration::rep count = 0;
    get(count);
    value = Duration(count);
  }
  void get(SocketAddress& value) {
    for (std::uint8_t& part : value.ip) get(part);
    (*this)(value.scope, value.port);
  }
  template <typename T>
  void get(std::vector<T>& values) {
    const std::uint32_t size = list_size();
    values.clear();
    if constexpr (SavedAsItIs<T> && !std::same_as<T, bool>) {
      if (bytes_.size() / sizeof(T) < size) return fail();
      values.resize(size);
      if (size != 0) std::memcpy(values.data(), bytes_.data(), size * sizeof(T));
      bytes_ = bytes_.subspan(size * sizeof(T));
      return;
    }
    for (std::uint32_t i = 0; i < size && is_good_; ++i) get(values.emplace_back());
  }
  void get(std::string& text) {
    text.resize(list_size());
    for (char& letter : text) get(letter);
  }
  template <typename T>
  void get(std::optional<T>& value) {
    bool has_one = false;
    get(has_one);
    if (has_one) get(value.emplace());
  }
  template <typename T>
    requires requires(T& value, SavedReader& reader) { fields(reader, value); }
  void get(T& value) {
    fields(*this, value);
  }
  /// A list cannot have more elements than bytes left: each takes at least one.
  std::uint32_t list_size() {
    std::uint32_t size = 0;
    get(size);
    if (size <= bytes_.size()) return size;
    fail();
    return 0;
  }
  void fail() {
    is_good_ = false;
    bytes_ = {};
  }

  std::span<const std::byte> bytes_;
  bool is_good_ = true;
};

/// The error for state that contradicts itself, or does not fit the program that reads it.
inline std::unexpected<Error> cannot_restore(std::string why) {
  return std::unexpected(Error{Status::invalid, 0, std::move(why)});
}

}  // namespace fairlead::base
