#include "tools/nettest/pooled_machine.hpp"

#include <fmt/format.h>

#include <vector>

namespace fairlead::tools {

Result<net::BufferPool> make_pool(net::Domain& domain, std::uint64_t size, std::size_t count,
                                  const std::function<void(net::Buffer&)>& set_up) {
  auto pool = net::BufferPool::create(domain, {.buffer_size = size});
  if (!pool) return pool;
  const auto made = pool->provision(count);
  if (!made) return std::unexpected(made.error());
  if (*made < count) {
    return std::unexpected(
        Error{Status::no_memory, 0, fmt::format("memory for {} of {} buffers of {} bytes", *made, count, size)});
  }
  std::vector<net::Buffer*> all;
  while (net::Buffer* const buffer = set_up ? pool->get() : nullptr) all.push_back(buffer);
  for (net::Buffer* const buffer : all) {
    set_up(*buffer);
    (void)pool->put(*buffer);
  }
  return pool;
}

Result<> PooledMachine::start(std::string_view address, const Room& room, Events events) {
  auto pool = make_pool(domain_, room.message_size, room.messages);
  if (!pool) return std::unexpected(std::move(pool.error()));
  pool_.emplace(std::move(*pool));
  if (events == Events::by_polling) {
    if (auto chosen = machine_.deliver_synchronously(); !chosen) return chosen;
  }
  const auto take = [this](const net::BufferEvent& event) {
    if (event.status == Status::ok) on_message_(event);
    if (event.status == Status::restarted) has_lost_engine_ = true;
  };
  if (auto attached = machine_.attach(*pool_, {.on_event = take}); !attached) return attached;
  auto own = machine_.start_and_wait(address);
  if (!own) return std::unexpected(std::move(own.error()));
  address_ = own->address();
  return {};
}

}  // namespace fairlead::tools
