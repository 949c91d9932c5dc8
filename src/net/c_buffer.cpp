// C interface <fairlead/net.h>: buffers, end points, loans, pools.

#include <vector>

#include "net/c_face.hpp"

namespace net = fairlead::net;
namespace c = fairlead::net::c;

namespace {

fairlead_status hand_out(fairlead::Result<std::unique_ptr<net::Buffer>> made, fairlead_net_buffer** buffer) {
  if (!made) return c::fail(made.error());
  *buffer = c::handle_of<fairlead_net_buffer>(made->release());
  return FAIRLEAD_OK;
}

std::function<void()> adapt_signal(void (*signal)(void*), void* user) {
  if (signal == nullptr) return {};
  return [signal, user] { signal(user); };
}

}  // namespace

// End points --------------------------------------------------------------------------------------------------------

fairlead_net_end_point* fairlead_net_end_point_copy(const fairlead_net_end_point* end_point) {
  if (end_point == nullptr) return nullptr;
  const auto copy = [&] { return c::handle_of<fairlead_net_end_point>(new net::EndPoint(*c::meant(end_point))); };
  return c::guarded_or<fairlead_net_end_point*>(nullptr, copy);
}

void fairlead_net_end_point_free(fairlead_net_end_point* end_point) {
  delete c::meant(end_point);
}

size_t fairlead_net_end_point_address(const fairlead_net_end_point* end_point, char* text, size_t size) {
  c::write_text("", text, size);
  return c::guarded_or(std::size_t{0}, [&] {
    return end_point != nullptr ? c::write_text(c::meant(end_point)->address(), text, size) : 0;
  });
}

bool fairlead_net_end_point_equal(const fairlead_net_end_point* a, const fairlead_net_end_point* b) {
  if (a == nullptr || b == nullptr) return a == b;
  return *c::meant(a) == *c::meant(b);
}

// Buffers -----------------------------------------------------------------------------------------------------------

fairlead_status fairlead_net_buffer_allocate(fairlead_net_domain* domain, uint64_t size, fairlead_net_buffer** buffer) {
  if (c::is_any_null(domain, buffer)) return c::fail_null();
  return c::guarded([&] { return hand_out(net::Buffer::allocate(*c::meant(domain), size), buffer); });
}

fairlead_status fairlead_net_buffer_borrow(fairlead_net_domain* domain, const fairlead_net_segment* segments,
                                           size_t count, fairlead_net_buffer** buffer) {
  if (c::is_any_null(domain, buffer) || (segments == nullptr && count > 0)) return c::fail_null();
  return c::guarded([&] {
    std::vector<std::span<std::byte>> all;
    for (const auto& [memory, length] : std::span(segments, count))
      all.emplace_back(static_cast<std::byte*>(memory), length);
    return hand_out(net::Buffer::borrow(*c::meant(domain), all), buffer);
  });
}

void fairlead_net_buffer_free(fairlead_net_buffer* buffer) {
  delete c::meant(buffer);
}

fairlead_status fairlead_net_buffer_set_callback(fairlead_net_buffer* buffer, fairlead_net_queue queue,
                                                 fairlead_net_buffer_callback callback, void* user) {
  if (buffer == nullptr) return c::fail_null();
  return c::guarded([&] {
    return c::done(c::meant(buffer)->set_callback(static_cast<net::QueueKind>(queue), c::adapt(callback, user)));
  });
}

fairlead_status fairlead_net_buffer_set_callbacks(fairlead_net_buffer* buffer, fairlead_net_buffer_callback callback,
                                                  void* user) {
  if (buffer == nullptr) return c::fail_null();
  return c::guarded([&] { return c::done(c::meant(buffer)->set_callback(c::adapt(callback, user))); });
}

