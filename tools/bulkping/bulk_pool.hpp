#pragma once
// The server's bulk buffers. Created when a size is first needed and kept for reuse, with a bound on number and total
// memory.

#include <fairlead/net/buffer.hpp>

#include <functional>
#include <list>
#include <memory>

namespace fairlead::tools {

class BulkPool {
 public:
  using SetUp = std::function<void(net::Buffer&)>;

  /// `set_up` is called once for each new buffer.
  BulkPool(net::Domain& domain, std::uint32_t buffers_max, std::uint64_t memory_max, SetUp set_up)
      : domain_(domain), buffers_max_(buffers_max), memory_max_(memory_max), set_up_(std::move(set_up)) {}

  /// Returns an idle buffer of at least `size` bytes. Frees idle buffers of other sizes if necessary. Returns null
  /// while the bounds permit no more.
  net::Buffer* acquire(std::uint64_t size);
  void release(net::Buffer& buffer);

 private:
  struct Slot {
    std::unique_ptr<net::Buffer> buffer;
    bool is_idle = false;
  };

  bool has_room(std::uint64_t size) const;

  net::Domain& domain_;
  const std::uint32_t buffers_max_;
  const std::uint64_t memory_max_;
  const SetUp set_up_;
  std::list<Slot> slots_;
  std::uint64_t memory_ = 0;
};

}  // namespace fairlead::tools
