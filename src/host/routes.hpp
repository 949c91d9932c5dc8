#pragma once
// What the threads of a host engine share: which thread serves which engine, and how many applications are attached.
//
// Model: each thread has engines and applications of its own (Service), and touches no other thread's. Secrets and
// numbers of applications contain their thread, so the first thread, which accepts connections, passes each first call
// to the right one.
//
// Thread-safe.

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include <fairlead/error.hpp>

#include "base/socket_address.hpp"

namespace fairlead::host {

inline constexpr std::uint32_t kThreadsMax = 64;

class Routes : public std::enable_shared_from_this<Routes> {
 public:
  /// The place of an attached application. It is free again when this ends.
  class Seat {
   public:
    Seat() = default;
    Seat(std::shared_ptr<Routes> routes, std::uint32_t thread, std::uint32_t user)
        : routes_(std::move(routes)), thread_(thread), user_(user) {}
    Seat(Seat&&) noexcept = default;
    Seat& operator=(Seat&& other) noexcept {
      std::swap(routes_, other.routes_);
      std::swap(thread_, other.thread_);
      std::swap(user_, other.user_);
      return *this;
    }
    ~Seat() {
      if (routes_) routes_->leave(thread_, user_);
    }

   private:
    std::shared_ptr<Routes> routes_;
    std::uint32_t thread_ = 0, user_ = 0;
  };

  struct Limits {
    std::size_t applications_max = ~std::size_t{0};
    std::int64_t per_user_max = INT64_MAX;
  };

  explicit Routes(std::uint32_t threads) : threads_(threads) {}

  std::uint32_t threads() const noexcept { return threads_; }

  /// Returns the thread for an application that asks for the engine at `address`. Port 0: the thread with the fewest
  /// applications. Another port: the thread that has the engine, else always the same one.
  std::uint32_t thread_for(const base::SocketAddress& address);
  /// Records that the thread has the engine. Returns false if another thread has it.
  bool claim(const base::SocketAddress& engine, std::uint32_t thread);
  void release(const base::SocketAddress& engine);

  /// Takes a place. Returns `no_memory` if the limits leave none.
  Result<Seat> enter(std::uint32_t thread, std::uint32_t user, const Limits& limits);
  std::size_t applications() const;

  // A secret's lowest bits are its thread, a number's highest.
  static std::uint64_t secret_of(std::uint64_t random, std::uint32_t thread) {
    return (random & ~std::uint64_t{kThreadsMax - 1}) | thread;
  }
  static std::uint32_t thread_of_secret(std::uint64_t secret) {
    return static_cast<std::uint32_t>(secret & (kThreadsMax - 1));
  }
  static constexpr std::uint64_t first_number(std::uint32_t thread) { return std::uint64_t{thread} << kNumberBits; }
  static std::uint32_t thread_of_number(std::uint64_t number) {
    return static_cast<std::uint32_t>(number >> kNumberBits);
  }

 private:
  static constexpr std::uint32_t kNumberBits = 40;

  void leave(std::uint32_t thread, std::uint32_t user);

  const std::uint32_t threads_;
  mutable std::mutex mutex_;  // guards the members below
  std::map<base::SocketAddress, std::uint32_t> engines_;
  std::map<std::uint32_t, std::int64_t> by_user_;
  std::array<std::size_t, kThreadsMax> by_thread_{};
  std::uint32_t next_ = 0;  // where the search for an idle thread begins
};

}  // namespace fairlead::host
