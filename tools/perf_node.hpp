#pragma once
// One end of a measurement: a transfer machine whose events the measuring thread takes itself, polling.

#include <fairlead/net.hpp>

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace fairlead::tools {

using PerfBuffers = std::vector<std::unique_ptr<net::Buffer>>;

class PerfNode {
 public:
  explicit PerfNode(net::Domain& domain) : domain_(domain), machine_(domain) {}

  Result<> start(std::string_view address);

  net::TransferMachine& machine() { return machine_; }
  const std::string& address() const { return address_; }

  Result<PerfBuffers> make_buffers(std::size_t count, std::uint64_t size, const net::BufferCallback& callback);

  /// Posts buffers for messages of `size` bytes, and keeps them posted as long as the result lives and poll() is
  /// called.
  Result<PerfBuffers> take_messages(std::uint64_t size, std::function<void(const net::BufferEvent&)> on_message);

  /// How many messages of `size` bytes the buffers of take_messages() hold for certain while none is taken out.
  static std::uint64_t room_for(std::uint64_t size);

  /// Takes what is there, without waiting.
  void poll() { (void)machine_.deliver_all(); }
  /// Polls until `is_done`, or for at most `time`; whether it was done.
  template <typename Predicate>
  bool poll_until(Predicate is_done, Duration time) {
    const Instant deadline = Instant::clock::now() + time;
    for (std::uint32_t i = 1; !is_done(); ++i) {
      poll();
      if (i % 1024 == 0 && Instant::clock::now() >= deadline) return is_done();
    }
    return true;
  }

  /// Cancels what is queued of these and polls until they are free.
  void drain(PerfBuffers& buffers);

 private:
  net::Domain& domain_;
  net::TransferMachine machine_;
  std::string address_;
};

/// The calling thread, from now on; false where that processor is not ours.
bool pin_thread(int cpu);

/// User and system time of this process so far.
double process_cpu_seconds();

}  // namespace fairlead::tools