void fairlead_net_buffer_set_user(fairlead_net_buffer* buffer, void* user) {
  if (buffer != nullptr) c::meant(buffer)->set_user(user);
}
void* fairlead_net_buffer_user(const fairlead_net_buffer* buffer) {
  return buffer != nullptr ? c::meant(buffer)->user() : nullptr;
}
uint64_t fairlead_net_buffer_size(const fairlead_net_buffer* buffer) {
  return buffer != nullptr ? c::meant(buffer)->size() : 0;
}
size_t fairlead_net_buffer_segment_count(const fairlead_net_buffer* buffer) {
  return buffer != nullptr ? c::meant(buffer)->segment_count() : 0;
}
fairlead_net_segment fairlead_net_buffer_segment(const fairlead_net_buffer* buffer, size_t index) {
  const auto segment = buffer != nullptr ? c::meant(buffer)->segment(index) : std::span<std::byte>();
  return {segment.data(), segment.size()};
}
uint64_t fairlead_net_buffer_write(fairlead_net_buffer* buffer, uint64_t offset, const void* from, uint64_t length) {
  if (c::is_any_null(buffer, from)) return 0;
  return c::meant(buffer)->write(offset, {static_cast<const std::byte*>(from), length});
}
uint64_t fairlead_net_buffer_read(const fairlead_net_buffer* buffer, uint64_t offset, void* to, uint64_t length) {
  if (c::is_any_null(buffer, to)) return 0;
  return c::meant(buffer)->read(offset, {static_cast<std::byte*>(to), length});
}
void fairlead_net_buffer_descriptor(const fairlead_net_buffer* buffer, uint8_t to[FAIRLEAD_NET_DESCRIPTOR_SIZE]) {
  static_assert(FAIRLEAD_NET_DESCRIPTOR_SIZE == net::kDescriptorSize);
  if (c::is_any_null(buffer, to)) return;
  std::memcpy(to, c::meant(buffer)->descriptor().data(), net::kDescriptorSize);
}
bool fairlead_net_buffer_is_queued(const fairlead_net_buffer* buffer) {
  return buffer != nullptr && c::meant(buffer)->is_queued();
}

// Loans -------------------------------------------------------------------------------------------------------------

fairlead_net_loan* fairlead_net_event_keep_loan(const fairlead_net_buffer_event* event) {
  if (event == nullptr || event->loan_owner == nullptr) return nullptr;
  const auto keep = [&] {
    return c::handle_of<fairlead_net_loan>(new net::Loan(std::move(*static_cast<net::Loan*>(event->loan_owner))));
  };
  return c::guarded_or<fairlead_net_loan*>(nullptr, keep);
}

void fairlead_net_loan_free(fairlead_net_loan* loan) {
  delete c::meant(loan);
}

// Pools -------------------------------------------------------------------------------------------------------------

fairlead_status fairlead_net_pool_create(const fairlead_net_domain* domain, const fairlead_net_pool_options* options,
                                         fairlead_net_pool** pool) {
  if (c::is_any_null(domain, pool)) return c::fail_null();
  return c::guarded([&] {
    fairlead_net_pool_options wanted{};
    if (options != nullptr)
      if (const auto taken = c::take(options, wanted); taken != FAIRLEAD_OK) return taken;
    net::BufferPoolSettings settings;
    if (wanted.buffer_size != 0) settings.buffer_size = wanted.buffer_size;
    if (wanted.threshold != 0) settings.threshold = wanted.threshold;
    settings.colours = wanted.colours;
    settings.on_below_threshold = adapt_signal(wanted.on_below_threshold, wanted.user);
    settings.on_not_empty = adapt_signal(wanted.on_not_empty, wanted.user);
    auto made = net::BufferPool::create(*c::meant(domain), std::move(settings));
    if (!made) return c::fail(made.error());
    *pool = c::handle_of<fairlead_net_pool>(new net::BufferPool(std::move(*made)));
    return FAIRLEAD_OK;
  });
}

void fairlead_net_pool_free(fairlead_net_pool* pool) {
  delete c::meant(pool);
}

fairlead_status fairlead_net_pool_provision(fairlead_net_pool* pool, size_t count, size_t* made) {
  if (pool == nullptr) return c::fail_null();
  return c::guarded([&] {
    const auto provisioned = c::meant(pool)->provision(count);
    if (made != nullptr) *made = provisioned.value_or(0);
    return provisioned ? FAIRLEAD_OK : c::fail(provisioned.error());
  });
}

bool fairlead_net_pool_prune(fairlead_net_pool* pool) {
  return pool != nullptr && c::guarded_or(false, [&] { return c::meant(pool)->prune(); });
}

fairlead_net_buffer* fairlead_net_pool_get(fairlead_net_pool* pool, uint32_t colour) {
  if (pool == nullptr) return nullptr;
  const auto get = [&] {
    net::Buffer* const got = c::meant(pool)->get(colour);
    if (got == nullptr) c::fail(fairlead::Status::no_buffer, "the pool is empty, or it has no such colour");
    return c::handle_of<fairlead_net_buffer>(got);
  };
  return c::guarded_or<fairlead_net_buffer*>(nullptr, get);
}

fairlead_status fairlead_net_pool_put(fairlead_net_pool* pool, fairlead_net_buffer* buffer, uint32_t colour) {
  if (c::is_any_null(pool, buffer)) return c::fail_null();
  return c::guarded([&] { return c::done(c::meant(pool)->put(*c::meant(buffer), colour)); });
}

size_t fairlead_net_pool_free_count(const fairlead_net_pool* pool) {
  return pool != nullptr ? c::meant(pool)->free_count() : 0;
}
size_t fairlead_net_pool_size(const fairlead_net_pool* pool) {
  return pool != nullptr ? c::meant(pool)->size() : 0;
}
