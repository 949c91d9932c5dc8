#include <fairlead/net/domain.hpp>

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/page_memory.hpp"
#include "net/domain_state.hpp"
#include "net/machine.hpp"
#include "net/refused.hpp"

namespace fairlead::net {
namespace {

Result<> check_limits(const BufferLimits& limits) {
  constexpr BufferLimits kMost;
  const auto is_good = [](std::uint64_t limit, std::uint64_t most) { return limit >= 1 && limit <= most; };
  if (is_good(limits.buffer_bytes, kMost.buffer_bytes) && is_good(limits.segment_bytes, kMost.segment_bytes) &&
      is_good(limits.segments, kMost.segments))
    return {};
  return refused(Status::invalid, fmt::format("limits of {} bytes a buffer, {} a segment, {} segments: want 1..{}, "
                                              "1..{} and 1..{}",
                                              limits.buffer_bytes, limits.segment_bytes, limits.segments,
                                              kMost.buffer_bytes, kMost.segment_bytes, kMost.segments));
}

}  // namespace

std::shared_ptr<Machine> DomainState::find(Machine* machine) {
  if (mark.is_inherited()) return nullptr;
  const std::scoped_lock lock(mutex);
  const auto found = machines.find(machine);
  return found == machines.end() ? nullptr : found->second.machine.lock();
}

bool DomainState::add_machine(const std::shared_ptr<Machine>& machine) {
  if (mark.is_inherited()) return false;
  const std::scoped_lock lock(mutex);
  if (!is_closed) machines.emplace(machine.get(), Enrolled{machines_made++, machine});
  return !is_closed;
}

void DomainState::remove_machine(Machine* machine) {
  if (mark.is_inherited()) return;
  const std::scoped_lock lock(mutex);
  machines.erase(machine);
}

const Machine* DomainState::teller_of(const BufferState& buffer) {
  if (mark.is_inherited()) return nullptr;
  const std::scoped_lock lock(mutex);  // keeps the machines alive: a machine leaves the domain before it ends
  const auto found =
      std::ranges::find_if(machines, [&](const auto& entry) { return entry.first->turn().tells(buffer); });
  return found == machines.end() ? nullptr : found->first;
}

Instant DomainState::step_machines() {
  std::vector<Enrolled> all;
  {
    const std::scoped_lock lock(mutex);
    for (const auto& [address, enrolled] : machines) all.push_back(enrolled);
  }
  std::ranges::sort(all, {}, &Enrolled::number);
  Instant next = kNever;
  for (const Enrolled& enrolled : all)
    if (const auto machine = enrolled.machine.lock()) next = std::min(next, machine->step());
  return next;
}

void DomainState::set_allocate_shared(engine::Core::AllocateShared allocate) {
  const std::scoped_lock lock(mutex);
  allocate_shared = std::move(allocate);
  small = SmallMemory([shared = allocate_shared](std::uint64_t bytes) {
    auto memory = shared(bytes);
    return memory ? memory : allocate_pages(bytes);
  });
}

std::shared_ptr<std::byte> DomainState::shared_memory(std::uint64_t bytes) {
  if (mark.is_inherited()) return nullptr;
  std::unique_lock lock(mutex);
  engine::Core::AllocateShared allocate = allocate_shared;
  SmallMemory short_ones = small;
  lock.unlock();
  if (bytes <= SmallMemory::kMost) return short_ones.take(bytes);
  return allocate ? allocate(bytes) : nullptr;
}

std::shared_ptr<std::byte> DomainState::allocate_pages(std::uint64_t bytes) {
  auto pages = base::PageMemory::allocate(bytes);
  if (!pages) return nullptr;
  const auto kept = std::make_shared<base::PageMemory>(std::move(*pages));
  return {kept, kept->bytes().data()};
}

bool DomainState::is_open() {
  if (mark.is_inherited()) return false;
  const std::scoped_lock lock(mutex);
  return !is_closed;
}

bool DomainState::add_buffer() {
  if (mark.is_inherited()) return false;
  const std::scoped_lock lock(mutex);
  if (!is_closed) ++buffers;
  return !is_closed;
}

void DomainState::remove_buffer() {
  if (mark.is_inherited()) return;
  const std::scoped_lock lock(mutex);
  --buffers;
}

Result<Domain> Domain::open(const DomainSettings& settings) {
  auto options = engine::EngineOptions::from_environment();
  if (!options) return std::unexpected(std::move(options.error()));
  for (const auto& [name, value] : settings.engine) {
    if (auto set = options->set(name, value); !set) return std::unexpected(std::move(set.error()));
  }
  if (auto good = check_limits(settings.limits); !good) return std::unexpected(std::move(good.error()));
  auto state = std::make_shared<DomainState>();
  state->options = *options;
  state->limits = settings.limits;
  return Domain(std::move(state));
}

Domain::Domain(std::shared_ptr<DomainState> state) noexcept : state_(std::move(state)) {}
Domain::Domain(Domain&&) noexcept = default;
Domain& Domain::operator=(Domain&&) noexcept = default;
Domain::~Domain() = default;

Result<> Domain::close() {
  if (!state_) return {};
  if (state_->mark.is_inherited()) return refused(Status::bad_state, kBeforeFork);
  const std::scoped_lock lock(state_->mutex);
  if (state_->buffers != 0 || !state_->machines.empty()) {
    return std::unexpected(
        Error{Status::bad_state, 0,
              fmt::format("the domain still has {} buffers and {} transfer machines: close them first", state_->buffers,
                          state_->machines.size())});
  }
  state_->is_closed = true;
  return {};
}

std::uint64_t Domain::buffer_size_max() const noexcept {
  return state_ ? state_->limits.buffer_bytes : 0;
}
std::uint64_t Domain::segment_size_max() const noexcept {
  return state_ ? state_->limits.segment_bytes : 0;
}
std::size_t Domain::segments_max() const noexcept {
  return state_ ? state_->limits.segments : 0;
}

}  // namespace fairlead::net
