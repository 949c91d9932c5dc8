#pragma once
// A transfer machine that receives messages up to one size, each into a buffer of a pool.

#include <fairlead/net.hpp>

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace fairlead::tools {

enum class Events : std::uint8_t {
  by_thread,   // by the machine's own thread
  by_polling,  // by deliver_all()
};

class PooledMachine {
 public:
  struct Room {
    std::uint64_t message_size = 0;
    std::size_t messages = 0;  // most messages that have arrived without being put back
  };
  /// `on_message` gets each message and must put its buffer back.
  explicit PooledMachine(net::Domain& domain, net::BufferCallback on_message)
      : domain_(domain), on_message_(std::move(on_message)), machine_(domain) {}

  Result<> start(std::string_view address, const Room& room, Events events);
  void put(net::Buffer& buffer) { (void)pool_->put(buffer); }

  net::Domain& domain() { return domain_; }
  net::TransferMachine& machine() { return machine_; }
  const std::string& address() const { return address_; }
  /// Returns whether the host engine has ended, and this machine with it.
  bool has_lost_engine() const { return has_lost_engine_; }

 private:
  net::Domain& domain_;
  const net::BufferCallback on_message_;
  std::optional<net::BufferPool> pool_;
  std::string address_;
  std::atomic<bool> has_lost_engine_ = false;
  net::TransferMachine machine_;
};

/// Creates a pool with so many buffers, and calls `set_up` once for each.
Result<net::BufferPool> make_pool(net::Domain& domain, std::uint64_t size, std::size_t count,
                                  const std::function<void(net::Buffer&)>& set_up = {});

}  // namespace fairlead::tools
