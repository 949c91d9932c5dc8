#include <fairlead/net/buffer.hpp>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <optional>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "net/buffer_state.hpp"
#include "net/machine.hpp"
#include "net/pool_state.hpp"
#include "net/refused.hpp"
#include "net/telling_wait.hpp"
#include "net/turn.hpp"

namespace fairlead::net {
namespace {

Result<> check_size(std::uint64_t size, std::uint64_t most, const char* what) {
  if (size == 0) return refused(Status::invalid, "a buffer or segment of 0 bytes: give it at least one");
  if (size > most) {
    return refused(Status::too_big, fmt::format("a {} of {} bytes: at most {} are possible", what, size, most));
  }
  return {};
}

/// Cuts the memory into segments no longer than the domain allows.
std::vector<std::span<std::byte>> segments_of(std::span<std::byte> memory, const BufferLimits& limits) {
  std::vector<std::span<std::byte>> segments;
  for (; !memory.empty(); memory = memory.subspan(segments.back().size()))
    segments.push_back(memory.first(std::min<std::size_t>(memory.size(), limits.segment_bytes)));
  return segments;
}

// Visits the pieces of memory that cover [offset, offset + length), in order. Returns the number of bytes visited.
template <typename Visit>
std::uint64_t visit_pieces(const std::vector<iovec>& memory, std::uint64_t offset, std::uint64_t length,
                           Visit&& visit) {
  std::uint64_t done = 0;
  for (const iovec& piece : memory) {
    if (done == length) break;
    if (offset >= piece.iov_len) {
      offset -= piece.iov_len;
      continue;
    }
    const std::uint64_t here = std::min<std::uint64_t>(piece.iov_len - offset, length - done);
    visit(static_cast<std::byte*>(piece.iov_base) + offset, done, here);
    done += here;
    offset = 0;
  }
  return done;
}

// How many times to yield before sleeping, while a callback has not returned.
constexpr int kYields = 200;
constexpr auto kNap = std::chrono::microseconds(50);

void rest(int looks) {
  looks < kYields ? std::this_thread::yield() : std::this_thread::sleep_for(kNap);
}

// Returns whether the buffer is neither queued nor in a callback. Then no other thread changes its callbacks.
bool is_idle(const BufferState& state) {
  return state.phase.load(std::memory_order_acquire) != BufferState::Phase::queued && !state.is_told();
}

}  // namespace

constinit thread_local BufferState::Calling* BufferState::Calling::innermost = nullptr;

// Another machine may still run a callback whose handle was destroyed meanwhile: wait for it.
void BufferState::dispose() {
  for (int looks = 0; domain->is_told(*this); ++looks) rest(looks);
  delete this;
}

void BufferState::end_without_handle() {
  auto expected = Phase::free;
  if (phase.compare_exchange_strong(expected, Phase::closed, std::memory_order_acq_rel)) domain->remove_buffer();
  release();
}

Buffer::Buffer(BufferState* state) noexcept : state_(state) {
  state->face = this;
}

Result<std::unique_ptr<Buffer>> Buffer::allocate(Domain& domain, std::uint64_t size) {
  if (!domain.state_) return refused(Status::bad_state, "the domain is closed");
  const BufferLimits& limits = domain.state_->limits;
  if (auto good = check_size(size, limits.buffer_bytes, "buffer"); !good)
    return std::unexpected(std::move(good.error()));
  if (auto shared = domain.state_->shared_memory(size)) {
    auto buffer = borrow(domain, segments_of(std::span(shared.get(), size), limits));
    if (buffer) (*buffer)->state_->shared = std::move(shared);
    return buffer;
  }
  auto memory = base::PageMemory::allocate(size);
  if (!memory) return std::unexpected(std::move(memory.error()));
  auto buffer = borrow(domain, segments_of(memory->bytes(), limits));
  if (buffer) (*buffer)->state_->owned = std::move(*memory);
  return buffer;
}

Result<std::unique_ptr<Buffer>> Buffer::borrow(Domain& domain, std::span<std::byte> memory) {
  return borrow(domain, std::span<const std::span<std::byte>>(&memory, 1));
}

Result<std::unique_ptr<Buffer>> Buffer::borrow(Domain& domain, std::span<const std::span<std::byte>> segments) {
  if (segments.empty()) return refused(Status::invalid, "a buffer without segments: give it at least one");
  if (!domain.state_) return refused(Status::bad_state, "the domain is closed");
  const BufferLimits& limits = domain.state_->limits;
  if (segments.size() > limits.segments) {
    return refused(Status::too_big,
                   fmt::format("a buffer of {} segments: at most {} are possible", segments.size(), limits.segments));
  }
  auto state = std::make_unique<BufferState>();
  for (const std::span<std::byte> segment : segments) {
    if (auto good = check_size(segment.size(), limits.segment_bytes, "segment"); !good)
      return std::unexpected(std::move(good.error()));
    if (segment.data() == nullptr) {
      return refused(Status::invalid,
                     fmt::format("a segment of {} bytes at null: was its memory allocated?", segment.size()));
    }
    state->memory.push_back({segment.data(), segment.size()});
    state->size += segment.size();
  }
  if (auto good = check_size(state->size, limits.buffer_bytes, "buffer"); !good)
    return std::unexpected(std::move(good.error()));
  if (domain.state_->mark.is_inherited()) return refused(Status::bad_state, kBeforeFork);
  if (!domain.state_->add_buffer()) return refused(Status::bad_state, "the domain is closed");
  state->domain = domain.state_;
  return std::unique_ptr<Buffer>(new Buffer(state.release()));
}

Buffer::~Buffer() {
  BufferState& state = *state_;
  if (state.domain->mark.is_inherited()) {
    base::keep_for_ever({state_, [](BufferState*) {}});
    return;
  }
  state.is_going.store(true, std::memory_order_relaxed);
  std::optional<Turn::Pause> paused;
  std::optional<TellingWait> wait;
  for (int looks = 0;; ++looks) {
    if (state.phase.load(std::memory_order_acquire) == BufferState::Phase::queued) {
      if (const auto machine = state.domain->find(state.machine.load(std::memory_order_acquire))) {
        if (!Turn::is_calling()) machine->finish(state);
        if (Turn::is_calling() && machine->abandon(state)) return;
      }
    }
    // Unless this thread is in a callback of the buffer, wait until no callback on another thread uses the handle.
    if (BufferState::Calling::is_inside(state)) break;
    if (is_idle(state)) break;
    if (Turn::is_calling()) {
      if (!paused) paused.emplace();
      if (!wait) wait.emplace(state);
      if (wait->is_in_vain()) break;
    }
    rest(looks);
  }
  wait.reset();
  paused.reset();
  static_cast<void>(close());
  BufferState::Calling::inherit(state);
}

Result<> Buffer::close() {
  auto expected = BufferState::Phase::free;
  if (state_->phase.compare_exchange_strong(expected, BufferState::Phase::closed, std::memory_order_acq_rel)) {
    state_->domain->remove_buffer();
    return {};
  }
  if (expected == BufferState::Phase::closed) return {};
  return refused(Status::bad_state, "the buffer is queued: cancel it and wait for its final event");
}

std::uint64_t BufferEvent::room() const noexcept {
  if (is_final || loan != nullptr) return 0;
  return buffer.size() - offset - length;
}

Status Buffer::set_callback(QueueKind kind, BufferCallback callback) {
  if (!is_idle(*state_) && !BufferState::Calling::may_change(*state_, kind)) return Status::bad_state;
  if (std::to_underlying(kind) >= kQueueKinds) return Status::invalid;
  state_->callbacks[std::to_underlying(kind)] = std::move(callback);
  return Status::ok;
}

Status Buffer::set_callback(const BufferCallback& callback) {
  if (!is_idle(*state_)) return Status::bad_state;
  state_->callbacks.fill(callback);
  return Status::ok;
}

void Buffer::set_user(void* user) noexcept {
  state_->user = user;
}

void* Buffer::user() const noexcept {
  return state_->user;
}

std::uint64_t Buffer::size() const noexcept {
  return state_->size;
}

std::size_t Buffer::segment_count() const noexcept {
  return state_->memory.size();
}

std::span<std::byte> Buffer::segment(std::size_t index) const noexcept {
  if (index >= state_->memory.size()) return {};
  const iovec& piece = state_->memory[index];
  return {static_cast<std::byte*>(piece.iov_base), piece.iov_len};
}

std::span<std::byte> Buffer::bytes(std::uint64_t offset, std::uint64_t length) const noexcept {
  std::span<std::byte> first;
  visit_pieces(state_->memory, offset, length, [&](std::byte* begin, std::uint64_t done, std::uint64_t here) {
    if (done == 0) first = {begin, here};
  });
  return first;
}

std::uint64_t Buffer::write(std::uint64_t offset, std::span<const std::byte> from) noexcept {
  return visit_pieces(state_->memory, offset, from.size(), [&](std::byte* to, std::uint64_t done, std::uint64_t here) {
    std::memcpy(to, from.data() + done, here);
  });
}

std::uint64_t Buffer::read(std::uint64_t offset, std::span<std::byte> to) const noexcept {
  return visit_pieces(state_->memory, offset, to.size(), [&](std::byte* from, std::uint64_t done, std::uint64_t here) {
    std::memcpy(to.data() + done, from, here);
  });
}

const BufferDescriptor& Buffer::descriptor() const noexcept {
  return state_->descriptor;
}

bool Buffer::is_queued() const noexcept {
  return state_->phase.load(std::memory_order_acquire) == BufferState::Phase::queued;
}

}  // namespace fairlead::net
