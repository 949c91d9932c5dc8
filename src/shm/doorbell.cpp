#include "shm/doorbell.hpp"

#include <new>
#include <utility>

#include "base/overcommit.hpp"

namespace fairlead::shm {

Doorbell::Doorbell(Memory memory)
    : memory_(std::move(memory)), page_(std::launder(reinterpret_cast<DoorbellPage*>(memory_.head()))) {}

Result<Doorbell> Doorbell::create() {
  auto memory = Memory::create(kShmBellLayout, base::is_memory_strict());
  if (!memory) return std::unexpected(std::move(memory.error()));
  new (memory->head()) DoorbellPage;
  return Doorbell(std::move(*memory));
}

}  // namespace fairlead::shm
