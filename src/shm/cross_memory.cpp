#include "shm/cross_memory.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cerrno>

namespace fairlead::shm {
namespace {

constexpr std::size_t kPiecesInCall = 32;

/// A position in a list of pieces.
class Pieces {
 public:
  Pieces(std::span<const iovec> all, std::uint64_t bytes) noexcept : all_(all), left_(bytes) {}

  std::uint64_t left() const noexcept { return left_; }
  /// Fills `to` with the next pieces, at most `bytes_max` bytes together. Returns the bytes and sets `count`.
  std::uint64_t next(std::span<iovec> to, std::uint64_t bytes_max, std::size_t& count) const noexcept {
    const std::uint64_t wanted = std::min(left_, bytes_max);
    std::uint64_t taken = 0, within = within_;
    count = 0;
    for (std::size_t i = index_; i < all_.size() && count < to.size() && taken < wanted; ++i, within = 0) {
      const std::uint64_t part = std::min<std::uint64_t>(all_[i].iov_len - within, wanted - taken);
      if (part == 0) continue;
      to[count++] = {static_cast<std::byte*>(all_[i].iov_base) + within, part};
      taken += part;
    }
    return taken;
  }
  void advance(std::uint64_t bytes) noexcept {
    left_ -= bytes;
    within_ += bytes;
    while (index_ < all_.size() && within_ >= all_[index_].iov_len) within_ -= all_[index_++].iov_len;
  }

 private:
  std::span<const iovec> all_;
  std::size_t index_ = 0;
  std::uint64_t within_ = 0, left_;
};

iovec there(std::uint64_t address, std::uint64_t bytes) {
  return {std::bit_cast<void*>(address), bytes};
}

}  // namespace

std::string_view CrossMemory::reason(Denial denial) {
  switch (denial) {
    case Denial::none:
      return {};
    case Denial::not_wanted:
      return "one of both does not want it: see shm_cma_max";
    case Denial::not_seen:
      return "its process is in another PID namespace: let the containers share one";
    case Denial::not_permitted:
      return "the kernel does not let us trace its process: look at kernel.yama.ptrace_scope, its capabilities, user "
             "namespaces and seccomp filters";
    case Denial::not_supported:
      return "the kernel has no process_vm_readv";
    case Denial::not_itself:
      return "another process has its number";
    case Denial::gone:
      return "its process is gone";
  }
  return {};
}

CrossMemory CrossMemory::probe(std::int32_t process, std::uint64_t address, const Nonce& nonce) {
  CrossMemory memory;
  if (address == 0) return memory;
  memory.process_ = process;
  memory.address_ = address;
  memory.nonce_ = nonce;
  memory.denial_ = process > 0 ? Denial::none : Denial::not_seen;
  // An unmapped address cannot hold the identity either.
  if (memory.is_reached() && !memory.look(0, {}) && memory.is_reached()) memory.denial_ = Denial::not_itself;
  return memory;
}

bool CrossMemory::look(std::uint64_t offset, std::span<std::byte> to) noexcept {
  const CrossRecord record{offset, to};
  return look({&record, 1});
}

// The kernel reads one place after the other, each with its own lock and reference. A later place is thus never read
// before an earlier one.
bool CrossMemory::look(std::span<const CrossRecord> records) noexcept {
  if (!is_reached() || records.size() > kRecordsInLook) return false;
  Nonce nonce{};
  std::array<iovec, 1 + kRecordsInLook> here{iovec{&nonce, sizeof nonce}}, other{there(address_, sizeof nonce)};
  std::size_t count = 1, bytes = sizeof nonce;
  for (const CrossRecord& record : records) {
    here[count] = {record.to.data(), record.to.size()};
    other[count++] = there(address_ + Identity::kRecordsAt + record.offset, record.to.size());
    bytes += record.to.size();
  }
  ssize_t got = 0;
  do {
    got = ::process_vm_readv(process_, here.data(), count, other.data(), count, 0);
  } while (got < 0 && errno == EINTR);
  if (got < 0) return note_failure(errno);
  if (got < static_cast<ssize_t>(sizeof nonce) || nonce != nonce_) return note_failure(ECHILD);
  return static_cast<std::size_t>(got) == bytes;
}

bool CrossMemory::read(std::span<const iovec> to, std::uint64_t from, std::uint64_t bytes) noexcept {
  if (!is_reached()) return false;
  Pieces pieces(to, bytes);
  do {
    Nonce nonce{};
    std::array<iovec, 1 + kPiecesInCall> here{iovec{&nonce, sizeof nonce}};
    std::size_t count = 0;
    const std::uint64_t part = pieces.next(std::span(here).subspan(1), ~0ULL, count);
    const std::array<iovec, 2> other{there(address_, sizeof nonce), there(from, part)};
    const ssize_t got = ::process_vm_readv(process_, here.data(), 1 + count, other.data(), part > 0 ? 2 : 1, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return note_failure(errno);
    if (got < static_cast<ssize_t>(sizeof nonce) || nonce != nonce_) return note_failure(ECHILD);
    const std::uint64_t done = static_cast<std::uint64_t>(got) - sizeof nonce;
    if (done == 0 && pieces.left() > 0) return false;
    pieces.advance(done);
    from += done;
  } while (pieces.left() > 0);
  return true;
}

bool CrossMemory::write(std::uint64_t to, std::span<const iovec> from, std::uint64_t bytes) noexcept {
  if (!is_reached() || bytes == 0) return false;
  Pieces pieces(from, bytes);
  const std::uint64_t last = std::min<std::uint64_t>(bytes, (to + bytes - 1) % 8 + 1);
  while (pieces.left() > 0) {
    std::array<iovec, kPiecesInCall> here;
    std::size_t count = 0;
    const bool is_last = pieces.left() <= last;
    const std::uint64_t part = pieces.next(here, is_last ? last : pieces.left() - last, count);
    const iovec other = there(to, part);
    if (is_last) std::atomic_thread_fence(std::memory_order_seq_cst);
    const ssize_t done = ::process_vm_writev(process_, here.data(), count, &other, 1, 0);
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) return note_failure(errno);
    if (done == 0) return false;
    pieces.advance(static_cast<std::uint64_t>(done));
    to += static_cast<std::uint64_t>(done);
  }
  return true;
}

// Unmapped memory (EFAULT) says nothing about the rest of the process.
bool CrossMemory::note_failure(int number) noexcept {
  if (number == EPERM || number == EACCES) denial_ = Denial::not_permitted;
  if (number == ENOSYS) denial_ = Denial::not_supported;
  if (number == ESRCH) denial_ = Denial::gone;
  if (number == ECHILD) denial_ = Denial::not_itself;
  return false;
}

}  // namespace fairlead::shm
