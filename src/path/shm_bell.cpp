#include "path/shm_bell.hpp"

#include <sys/eventfd.h>

#include <cerrno>
#include <new>
#include <utility>

namespace fairlead::path {

ShmBell::ShmBell(ShmMemory memory, base::FileDescriptor event)
    : memory_(std::move(memory)),
      event_(std::move(event)),
      page_(std::launder(reinterpret_cast<ShmBellPage*>(memory_.head()))) {}

Result<ShmBell> ShmBell::create() {
  auto memory = ShmMemory::create(kShmBellLayout);
  if (!memory) return std::unexpected(std::move(memory.error()));
  base::FileDescriptor event(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!event.is_open()) {
    return std::unexpected(
        Error{Status::system, errno, "no event descriptor for peers on this host: raise the limit of open files"});
  }
  new (memory->head()) ShmBellPage;
  return ShmBell(std::move(*memory), std::move(event));
}

void ShmBell::wake() noexcept {
  if (page_->is_asleep.exchange(0) != 0) ::eventfd_write(event_.get(), 1);
}

void ShmBell::end_sleep() noexcept {
  page_->is_asleep.store(0);
  eventfd_t ignored = 0;
  ::eventfd_read(event_.get(), &ignored);
}

}  // namespace fairlead::path
