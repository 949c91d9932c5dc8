#pragma once
// One end of a measurement: a transfer machine with synchronous delivery, which the measuring thread polls.

#include <fairlead/net.hpp>

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tools/perf/place.hpp"

namespace fairlead::tools {

/// Most buffer descriptors in one message.
inline constexpr std::size_t kDescriptorsPerMessage = 8;

using PerfBuffers = std::vector<std::unique_ptr<net::Buffer>>;

class PerfNode {
 public:
  /// Starts an engine and a machine at that place.
  static Result<std::unique_ptr<PerfNode>> open(const PerfPlace& place);

  net::TransferMachine& machine() { return machine_; }
  const std::string& address() const { return address_; }

  Result<PerfBuffers> make_buffers(std::size_t count, std::uint64_t size, const net::BufferCallback& callback);

  /// Posts buffers for messages of `size` bytes. Keeps them posted while the result lives and the caller calls poll().
  Result<PerfBuffers> take_messages(std::uint64_t size, std::function<void(const net::BufferEvent&)> on_message);

  /// Returns how many messages of `size` bytes surely fit into the buffers of take_messages() before one is taken out.
  static std::uint64_t room_for(std::uint64_t size);

  /// Delivers waiting events, without blocking.
  void poll() { (void)machine_.deliver_all(); }
  /// Polls until `is_done`, or for at most `time`. Returns whether it is done.
  template <typename Predicate>
  bool poll_until(Predicate is_done, Duration time) {
    const Instant deadline = Instant::clock::now() + time;
    for (std::uint32_t i = 1; !is_done(); ++i) {
      poll();
      if (i % 1024 == 0 && Instant::clock::now() >= deadline) return is_done();
    }
    return true;
  }

  /// Cancels queued operations of these buffers, and polls until they are free.
  void drain(PerfBuffers& buffers);

 private:
  explicit PerfNode(net::Domain domain) : domain_(std::move(domain)), machine_(domain_) {}

  net::Domain domain_;
  net::TransferMachine machine_;
  std::string address_;
};

}  // namespace fairlead::tools
