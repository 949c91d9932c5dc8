#include <fairlead/net/buffer_pool.hpp>

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/numa.hpp"
#include "net/machine.hpp"
#include "net/pool_state.hpp"
#include "net/refused.hpp"

namespace fairlead::net {
namespace {

void place(const BufferState& buffer, std::optional<unsigned> node) {
  for (const iovec& piece : buffer.memory)
    base::place_near({static_cast<const std::byte*>(piece.iov_base), piece.iov_len}, node);
}

// noexcept: the caller may hold a machine's turn, which an exception would leave taken for ever.
void tell(const std::function<void()>& callback) noexcept {
  callback();
}

}  // namespace

PoolState::PoolState(std::shared_ptr<DomainState> domain_state, BufferPoolSettings all_settings)
    : domain(std::move(domain_state)),
      settings(std::move(all_settings)),
      spares(std::make_shared<engine::SpareReceives>(settings.buffer_size, settings.colours)) {}

// No machine takes buffers any more, because each such machine holds a reference to this pool.
PoolState::~PoolState() {
  if (domain->mark.is_inherited()) return;
  while (engine::Spare* const spare = spares->take(kAnyColour)) BufferState::of(spare->cookie).leave_pool();
}

Result<std::size_t> PoolState::provision(std::size_t count) {
  Domain handle = DomainState::handle(domain);
  std::size_t made = 0;
  for (; made < count; ++made) {
    auto buffer = Buffer::allocate(handle, settings.buffer_size);
    if (!buffer && made == 0) return std::unexpected(std::move(buffer.error()));
    if (!buffer) break;
    BufferState& state = BufferState::of(**buffer);
    std::unique_lock lock(mutex_);
    PooledBuffer& pooled = all_.emplace_back();
    pooled.buffer = std::move(*buffer);
    place(state, node_);
    lock.unlock();
    pooled.spare.memory = state.memory;
    pooled.spare.cookie = state.cookie();
    pooled.pool = this;
    state.pooled = &pooled;
    state.phase.store(BufferState::Phase::pooled, std::memory_order_release);
    take_back(pooled, kAnyColour);
  }
  refill_machines();  // each machine's share may have grown
  return made;
}

void PoolState::place_near(std::optional<unsigned> node) {
  const std::scoped_lock lock(mutex_);
  if (!node || node_) return;
  node_ = node;
  for (const PooledBuffer& pooled : all_) place(BufferState::of(*pooled.buffer), node_);
}

bool PoolState::prune() {
  if (spares->count() <= settings.threshold) return false;
  engine::Spare* const spare = spares->take(kAnyColour);
  if (spare == nullptr) return false;
  BufferState& state = BufferState::of(spare->cookie);
  state.leave_pool();
  const PooledBuffer* const pooled = std::exchange(state.pooled, nullptr);
  std::list<PooledBuffer> gone;
  const std::scoped_lock lock(mutex_);
  gone.splice(gone.end(), all_, std::ranges::find(all_, pooled, [](const PooledBuffer& one) { return &one; }));
  return true;
}

Buffer* PoolState::get(std::uint32_t colour) {
  if (!has_colour(colour)) return nullptr;
  engine::Spare* const spare = spares->take(colour);
  if (spare == nullptr) return nullptr;
  BufferState& state = BufferState::of(spare->cookie);
  state.leave_pool();
  look();
  return state.face;
}

Status PoolState::put(Buffer& buffer, std::uint32_t colour) {
  BufferState& state = BufferState::of(buffer);
  if (state.pooled == nullptr || state.pooled->pool != this) return Status::invalid;
  if (!has_colour(colour)) return Status::invalid;
  auto expected = BufferState::Phase::free;
  if (!state.phase.compare_exchange_strong(expected, BufferState::Phase::pooled, std::memory_order_acq_rel))
    return Status::bad_state;
  take_back(*state.pooled, colour);
  return Status::ok;
}

void PoolState::take_back(PooledBuffer& pooled, std::uint32_t colour) {
  const std::uint32_t count = spares->put(pooled.spare, colour);
  if (count >= settings.threshold) is_low_.store(false, std::memory_order_relaxed);
  if (count == 1 && settings.on_not_empty) tell(settings.on_not_empty);
  if (spares->take_wanted()) refill_machines();
}

std::size_t PoolState::size() const {
  const std::scoped_lock lock(mutex_);
  return all_.size();
}

void PoolState::look() {
  if (spares->count() >= settings.threshold || is_low_.exchange(true)) return;
  if (settings.on_below_threshold) tell(settings.on_below_threshold);
}

void PoolState::attach(std::weak_ptr<Machine> machine) {
  const std::scoped_lock lock(mutex_);
  std::erase_if(machines_, [](const auto& one) { return one.expired(); });
  machines_.push_back(std::move(machine));
}

void PoolState::refill_machines() {
  std::vector<std::weak_ptr<Machine>> machines;
  {
    const std::scoped_lock lock(mutex_);
    machines = machines_;
  }
  for (const auto& one : machines)
    if (const auto machine = one.lock()) (void)machine->wish([](ReceiveProvision&) { return Status::ok; });
}

std::uint32_t PoolState::share(std::uint32_t length) const {
  const std::scoped_lock lock(mutex_);
  const auto machines = std::ranges::count_if(machines_, [](const auto& one) { return !one.expired(); });
  const std::size_t kept = std::size_t{length} + (settings.on_below_threshold ? settings.threshold : 0);
  const std::size_t all = all_.size() - std::min(all_.size(), kept);
  return static_cast<std::uint32_t>(all / static_cast<std::size_t>(std::max<std::ptrdiff_t>(machines, 1)));
}

Result<BufferPool> BufferPool::create(const Domain& domain, BufferPoolSettings settings) {
  const std::shared_ptr<DomainState>& state = domain.state_;
  if (!state || !state->is_open()) return refused(Status::bad_state, "the domain is closed");
  if (settings.buffer_size == 0) return refused(Status::invalid, "buffers of 0 bytes: give them at least one");
  if (settings.buffer_size > domain.buffer_size_max()) {
    return refused(Status::too_big, fmt::format("buffers of {} bytes: at most {} are possible", settings.buffer_size,
                                                domain.buffer_size_max()));
  }
  if (settings.colours > kColoursMax) {
    return refused(Status::invalid, fmt::format("{} colours: at most {} are possible", settings.colours, kColoursMax));
  }
  return BufferPool(std::make_shared<PoolState>(state, std::move(settings)));
}

BufferPool::BufferPool(std::shared_ptr<PoolState> state) noexcept : state_(std::move(state)) {}
BufferPool::BufferPool(BufferPool&&) noexcept = default;
BufferPool& BufferPool::operator=(BufferPool&&) noexcept = default;
BufferPool::~BufferPool() = default;

Result<std::size_t> BufferPool::provision(std::size_t count) {
  if (state_->domain->mark.is_inherited()) return refused(Status::bad_state, kBeforeFork);
  return state_->provision(count);
}
bool BufferPool::prune() {
  return !state_->domain->mark.is_inherited() && state_->prune();
}
Buffer* BufferPool::get(std::uint32_t colour) {
  return state_->domain->mark.is_inherited() ? nullptr : state_->get(colour);
}
Status BufferPool::put(Buffer& buffer, std::uint32_t colour) {
  return state_->domain->mark.is_inherited() ? Status::bad_state : state_->put(buffer, colour);
}
std::size_t BufferPool::free_count() const noexcept {
  return state_->spares->count();
}
std::size_t BufferPool::size() const noexcept {
  return state_->domain->mark.is_inherited() ? 0 : state_->size();
}

}  // namespace fairlead::net
