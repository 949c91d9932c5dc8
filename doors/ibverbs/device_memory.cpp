#include "doors/ibverbs/device_memory.hpp"

#include <cstring>

#include "doors/ibverbs/operations.hpp"

namespace fairlead::ibverbs {
namespace {

constexpr std::size_t kDeviceMemoryAlignment = 4;  // alignment that devices with such memory require for copies

/// Returns where an access begins, or null if it is misaligned or not inside the memory.
std::byte* place(ibv_dm* abi, std::uint64_t offset, std::size_t length) {
  const DeviceMemory* memory = find(abi);
  if (memory == nullptr || offset > memory->length || length > memory->length - offset) return nullptr;
  if (offset % kDeviceMemoryAlignment != 0 || length % kDeviceMemoryAlignment != 0) return nullptr;
  return memory->bytes.get() + offset;
}

int copy_to(ibv_dm* abi, std::uint64_t offset, const void* from, std::size_t length) {
  const Call call;
  std::byte* to = place(abi, offset, length);
  if (to == nullptr) return fail(EINVAL);
  std::memcpy(to, from, length);
  return 0;
}

int copy_from(void* to, ibv_dm* abi, std::uint64_t offset, std::size_t length) {
  const Call call;
  const std::byte* from = place(abi, offset, length);
  if (from == nullptr) return fail(EINVAL);
  std::memcpy(to, from, length);
  return 0;
}

DeviceMemory* make(OpenContext& context) {
  DeviceMemory* memory = table<DeviceMemory>().make(context);
  if (memory == nullptr) return refuse(ENOMEM);
  memory->context = &context.context;
  memory->memcpy_to_dm = copy_to;
  memory->memcpy_from_dm = copy_from;
  return memory;
}

}  // namespace

ibv_dm* add_device_memory(ibv_context* abi, ibv_alloc_dm_attr* attributes) try {
  const Call call;
  OpenContext* context = find_context(abi);
  if (context == nullptr || attributes == nullptr || attributes->comp_mask != 0 || attributes->length == 0) {
    return refuse(EINVAL);
  }
  if (attributes->length > kDeviceMemoryMax) return refuse(ENOMEM);
  const std::size_t length = attributes->length;
  void* bytes = ::mmap(nullptr, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (bytes == MAP_FAILED) return refuse(ENOMEM);
  const std::shared_ptr<std::byte> owner(static_cast<std::byte*>(bytes),
                                         [length](std::byte* mapped) { ::munmap(mapped, length); });
  DeviceMemory* memory = make(*context);
  if (memory == nullptr) return nullptr;
  memory->bytes = owner;
  memory->length = length;
  return table<DeviceMemory>().publish(memory);
} catch (const std::exception&) {
  return thrown();
}

int remove_device_memory(ibv_dm* abi) try {
  const Call call;
  DeviceMemory* memory = find(abi);
  if (memory == nullptr || memory->is_imported) return fail(EINVAL);
  for (const std::uint32_t handle : table<Region>().all()) {
    const Call look;
    const Region* region = table<Region>().find(handle);
    if (region != nullptr && region->device_bytes == memory->bytes) return fail(EBUSY);
  }
  return table<DeviceMemory>().destroy(memory) ? 0 : fail(EINVAL);
} catch (const std::exception&) {
  return thrown();
}

ibv_mr* add_device_region(ibv_pd* pd, ibv_dm* abi, std::uint64_t offset, std::size_t length, unsigned access) try {
  const Call call;
  std::byte* bytes = place(abi, offset, length);
  if (bytes == nullptr || (access & IBV_ACCESS_ZERO_BASED) == 0) return refuse(EINVAL);
  return add_region(pd, bytes, length, {}, access, find(abi)->bytes);
} catch (const std::exception&) {
  return thrown();
}

}  // namespace fairlead::ibverbs

using namespace fairlead::ibverbs;

extern "C" {

ibv_dm* ibv_import_dm(ibv_context* abi, std::uint32_t handle) try {
  const Call call;
  OpenContext* context = find_context(abi);
  const DeviceMemory* original = table<DeviceMemory>().find(handle);
  if (context == nullptr || original == nullptr) return refuse(EINVAL);
  DeviceMemory* memory = make(*context);
  if (memory == nullptr) return nullptr;
  memory->bytes = original->bytes;
  memory->length = original->length;
  memory->is_imported = true;
  return table<DeviceMemory>().publish(memory);
} catch (const std::exception&) {
  return thrown();
}

void ibv_unimport_dm(ibv_dm* abi) try {
  const Call call;
  DeviceMemory* memory = table<DeviceMemory>().find(abi);
  if (memory != nullptr && memory->is_imported) table<DeviceMemory>().destroy(memory);
} catch (const std::exception&) {
  (void)thrown();
}
}
