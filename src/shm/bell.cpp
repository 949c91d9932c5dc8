#include "shm/bell.hpp"

#include <new>
#include <utility>

namespace fairlead::shm {

ShmBell::ShmBell(ShmMemory memory)
    : memory_(std::move(memory)), page_(std::launder(reinterpret_cast<ShmBellPage*>(memory_.head()))) {}

Result<ShmBell> ShmBell::create() {
  auto memory = ShmMemory::create(kShmBellLayout);
  if (!memory) return std::unexpected(std::move(memory.error()));
  new (memory->head()) ShmBellPage;
  return ShmBell(std::move(*memory));
}

}  // namespace fairlead::shm
