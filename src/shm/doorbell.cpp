#include "shm/doorbell.hpp"

#include <new>
#include <utility>

namespace fairlead::shm {

Doorbell::Doorbell(Memory memory)
    : memory_(std::move(memory)), page_(std::launder(reinterpret_cast<DoorbellPage*>(memory_.head()))) {}

Result<Doorbell> Doorbell::create() {
  auto memory = Memory::create(kShmBellLayout);
  if (!memory) return std::unexpected(std::move(memory.error()));
  new (memory->head()) DoorbellPage;
  return Doorbell(std::move(*memory));
}

}  // namespace fairlead::shm
